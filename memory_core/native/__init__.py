"""LlamaIndex's own memories, run for real and observed.

``knobs`` (what can be set) is plain values and may be imported anywhere. The rest loads
LlamaIndex. Reading order: ``knobs``, ``parts`` and ``record`` (from what was returned to an
explanation), ``adapter`` (what one strategy must tell), one module per family (``controls``,
``buffer``, ``summary_buffer``, ``queue`` with ``blocks``, ``vector_memory``, ``patterns``),
``observed`` (the LlamaIndex memory that an agent is given), ``agents`` and ``documents``,
``opening``.
"""
