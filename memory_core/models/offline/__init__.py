"""A deterministic reader that stands in for a language model when there is none.

It sees only the messages it is handed and answers by quoting them, so its answers reveal what
memory delivered. Reading order: ``text`` (words), ``passages`` (what a prompt holds, and where),
``reader`` (the best-supported sentence), ``notice`` (facts in statements), ``requests`` (tools
that the user asks for), ``digest`` (summaries and fact lists), ``respond`` (which of these a
prompt calls for) and ``llm`` (LlamaIndex's interface). All but the last are pure.
"""
