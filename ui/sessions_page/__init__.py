"""The Sessions page: all sessions of a user, and what can be done with them."""
