"""What long-term memory was searched for, what it returned, and what a gate stopped."""

from __future__ import annotations

from dataclasses import dataclass

from memory_core.prompt import Assembly, Gate, Hit, Omission, Recall


@dataclass(frozen=True)
class HitRow:
    """One candidate: ``gate`` is empty for a hit that went in, else what stopped it."""

    id: str
    text: str
    score: float
    similarity: float
    distance: float
    rank: int
    tokens: int
    turn: int | None
    kind: str
    signals: str
    gate: str = ""
    reason: str = ""

    @property
    def label(self) -> str:
        """A short name for the score axis; memories without a rank may share one."""
        where = f"turn {self.turn}" if self.turn else self.kind
        return f"{self.rank}. {where}" if self.rank else where


@dataclass(frozen=True)
class RetrievedView:
    """One search. ``skipped`` says why none was made; ``warnings`` what to distrust.

    ``threshold`` is the least score that goes in, ``None`` where the strategy has none; ``ours``
    is false for a search of LlamaIndex's, whose scores are its own.
    """

    query: str
    hits: tuple[HitRow, ...]
    near: tuple[HitRow, ...]
    threshold: float | None
    metric: str
    searched: int
    about: str
    skipped: str
    warnings: tuple[str, ...]
    ours: bool = True

    @property
    def label(self) -> str:
        """A few characters for the panel's tab."""
        return f"Retrieved {len(self.hits)}·{len(self.near)} near"

    @property
    def alt(self) -> str:
        """The score chart in words."""
        hits = ", ".join(f"{r.label} {r.score:.2f}" for r in self.hits) or "none"
        near = ", ".join(f"{r.label} {r.score:.2f} ({r.gate})" for r in self.near) or "none"
        line = f"threshold {self.threshold:.2f}" if self.threshold is not None else "no threshold"
        return f"Scores against {line}. In: {hits}. Near misses: {near}."


def retrieved_view(assembly: Assembly, *, threshold: float) -> RetrievedView:
    """Return the search behind a prompt."""
    recall, ours = assembly.recall, assembly.allotment is not None
    if recall is None:
        return RetrievedView("", (), (), threshold, "", 0, "", "Recall is off.", ())
    scope = {"session": "this session", "user": "all sessions"}.get(recall.scope, recall.scope)
    about = f"{recall.searched:,} memories searched in {recall.milliseconds:.0f} ms"
    if scope:
        about += f" · {scope}"
    if recall.model:
        about += f" · embedded by {recall.model}"
    return RetrievedView(
        query=recall.query,
        hits=tuple(_row(hit, None) for hit in recall.hits),
        near=tuple(_row(hit, omission) for hit, omission in recall.near),
        threshold=threshold if ours else _cutoff(recall),
        metric=recall.metric,
        searched=recall.searched,
        about=about,
        skipped=recall.skipped,
        warnings=_warnings(recall),
        ours=ours,
    )


@dataclass(frozen=True)
class DocumentsView:
    """What a chat engine searched its documents for, and the chunks that it put in the prompt.

    ``rewritten`` tells whether a model wrote the question anew, to stand alone.
    """

    query: str
    rewritten: bool
    rows: tuple[HitRow, ...]

    @property
    def headline(self) -> str:
        """What was searched for, in a few words."""
        asked = "the question, rewritten to stand alone" if self.rewritten else "the question"
        return f"searched for {asked}"


def documents_view(assembly: Assembly, question: str) -> DocumentsView | None:
    """Return the search of an engine's documents, ``None`` where the engine has none."""
    found = assembly.documents
    if found is None:
        return None
    rewritten = bool(question) and " ".join(question.split()) != " ".join(found.query.split())
    return DocumentsView(found.query, rewritten, tuple(_row(hit, None) for hit in found.hits))


def _cutoff(recall: Recall) -> float | None:
    """Return the score that a class asked for, as far as what it cut off tells."""
    cut = [out.available for _, out in recall.near if out.gate is Gate.THRESHOLD]
    return next((score for score in cut if score is not None), None)


def _row(hit: Hit, omission: Omission | None) -> HitRow:
    return HitRow(
        id=hit.id,
        text=hit.text,
        score=hit.score,
        similarity=hit.similarity,
        distance=hit.distance,
        rank=hit.rank,
        tokens=hit.tokens,
        turn=hit.turn,
        kind=hit.kind,
        signals=" + ".join(f"{name} {value:.2f}" for name, value in hit.signals.items()),
        gate=omission.gate.value if omission else "",
        reason=omission.reason if omission else "",
    )


def _warnings(recall: Recall) -> tuple[str, ...]:
    if not recall.disagreement:
        return ()
    ids = ", ".join(recall.disagreement[:3])
    return (
        (
            f"The fast index missed {len(recall.disagreement)} of the nearest memories "
            f"that an exact search finds ({ids})."
        ),
    )
