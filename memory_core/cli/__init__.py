"""What `python -m memory_core` can do, one module a command."""
