"""Hypothesis without a deadline: the first example loads an encoding, and machines differ."""

from hypothesis import settings

settings.register_profile("ui", deadline=None, max_examples=60)
settings.load_profile("ui")
