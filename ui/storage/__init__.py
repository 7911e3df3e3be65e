"""The Storage page: what is stored where, how fast, and how to back it up or erase it."""
