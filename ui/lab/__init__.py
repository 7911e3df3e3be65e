"""The Tuning lab: which setting keeps the evidence, measured on one's own conversation."""
