"""A strategy of LlamaIndex's with its knobs as a runnable program, in the agent it runs in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from memory_core import strategies as s
from memory_core.models.catalogue import ModelChoice
from memory_core.native import knobs as k
from memory_core.strategies import Setup

_PROGRAM = '''"""{title} in {agent}, as it was set in Memory Inspector."""

import asyncio

{imports}

llm = {llm}
{parts}
memory = {memory}
{agent_made}


async def main() -> None:
    for text in ("Hi, I'm Dana and I can't eat nuts.", "What can't I eat?"):
        print(await {call})
    for message in await memory.aget(input="What can't I eat?"):
        print(message)


asyncio.run(main())
'''

_CORE = "from llama_index.core.memory import "
_EMBEDDING = (
    "embedding = LlamaIndexEmbedding(build_embedder(EmbeddingChoice()))  # or your own embed_model"
)
_EMBEDDED = (
    "from memory_core.models.catalogue import EmbeddingChoice",
    "from memory_core.models.embeddings import LlamaIndexEmbedding, build_embedder",
)
_DOCUMENTS = (
    'documents = [Document(text="The bakery opens at 6:30 and sells no nuts.")]  # or your own\n'
    "index = VectorStoreIndex.from_documents(documents, embed_model=embedding)"
)


class _Source:
    """Gathers the imports and the lines that stand before the memory."""

    def __init__(self, model: ModelChoice) -> None:
        self.model = model
        self.imports: dict[str, None] = {}
        self.parts: dict[str, None] = {}

    def needs(self, *imports: str) -> None:
        """Import these."""
        self.imports |= dict.fromkeys(imports)

    def embedding(self) -> str:
        """Make an embedding model and return its name."""
        self.needs(*_EMBEDDED)
        self.parts[_EMBEDDING] = None
        return "embedding"

    def tokenizer(self, choice: str) -> str:
        """Return the argument for a tokenizer that is not LlamaIndex's default."""
        if choice == k.LLAMA_INDEX_TOKENIZER:
            return ""
        self.needs("from memory_core.tokens import TokenCounter, encoding_for")
        return f"tokenizer_fn=TokenCounter(encoding_for({self.model.model!r})).encode"


def strategy_snippet(setup: Setup, model: ModelChoice, prompt: str, llm: tuple[str, str]) -> str:
    """Return the program; ``llm`` is the import of the model's class and what makes it."""
    source = _Source(model)
    source.needs(*llm[0].splitlines())
    memory = _MEMORIES[setup.strategy](setup.knobs, source)
    made, call = _agent(setup.agent, prompt, source)
    return _PROGRAM.format(
        title=s.find_strategy(setup.strategy).title,
        agent=s.find_agent(setup.agent).title,
        imports="\n".join(_merged(source.imports)),
        llm=llm[1],
        parts="\n".join(source.parts),
        memory=memory,
        agent_made=made,
        call=call,
    ).replace("\n\nmemory = ", "\nmemory = ")


def _merged(imports: Iterable[str]) -> list[str]:
    """Return import lines in order, one for each module."""
    names: dict[str, set[str]] = {}
    plain = sorted(line for line in imports if line.startswith("import "))
    for line in imports:
        if line not in plain:
            module, _, name = line.removeprefix("from ").partition(" import ")
            names.setdefault(module, set()).update(name.split(", "))
    return [*plain, *(f"from {m} import {', '.join(sorted(names[m]))}" for m in sorted(names))]


def _call(name: str, *arguments: str, depth: int = 0) -> str:
    """Return a call with an argument a line."""
    given = [argument for argument in arguments if argument]
    if not given:
        return f"{name}()"
    pad = "    " * (depth + 1)
    lines = "".join(f"{pad}{argument},\n" for argument in given)
    return f"{name}(\n{lines}{'    ' * depth})"


