"""The memory of most tutorials: the newest messages by tokens, and the most similar ones.

The buffer is what ``ChatMemoryBuffer(token_limit=…).get()`` returns for everything said before
the question; the retrieved messages are the ``top_k`` nearest by cosine among all of them, each
message being one record. Nothing is left out because it is there twice, and no prompt is added:
tokens are those of the buffer, of the retrieved texts and of the question.

All cells share one ranking a question and one window a limit, so a cell is a comparison of two
arrays. Equal texts rank in the order in which they were said.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from memory_core.buffer import LLAMA_INDEX, History, plan_window
from memory_core.lab.cells import BUFFER, NOWHERE, RETRIEVED, Cell, Ints
from memory_core.lab.inputs import SweepInput
from memory_core.lab.prepare import Prepared
from memory_core.lab.strategy import Placed
from memory_core.messages import Message

REMEMBERED = ("user", "assistant")


def texts(conversation: SweepInput) -> Iterator[str]:
    """Yield the texts this strategy embeds: every remembered message and every question."""
    yield from (message.text for message in conversation.messages if is_remembered(message))
    yield from (question.text for question in conversation.questions)


def is_remembered(message: Message) -> bool:
    """Return whether a message is kept in the vector memory."""
    return message.role in REMEMBERED and bool(message.text.strip())


def plan(prepared: Prepared, points: Sequence[Placed]) -> Iterator[Cell]:
    """Yield a cell for each point; of its knobs only limit, top_k and embedding count."""
    asked = prepared.input.questions
    owner, message = prepared.evidence.owner, prepared.evidence.message
    most = max((point.settings.top_k for _, _, point in points), default=0)
    windows = _windows(prepared, sorted({point.settings.token_limit for _, _, point in points}))
    searches = {
        model: _search(prepared, model, most) for model in {point.embedding for *_, point in points}
    }
    questions = np.array([prepared.counter.text(question.text) for question in asked])
    remembered = sum(map(is_remembered, prepared.input.messages))
    turns = prepared.input.turns[-1]
    for x, y, point in points:
        top_k = point.settings.top_k
        starts, in_buffer = windows[point.settings.token_limit]
        ranks, in_hits = searches[point.embedding]
        where = np.where(ranks < top_k, RETRIEVED, NOWHERE).astype(np.int8)
        where[message >= starts[owner]] = BUFFER
        yield Cell(
            x,
            y,
            where,
            tokens=in_buffer + in_hits[:, min(top_k, in_hits.shape[1] - 1)] + questions,
            embeddings=(remembered + turns) / turns if top_k else 0.0,
            model_calls=1.0,
        )


def _windows(prepared: Prepared, limits: Iterable[int]) -> dict[int, tuple[Ints, Ints]]:
    """Return for each limit where each question's buffer starts, and its tokens."""
    positions = [question.position for question in prepared.input.questions]
    distinct, place = np.unique(positions, return_inverse=True)
    windows = {limit: np.zeros((2, len(distinct)), np.int64) for limit in limits}
    history = History(prepared.counter.text)
    for column, position in enumerate(distinct.tolist()):
        for said in prepared.input.messages[len(history) : position]:
            history.append(said, 0)
        for limit, window in windows.items():
            planned = plan_window(history, limit, rule=LLAMA_INDEX)
            window[:, column] = planned.start, planned.tokens
    return {limit: (window[0, place], window[1, place]) for limit, window in windows.items()}


def _search(prepared: Prepared, model: str, most: int) -> tuple[Ints, Ints]:
    """Return the rank of each piece of evidence, and the tokens of the best 0 to ``most`` hits."""
    said, asked = prepared.input.messages, prepared.input.questions
    evidence = prepared.evidence
    kept = [index for index, message in enumerate(said) if is_remembered(message)]
    if not most or not kept:
        return np.full(len(evidence.owner), len(said)), np.zeros((len(asked), 1), np.int64)
    embedded = prepared.vectors(model)
    lengths = np.array([prepared.counter.text(said[index].text) for index in kept])
    rows = [embedded.rows[said[index].text] for index in kept]
    # subtle: one product a distinct text, so that equal texts are equally similar to the last bit
    distinct, text_of = np.unique(rows, return_inverse=True)
    vectors = embedded.vectors[distinct]
    queries = embedded.of([question.text for question in asked])
    place = {index: column for column, index in enumerate(kept)}
    ranks: list[int] = []
    tokens = np.zeros((len(asked), most + 1), np.int64)
    for number, question in enumerate(asked):
        earlier = bisect_left(kept, question.position)
        order = np.argsort(-(vectors @ queries[number])[text_of[:earlier]], kind="stable")
        rank_of = np.empty_like(order)
        rank_of[order] = np.arange(earlier)
        ranks += [int(rank_of[place[i]]) if i in place else len(said) for i in question.evidence]
        hits = lengths[order[:most]].cumsum()
        tokens[number, 1 : len(hits) + 1] = hits
        tokens[number, len(hits) + 1 :] = hits[-1] if len(hits) else 0
    return np.array(ranks), tokens
