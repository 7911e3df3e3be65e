"""Which two knobs are turned and how far, who plans, and the button that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.lab.asking import ASKING, strategies
from memory_core.lab.axes import (
    EMBEDDING,
    SHARES,
    STRATEGY,
    TITLES,
    TOKEN_LIMIT,
    TOP_K,
    Axis,
    Point,
    grid,
)
from memory_core.lab.embedded import EmbeddingCache, Progress
from memory_core.lab.inputs import SweepInput, from_conversation, make_input
from memory_core.lab.pool import MOST_JOBS, Pool
from memory_core.lab.sweep import STRATEGIES, Sweep, prepare_sweep
from memory_core.models.catalogue import MINILM, WORDLLAMA, EmbeddingChoice
from memory_core.models.embeddings import build_embedder, needs_download
from memory_core.prompt import Source
from ui import resources, sessions
from ui.lab.place import LabPlace, Subject, place_of
from ui.lab.running import Running
from ui.operators import is_operator
from ui.state import PageState, mine, seed, value_of
from ui.view_models.lab import model_name

if TYPE_CHECKING:
    from memory_core.engine import Engine
    from memory_core.models.embeddings import Embedder

VALUES: Mapping[str, str] = {
    TOKEN_LIMIT: "400:2400:11",
    TOP_K: "0:10",
    "threshold": "0:0.5:6",
    SHARES: "80/10/10, 60/20/20, 40/40/20, 20/60/20",
    "summary_every": "2, 4, 6, 10, 20",
    "summary_tokens": "60, 120, 240",
    "window_rule": "exact, llama_index",
    STRATEGY: ", ".join(STRATEGIES),
    EMBEDDING: WORDLLAMA,
    "recall_method": "dense, bm25, hybrid",
    "weight_dense": "0:2:5",
    "weight_bm25": "0:2:5",
    "weight_neighbours": "0:1:6",
    "weight_recency": "0:1:6",
    "recency_days": "1, 7, 30, 90",
    "diversity": "0:1:6",
    "context_window": "2048, 4096, 8192",
    "reply_reserve": "256, 512, 1024",
}
"""What each axis sweeps at first."""

_MODE, _X, _Y = "lab-mode", "lab-x", "lab-y"
_JOBS, _ADDRESS = "lab-jobs", "lab-address"
_ABOUT = {name: (s.title, s.about) for name, s in STRATEGIES.items()} | dict(ASKING)
"""Who can make the prompts: title and what it does."""
_MOST = 4_000  # characters of an axis's values
_HELP = 'As a list "400, 800", a range "1:10" or evenly spaced "500:4000:8".'
_NAMES = {
    STRATEGY: f"Of: {', '.join((*STRATEGIES, *ASKING))}.",
    EMBEDDING: f"Of: {WORDLLAMA}, {MINILM} once downloaded, or the session's own by its name.",
    SHARES: 'Buffer, retrieved and state: "60/20/20, 40/40/20".',
    "window_rule": "Of: exact, llama_index.",
    "recall_method": "Of: dense, bm25, hybrid.",
}
"""What the values of an axis may be, where they are no numbers."""


def draw(page: PageState, place: LabPlace) -> None:
    """Draw the knobs."""
    st.markdown("**Sweep**")
    for key, name, label in ((_X, place.x, "Across"), (_Y, place.y, "Down")):
        _axis(place, key, name, label)
    seed(_MODE, place.mode)
    st.selectbox(
        "Planned by",
        list(_ABOUT),
        key=_MODE,
        format_func=lambda name: _ABOUT[name][0],
        help="\n\n".join(f"{title}: {about}" for title, about in _ABOUT.values()),
        on_change=_to_mode,
    )
    if asks(place):
        st.text(
            f"Each cell plays the whole conversation; {model_name(page.model)} is asked again and "
            "again."
        )
    st.caption("The other knobs stand as in the open session.")
    with st.expander("Where it runs", key="lab-where"):
        _where(page, place)


def asks(place: LabPlace) -> bool:
    """Return whether a sweep of what stands on the page asks a model."""
    named = {place.mode}
    for axis in (place.x, place.y):
        if axis == STRATEGY:
            named = {value.strip() for value in values_of(place, axis).split(",")}
    return bool(named & ASKING.keys())


def _where(page: PageState, place: LabPlace) -> None:
    seed(_JOBS, place.jobs)
    st.number_input(
        "Processes on this machine",
        0,
        MOST_JOBS,
        key=_JOBS,
        help="0: one for what is planned in seconds, one a processor for larger work.",
        on_change=_to_where,
    )
    if not is_operator(page.user):
        return
    seed(_ADDRESS, place.address)
    st.text_input(
        "or a Dask scheduler",
        key=_ADDRESS,
        placeholder="tcp://host:8786",
        max_chars=200,
        help="Where one machine is too small. Needs requirements-cluster.txt here and, with this "
        "program, on the workers. Work travels by pickle: name a scheduler you trust.",
        on_change=_to_where,
    )


def _to_where() -> None:
    place = place_of(mine())
    place.jobs = int(value_of(_JOBS) or 0)
    place.address = str(value_of(_ADDRESS) or "").strip()


def draw_button(place: LabPlace) -> None:
    """Draw what runs the sweep, beside the map it fills."""
    asked = place.to_ask
    running = place.running is not None
    if not asked:
        st.caption("A sweep needs at least one question that is used.")
    st.button(
        "Run the sweep",
        key="lab-run",
        type="primary",
        icon=":material/play_arrow:",
        disabled=running or not asked,
        on_click=run,
    )


def run() -> None:
    """Start a sweep of what stands on the page."""
    page, engine = mine(), resources.engine()
    place = place_of(page)
    if engine is None or place.subject is None or place.running is not None:
        return
    try:
        place.running = _start(page, engine, place)
    except MemoryInspectorError as exc:
        place.error = exc
        return
    place.show(None)


def _start(page: PageState, engine: Engine, place: LabPlace) -> Running | None:
    subject, chat = place.subject, page.chat
    if subject is None or chat is None:
        return None
    asked = _inputs(subject, place)
    axes = [Axis.parse(name, values_of(place, name)) for name in (place.x, place.y)]
    own = (chat.session.longterm or engine.longterm).embedder
    embedders: dict[str, Embedder] = {own.name: own}
    for at, axis in enumerate(axes):
        if axis.name == EMBEDDING:
            made = [_embedder(str(kind), own) for kind in axis.values]
            embedders |= {one.name: one for one in made}
            axes[at] = Axis(EMBEDDING, tuple(one.name for one in made))
    x, y = axes
    base = Point(page.settings, place.mode, own.name)
    cells = sum(map(len, grid(x, y, base))) * len(asked)
    key = sessions.key_for(page.model, page.api_key)
    address = place.address if is_operator(page.user) else ""
    if address:
        pool: Pool | None = Pool(address=address)
    else:
        pool = Pool(place.jobs) if place.jobs else None
    # subtle: a typed key does not travel to other machines, which have their own
    known = strategies(page.model, None if address else key)
    counter = chat.session.counter
    tools = chat.preview().tokens_by_source().get(Source.TOOLS, 0)
    folder = engine.config.folder if engine.config is not None else None
    cache = EmbeddingCache(folder / "embeddings.sqlite" if folder is not None else None)

    def prepare(progress: Progress) -> list[Sweep]:
        return [
            prepare_sweep(
                one,
                x,
                y,
                base=base,
                counter=counter,
                embedders=list(embedders.values()),
                cache=cache,
                strategies=known,
                tool_tokens=tools,
                progress=progress,
            )
            for one in asked
        ]

    return Running(prepare, total=cells, title=subject.title, pool=pool)


def _inputs(subject: Subject, place: LabPlace) -> list[SweepInput]:
    """Return what is swept: one conversation, or those of a file that have questions."""
    if not subject.parts:
        return [make_input(subject.title, subject.messages, place.questions, times=subject.times)]
    made, refused = [], InvalidInput("No conversation of the file has a question.")
    for part in subject.parts:
        try:
            made.append(from_conversation(part))
        except InvalidInput as exc:
            refused = exc
    if not made:
        raise refused
    return made


def values_of(place: LabPlace, name: str) -> str:
    """Return an axis's values as they are written."""
    return place.values.get(name, VALUES[name])


