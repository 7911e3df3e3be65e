"""Vector indexes: what one must do (``base``), on Chroma (``chroma``), on files (``simple``)."""
