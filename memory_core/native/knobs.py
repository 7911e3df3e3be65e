"""What can be set on each strategy, as frozen values with a JSON form and a schema for forms.

A knob is a dataclass field whose metadata says its kind, range and meaning; :func:`schema` reads
it, :func:`from_json` checks against it. Token figures are tokens as the strategy's own class
counts them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from memory_core.errors import InvalidInput
from memory_core.messages import Json, repair_text

INT, FLOAT, BOOL, CHOICE, TEXT, BLOCKS = "int", "float", "bool", "choice", "text", "blocks"

LLAMA_INDEX_TOKENIZER, MODEL_TOKENIZER = "llama_index", "model"
SYSTEM, USER = "system", "user"  # where Memory inserts its blocks
STATIC, FACTS, VECTOR = "static", "facts", "vector"  # kinds of memory block
NO_POSTPROCESSOR, CUTOFF, REORDER = "none", "similarity cutoff", "long context reorder"

MAX_BLOCKS = 12
MAX_TEXT = 20_000  # characters of a static block
_TYPES: Mapping[str, type] = {INT: int, FLOAT: float, BOOL: bool}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")


@dataclass(frozen=True)
class Knob:
    """One setting as a form shows it. ``low`` and ``high`` are inclusive."""

    name: str
    kind: str
    default: Json
    help: str
    low: float | None = None
    high: float | None = None
    step: float | None = None
    choices: tuple[str, ...] = ()


def _knob(
    default: Any,
    kind: str,
    text: str,
    *,
    span: tuple[float, float] | None = None,
    step: float | None = None,
    choices: Sequence[str] = (),
) -> Any:
    low, high = span or (None, None)
    about = {
        "kind": kind,
        "help": text,
        "low": low,
        "high": high,
        "step": step,
        "choices": tuple(choices),
    }
    return field(default=default, metadata=about)


def _tokens(default: int, text: str) -> Any:
    return _knob(default, INT, text, span=(1, 1_000_000), step=50)


def _tokenizer() -> Any:
    return _knob(
        LLAMA_INDEX_TOKENIZER,
        CHOICE,
        "whose tokens are counted: LlamaIndex's default (cl100k) or the chat model's own",
        choices=(LLAMA_INDEX_TOKENIZER, MODEL_TOKENIZER),
    )


def _top_k(default: int) -> Any:
    return _knob(default, INT, "how many search results are used at most", span=(1, 100), step=1)


@dataclass(frozen=True)
class StatelessKnobs:
    """No memory: nothing to set."""


@dataclass(frozen=True)
class FullHistoryKnobs:
    """Everything, always: nothing to set."""


@dataclass(frozen=True)
class LayeredKnobs:
    """Ours: its knobs are :class:`memory_core.settings.MemorySettings`."""


@dataclass(frozen=True)
class BufferKnobs:
    """``ChatMemoryBuffer``."""

    token_limit: int = _tokens(1200, "tokens of history that are sent, texts only")
    tokenizer: str = _tokenizer()


@dataclass(frozen=True)
class SummaryBufferKnobs:
    """``ChatSummaryMemoryBuffer``."""

    token_limit: int = _tokens(1000, "tokens of the newest messages that stay in full text")
    count_initial_tokens: bool = _knob(
        default=False,
        kind=BOOL,
        text="whether the system prompt in front counts for the limit",
    )
    tokenizer: str = _tokenizer()


@dataclass(frozen=True)
class StaticBlock:
    """``StaticMemoryBlock``: the same text in every prompt."""

    kind: ClassVar[str] = STATIC
    name: str = _knob("about_user", TEXT, "the tag that stands around it in the prompt")
    priority: int = _knob(
        0, INT, "0 is never cut; of the others the lowest number is cut first", span=(0, 100)
    )
    content: str = _knob("The user runs a bakery.", TEXT, "the text")


@dataclass(frozen=True)
class FactBlock:
    """``FactExtractionMemoryBlock``: facts that a model reads out of what was flushed."""

    kind: ClassVar[str] = FACTS
    name: str = _knob("facts", TEXT, "the tag that stands around it in the prompt")
    priority: int = _knob(
        1, INT, "0 is never cut; of the others the lowest number is cut first", span=(0, 100)
    )
    max_facts: int = _knob(
        20, INT, "over this many, the model is asked to condense", span=(1, 500), step=1
    )


@dataclass(frozen=True)
class VectorBlock:
    """``VectorMemoryBlock``: what was flushed, searched by meaning (Chroma)."""

    kind: ClassVar[str] = VECTOR
    name: str = _knob("earlier", TEXT, "the tag that stands around it in the prompt")
    priority: int = _knob(
        2, INT, "0 is never cut; of the others the lowest number is cut first", span=(0, 100)
    )
    top_k: int = _top_k(2)
    context_window: int = _knob(
        5, INT, "how many of the newest messages make up the text that is searched", span=(1, 50)
    )
    postprocessor: str = _knob(
        NO_POSTPROCESSOR,
        CHOICE,
        "what is done with the search results",
        choices=(NO_POSTPROCESSOR, CUTOFF, REORDER),
    )
    cutoff: float = _knob(
        0.5, FLOAT, "for the cutoff: the store's score a result must have", span=(0, 1), step=0.05
    )


Block = StaticBlock | FactBlock | VectorBlock
BLOCK_KINDS: Mapping[str, type[Block]] = {
    block.kind: block for block in (StaticBlock, FactBlock, VectorBlock)
}
DEFAULT_BLOCKS: tuple[Block, ...] = (StaticBlock(), FactBlock(), VectorBlock())


@dataclass(frozen=True)
class MemoryKnobs:
    """``Memory``: a queue of messages, and blocks that take what is flushed from it."""

    token_limit: int = _tokens(1600, "tokens of history and blocks together")
    chat_history_token_ratio: float = _knob(
        0.7, FLOAT, "share of the limit that the queue of messages may fill", span=(0.05, 1.0),
        step=0.05,
    )  # fmt: skip
    token_flush_size: int = _tokens(200, "at least this many tokens leave the queue at once")
    insert_method: str = _knob(
        SYSTEM,
        CHOICE,
        "whether blocks are put in a system message or in the newest user message",
        choices=(SYSTEM, USER),
    )
    tokenizer: str = _tokenizer()
    blocks: tuple[Block, ...] = _knob(
        DEFAULT_BLOCKS, BLOCKS, "memory blocks, in the order in which they stand in the prompt"
    )


@dataclass(frozen=True)
class PlainMemoryKnobs(MemoryKnobs):
    """``Memory`` without blocks: what is flushed is gone."""

    blocks: tuple[Block, ...] = _knob((), BLOCKS, "no blocks: what is flushed is gone")


@dataclass(frozen=True)
class VectorMemoryKnobs:
    """``VectorMemory``."""

    top_k: int = _top_k(3)
    batch_by_user_message: bool = _knob(
        default=True, kind=BOOL, text="whether a user message and its answers are one record"
    )


@dataclass(frozen=True)
class ComposableKnobs:
    """``SimpleComposableMemory``: a ``ChatMemoryBuffer`` first, a ``VectorMemory`` second."""

    token_limit: int = _tokens(800, "tokens of history that the buffer sends, texts only")
    tokenizer: str = _tokenizer()
    top_k: int = _top_k(2)


@dataclass(frozen=True)
class SummarisingBufferKnobs:
    """The tutorials' summarising buffer."""

    every: int = _knob(
        10, INT, "at this many messages all but the first and the last are summarised",
        span=(4, 1_000), step=1,
    )  # fmt: skip
    summary_tokens: int = _tokens(160, "the longest summary that is kept")


