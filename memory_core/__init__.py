"""The engine of Memory Inspector: agent memory whose every prompt can be explained.

Reading order: ``messages`` and ``tokens`` say what is counted, ``prompt`` what an
:class:`~memory_core.prompt.Assembly` is, ``budget``, ``buffer``, ``summary``, ``longterm`` and
``state`` plan the layers, ``memory`` composes them into a LlamaIndex memory, ``agent`` runs one
turn and ``trace`` is what is kept of it.
"""