def _buffer(knobs: Any, source: _Source, *, depth: int = 0) -> str:
    source.needs(f"{_CORE}ChatMemoryBuffer")
    return _call(
        "ChatMemoryBuffer.from_defaults",
        f"token_limit={knobs.token_limit}",
        source.tokenizer(knobs.tokenizer),
        depth=depth,
    )


def _summary_buffer(knobs: k.SummaryBufferKnobs, source: _Source) -> str:
    source.needs(f"{_CORE}ChatSummaryMemoryBuffer")
    return _call(
        "ChatSummaryMemoryBuffer.from_defaults",
        "llm=llm",
        f"token_limit={knobs.token_limit}",
        f"count_initial_tokens={knobs.count_initial_tokens}",
        source.tokenizer(knobs.tokenizer),
    )


def _memory(knobs: k.MemoryKnobs, source: _Source) -> str:
    source.needs(f"{_CORE}Memory", f"{_CORE.replace('memory ', 'memory.memory ')}InsertMethod")
    blocks = "".join(f"        {_block(block, source)},\n" for block in knobs.blocks)
    return _call(
        "Memory.from_defaults",
        'session_id="my_session"',
        f"token_limit={knobs.token_limit}",
        f"chat_history_token_ratio={knobs.chat_history_token_ratio}",
        f"token_flush_size={knobs.token_flush_size}",
        f"insert_method=InsertMethod({knobs.insert_method!r})",
        f"memory_blocks=[\n{blocks}    ]" if blocks else "",
        'async_database_uri="sqlite+aiosqlite:///my_memory.db"',
        source.tokenizer(knobs.tokenizer),
    )


def _block(block: k.Block, source: _Source) -> str:
    about = (f"name={block.name!r}", f"priority={block.priority}")
    if isinstance(block, k.StaticBlock):
        source.needs(
            f"{_CORE}StaticMemoryBlock", "from llama_index.core.base.llms.types import TextBlock"
        )
        text = f"static_content=[TextBlock(text={block.content!r})]"
        return _call("StaticMemoryBlock", *about, text, depth=2)
    if isinstance(block, k.FactBlock):
        source.needs(f"{_CORE}FactExtractionMemoryBlock")
        return _call(
            "FactExtractionMemoryBlock",
            *about,
            "llm=llm",
            f"max_facts={block.max_facts}",
            depth=2,
        )
    source.needs(
        f"{_CORE}VectorMemoryBlock",
        "from llama_index.vector_stores.chroma import ChromaVectorStore",
        "import chromadb",
    )
    source.parts['vectors = chromadb.PersistentClient("my_vectors")'] = None
    collection = f"vectors.get_or_create_collection({_safe(block.name)!r})"
    return _call(
        "VectorMemoryBlock",
        *about,
        f"vector_store=ChromaVectorStore(chroma_collection={collection})",
        f"embed_model={source.embedding()}",
        f"similarity_top_k={block.top_k}",
        f"retrieval_context_window={block.context_window}",
        _postprocessors(block, source),
        depth=2,
    )


def _safe(name: str) -> str:
    """Return a name that Chroma takes: it wants three characters, ending with a letter or digit."""
    return f"block-{name}-x"


def _postprocessors(block: k.VectorBlock, source: _Source) -> str:
    place = "from llama_index.core.postprocessor import "
    if block.postprocessor == k.CUTOFF:
        source.needs(f"{place}SimilarityPostprocessor")
        made = f"SimilarityPostprocessor(similarity_cutoff={block.cutoff})"
        return f"node_postprocessors=[{made}]"
    if block.postprocessor == k.REORDER:
        source.needs(f"{place}LongContextReorder")
        return "node_postprocessors=[LongContextReorder()]"
    return ""