@dataclass(frozen=True)
class SummaryMemoryKnobs:
    """The tutorials' summary memory."""

    in_full: int = _knob(6, INT, "how many of the newest messages stay in full", span=(2, 1_000))
    summary_tokens: int = _tokens(160, "the longest running summary")


@dataclass(frozen=True)
class HybridKnobs:
    """The tutorials' hybrid: a buffer, and facts that are searched into the system prompt."""

    token_limit: int = _tokens(800, "tokens of history that the buffer sends, texts only")
    tokenizer: str = _tokenizer()
    top_k: int = _top_k(3)
    cutoff: float = _knob(
        0.25, FLOAT, "the cosine similarity a fact must have to the question", span=(-1, 1),
        step=0.05,
    )  # fmt: skip


Knobs = (
    StatelessKnobs
    | FullHistoryKnobs
    | LayeredKnobs
    | BufferKnobs
    | SummaryBufferKnobs
    | MemoryKnobs
    | VectorMemoryKnobs
    | ComposableKnobs
    | SummarisingBufferKnobs
    | SummaryMemoryKnobs
    | HybridKnobs
)
K = TypeVar("K", bound=Knobs | Block)


def schema(kind: type[Any]) -> tuple[Knob, ...]:
    """Return the knobs of a strategy or block, in the order of a form."""
    return tuple(
        Knob(name=item.name, default=_plain(item.default), **item.metadata) for item in fields(kind)
    )


