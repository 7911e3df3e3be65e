"""Where sessions live: small Protocols, and an implementation for each backend."""
