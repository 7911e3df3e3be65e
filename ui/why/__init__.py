"""What happened to each thing, why it was left out, and what would have changed without it."""