def _vector_memory(knobs: Any, source: _Source, *, depth: int = 0) -> str:
    source.needs(f"{_CORE}VectorMemory")
    by_user = getattr(knobs, "batch_by_user_message", True)
    return _call(
        "VectorMemory.from_defaults",
        f"embed_model={source.embedding()}",
        f'retriever_kwargs={{"similarity_top_k": {knobs.top_k}}}',
        "" if by_user else "batch_by_user_message=False",
        depth=depth,
    )


def _composable(knobs: k.ComposableKnobs, source: _Source) -> str:
    source.needs(f"{_CORE}SimpleComposableMemory")
    return _call(
        "SimpleComposableMemory.from_defaults",
        f"primary_memory={_buffer(knobs, source, depth=1)}",
        f"secondary_memory_sources=[{_vector_memory(knobs, source, depth=1)}]",
    )


def _pattern(name: str, *fields: str) -> Callable[[Any, _Source], str]:
    def made(knobs: Any, source: _Source) -> str:
        source.needs(f"from memory_core.native.patterns import {name}")
        return _call(
            f"{name}.from_defaults", "llm=llm", *(f"{f}={getattr(knobs, f)}" for f in fields)
        )

    return made


def _hybrid(knobs: k.HybridKnobs, source: _Source) -> str:
    source.needs(
        "from memory_core.native.patterns import HybridMemory",
        "from llama_index.core import VectorStoreIndex",
    )
    return _call(
        "HybridMemory",
        f"buffer={_buffer(knobs, source, depth=1)}",
        f"index=VectorStoreIndex([], embed_model={source.embedding()})",
        f"top_k={knobs.top_k}",
        f"cutoff={knobs.cutoff}",
    )


def _control(name: str) -> Callable[[Any, _Source], str]:
    def made(_: Any, source: _Source) -> str:
        source.needs(f"from memory_core.native.controls import {name}")
        return f"{name}()"

    return made


def _agent(agent: str, prompt: str, source: _Source) -> tuple[str, str]:
    """Return what makes the agent, and the call that answers ``text``."""
    if agent in (s.FUNCTION_AGENT, s.REACT_AGENT):
        name = "FunctionAgent" if agent == s.FUNCTION_AGENT else "ReActAgent"
        source.needs(f"from llama_index.core.agent.workflow import {name}")
        made = _call(name, "llm=llm", "tools=[]", f"system_prompt={prompt!r}")
        return f"agent = {made}", "agent.run(user_msg=text, memory=memory)"
    name = {
        s.SIMPLE_ENGINE: "SimpleChatEngine",
        s.CONTEXT_ENGINE: "ContextChatEngine",
        s.CONDENSE_ENGINE: "CondensePlusContextChatEngine",
    }[agent]
    source.needs(f"from llama_index.core.chat_engine import {name}")
    retriever = ""
    if agent != s.SIMPLE_ENGINE:
        source.needs("from llama_index.core import Document, VectorStoreIndex")
        source.embedding()
        source.parts[_DOCUMENTS] = None
        retriever = "index.as_retriever(similarity_top_k=2)"
    made = _call(
        f"{name}.from_defaults",
        f"retriever={retriever}" if retriever else "",
        "llm=llm",
        "memory=memory",
        f"system_prompt={prompt!r}",
    )
    return f"engine = {made}", "engine.achat(text)"


_MEMORIES: Mapping[str, Callable[[Any, _Source], str]] = {
    s.STATELESS: _control("StatelessMemory"),
    s.FULL_HISTORY: _control("FullHistory"),
    s.BUFFER: _buffer,
    s.SUMMARY_BUFFER: _summary_buffer,
    s.MEMORY: _memory,
    s.MEMORY_BLOCKS: _memory,
    s.VECTOR_MEMORY: _vector_memory,
    s.COMPOSABLE: _composable,
    s.SUMMARISING_BUFFER: _pattern("SummarisingBuffer", "every", "summary_tokens"),
    s.SUMMARY_MEMORY: _pattern("SummaryMemory", "in_full", "summary_tokens"),
    s.HYBRID: _hybrid,
}
