"""Any turn of a session as it was, beside any other, and the way to go on from there."""
