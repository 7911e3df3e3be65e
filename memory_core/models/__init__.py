"""Chat and embedding models: the offline reader, and whoever speaks OpenAI's protocol.

``catalogue`` (choices, prices, keys) is plain values and may be imported anywhere. ``build``,
``failures``, ``local``, ``embeddings`` and ``offline.llm`` load heavy libraries; they stand
behind the engine.
"""
