"""LlamaIndex's own memories, run for real and observed.

``knobs`` and ``rules`` are plain values and may be imported anywhere; the rest loads LlamaIndex.
Reading order: ``parts`` and ``align`` (from what was returned to an explanation), ``adapter``
(what one strategy must tell), a module for each family (``controls``, ``buffer``,
``summary_buffer``, ``queue`` with ``queue_view``, ``blocks`` and ``chat_store``, ``vector_memory``
with ``vectors`` and ``records``, ``patterns`` with ``patterned``), ``log`` and ``keeping`` (its
state through restarts), ``one_loop`` and ``observed`` (the memory an agent is given), ``agents``
and ``documents``, ``building`` and ``opening``.
"""