def _axis(place: LabPlace, key: str, name: str, label: str) -> None:
    seed(key, name)
    st.selectbox(
        label,
        list(TITLES),
        key=key,
        format_func=TITLES.__getitem__,
        on_change=_to_axis,
        args=(key,),
    )
    values = f"{key}-{name}"
    seed(values, values_of(place, name))
    st.text_input(
        f"Values of {TITLES[name]}",
        key=values,
        max_chars=_MOST,
        help=_NAMES.get(name, _HELP),
        label_visibility="collapsed",
        on_change=_to_values,
        args=(values, name),
    )


def _embedder(kind: str, own: Embedder) -> Embedder:
    """Return a local embedding model by its kind, or the session's own by its name."""
    if kind == own.name:
        return own
    choice = EmbeddingChoice(kind) if kind in (WORDLLAMA, MINILM) else None
    if choice is None or needs_download(choice):
        raise InvalidInput(
            f"There is no embedding model {kind!r:.60} on this machine.",
            next_step=f"Write {WORDLLAMA}, {MINILM} (once downloaded), {own.name}.",
        )
    return build_embedder(choice)


def _to_axis(key: str) -> None:
    place, name = place_of(mine()), str(value_of(key))
    if key == _X:
        place.x = name
    else:
        place.y = name


def _to_values(key: str, name: str) -> None:
    place_of(mine()).values[name] = str(value_of(key) or "")


def _to_mode() -> None:
    place_of(mine()).mode = str(value_of(_MODE))