def to_json(knobs: Knobs | Block) -> dict[str, Json]:
    """Return knobs as a JSON object that :func:`from_json` reads back unchanged."""
    return {item.name: _plain(getattr(knobs, item.name)) for item in fields(knobs)}


def from_json(kind: type[K], value: Mapping[str, Json]) -> K:
    """Return knobs from a JSON object; unknown keys are left out, missing ones default.

    Raises :class:`InvalidInput` for a value of the wrong type, outside its range or unusable.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput("Settings of a strategy must be a JSON object.")
    given = {
        knob.name: _checked(knob, value[knob.name]) for knob in schema(kind) if knob.name in value
    }
    knobs: K = kind(**given)
    return knobs


def _plain(value: Any) -> Json:
    if isinstance(value, tuple):
        return [{"kind": block.kind, **to_json(block)} for block in value]
    return value


def _checked(knob: Knob, value: Json) -> Any:
    if knob.kind == BLOCKS:
        return _blocks(value)
    if knob.kind == FLOAT and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    wanted: type = _TYPES.get(knob.kind, str)
    if type(value) is not wanted:
        raise InvalidInput(f"{knob.name} must be of type {wanted.__name__}, not {value!r:.40}.")
    if knob.choices and value not in knob.choices:
        raise InvalidInput(f"{knob.name} must be one of {', '.join(knob.choices)}.")
    number: Any = value
    if knob.low is not None and knob.high is not None and not knob.low <= number <= knob.high:
        raise InvalidInput(f"{knob.name} must be from {knob.low:,} to {knob.high:,}, not {value}.")
    if isinstance(value, str):
        return _text(knob.name, value)
    return value


def _text(name: str, value: str) -> str:
    if name == "name" and not _NAME.fullmatch(value):
        raise InvalidInput(
            f"A block cannot be named {value!r:.50}: a name begins with a letter and holds up to "
            "40 letters, digits, dots, dashes and underscores, since it becomes a tag."
        )
    if len(value) > MAX_TEXT:
        raise InvalidInput(f"{name} is {len(value):,} characters long; at most {MAX_TEXT:,} fit.")
    return repair_text(value)[0]


def _blocks(value: Json) -> tuple[Block, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InvalidInput("Memory blocks must be a list.")
    if len(value) > MAX_BLOCKS:
        raise InvalidInput(f"There are {len(value)} memory blocks; at most {MAX_BLOCKS} can be.")
    blocks = []
    for item in value:
        kind = BLOCK_KINDS.get(str(item.get("kind"))) if isinstance(item, Mapping) else None
        if kind is None:
            known = ", ".join(BLOCK_KINDS)
            raise InvalidInput(f"A memory block must say its kind, one of {known}.")
        blocks.append(from_json(kind, item))
    names = [block.name for block in blocks]
    if twice := [name for n, name in enumerate(names) if name in names[:n]]:
        raise InvalidInput(f"Two memory blocks are named {twice[0]!r}; each needs its own name.")
    return tuple(blocks)
