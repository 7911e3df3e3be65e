"""The Compare page: one conversation under several configurations, side by side."""
