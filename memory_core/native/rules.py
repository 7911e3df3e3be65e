"""Names of the rules by which a strategy keeps its window, beside those of our own buffer."""

QUEUE_RULE = "memory queue"
SUMMARY_RULE = "summary buffer"
PATTERN_RULE = "summary pattern"
