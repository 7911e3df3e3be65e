"""Small conversations with questions, for tests of the sweep."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import strategies as st

from memory_core.lab.axes import Axis, Point
from memory_core.lab.embedded import EmbeddingCache
from memory_core.lab.inputs import SweepInput, make_input
from memory_core.lab.sweep import LAYERED, Sweep, prepare_sweep
from memory_core.messages import Message
from memory_core.questions import RecallQuestion
from memory_core.settings import MemorySettings
from memory_core.testing import HashEmbedder
from memory_core.tokens import TokenCounter

EMBEDDER = HashEmbedder()
TEXTS = [
    "I grow lemons on the balcony",
    "The ferry to the island leaves at noon",
    "My sister Ana moved to Porto in May",
    "ok",
    "We painted the kitchen a pale green, twice",
    "I cannot eat peanuts, please remember that",
    "The bakery opens at half past six",
    "Our dog is called Pepper and he is afraid of thunder",
    "ça va 🙂 日本語のメモ",
    "thanks!",
    "The meeting moved from Tuesday to Friday afternoon",
    "Yes, the one with the red door by the harbour",
]
QUESTIONS = [
    "What grows on the balcony?",
    "When does the ferry to the island leave?",
    "Where does Ana live?",
    "What can I not eat?",
    "What is the dog afraid of?",
]


@cache
def counter() -> TokenCounter:
    """Return one counter for all tests: the fewer texts are counted, the faster they are."""
    return TokenCounter("cl100k_base")


def long_talk(turns: int = 24) -> SweepInput:
    """Return a conversation in which each question's evidence was said once or twice."""
    messages = []
    for turn in range(turns):
        said = f"{TEXTS[turn % len(TEXTS)]} ({turn // len(TEXTS)})"
        messages += [Message.of("user", said), Message.of("assistant", f"Noted, {turn}.")]
    evidence = [(0, 24), (2,), (4,), (10, 11), (14,)]
    questions = [
        RecallQuestion(text, "", tuple(i for i in told if i < len(messages)))
        for text, told in zip(QUESTIONS, evidence, strict=True)
    ]
    return make_input("Talk", messages, questions, asked_at={1: 30, 4: 2 * turns - 10})


@st.composite
def talks(draw: st.DrawFn, *, roles: Sequence[str] = ("user", "assistant")) -> SweepInput:
    """Draw a conversation of up to 14 messages with questions anywhere in it."""
    said = draw(
        st.lists(st.tuples(st.sampled_from(roles), st.sampled_from(TEXTS)), min_size=1, max_size=14)
    )
    messages = [Message.of(role, text) for role, text in said]
    count = draw(st.integers(1, 4))
    questions, asked_at = [], {}
    for number in range(count):
        position = draw(st.integers(1, len(messages)))
        evidence = draw(st.sets(st.integers(0, position - 1), min_size=1, max_size=3))
        asked = draw(st.sampled_from(QUESTIONS))
        questions.append(RecallQuestion(asked, "", tuple(evidence)))
        asked_at[number] = position
    return make_input("Drawn", messages, questions, asked_at=asked_at)


def sweep_of(
    conversation: SweepInput,
    x: tuple[str, str] = ("token_limit", "60,120,400"),
    y: tuple[str, str] = ("top_k", "0,1,3"),
    *,
    strategy: str = LAYERED,
    **knobs: object,
) -> Sweep:
    """Return a sweep that is ready to run, embedded by hashes and kept nowhere."""
    settings = MemorySettings(system_prompt="Answer.").with_(**knobs)
    return prepare_sweep(
        conversation,
        Axis.parse(*x),
        Axis.parse(*y),
        base=Point(settings, strategy, EMBEDDER.name),
        counter=counter(),
        embedders=[EMBEDDER],
        cache=EmbeddingCache(),
    )
