"""One module per panel: each draws a view-model and knows nothing of how it came about."""
