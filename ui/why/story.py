"""The chosen thing: found by its words, told in plain words, with what it came from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import streamlit as st

from memory_core.fate import MESSAGE
from memory_core.stories import Line, Story, tell
from ui.state import mine, seed, value_of
from ui.view_models.text import plural
from ui.view_models.why import called, look, matching, related, whole
from ui.why.asking import Asking

_FIND, _ITEM = "why-find", "why-item"
_MOST = 4_000  # characters of a text that are drawn
_LENGTH = 80  # characters of a thing in the list


def draw(asking: Asking) -> None:
    """Draw the choice, the text, the story, and what it is related to."""
    ledger, stored = asking.chronicle.ledger, asking.chronicle.message
    st.text_input("Find by its words", key=_FIND, placeholder="nuts, Porto, 4 people …")
    wanted = str(value_of(_FIND) or "")
    options = matching(ledger, asking.kind, wanted, stored)
    if asking.item not in options:
        options = [asking.item, *options]
    seed(_ITEM, asking.item)
    st.selectbox(
        "Click a cell of the matrix, or choose here",
        options,
        key=_ITEM,
        format_func=lambda i: called(ledger, asking.kind, i, stored, length=_LENGTH),
        on_change=_chosen,
    )
    if wanted and len(options) == 1:
        st.caption("Nothing else holds these words.")
    text = whole(ledger, asking.kind, asking.item, stored)
    if text:
        st.code(text[:_MOST], language=None, wrap_lines=True)
    message = stored.get(asking.item) if asking.kind == MESSAGE else None
    told = tell(ledger, asking.kind, asking.item, message)
    st.markdown(f"**Its life** · now: {look(told.now, asking.kind).words}")
    st.html(story_html(told.lines))
    if told.left_out:
        st.caption(f"and {plural(told.left_out, 'line')} more")
    st.caption(_influence(told))
    linked = related(ledger, asking.kind, asking.item)
    if linked:
        st.markdown("**Came from, and became**")
        for kind, item in linked:
            st.button(
                f"{kind} {_escaped(called(ledger, kind, item, stored, length=56))}",
                key=f"why-to-{kind}-{item}",
                type="tertiary",
                icon=":material/arrow_forward:",
                on_click=_go_to,
                args=(kind, item),
            )


def story_html(lines: Sequence[Line]) -> str:
    """Return a story as a list, the turns in front of each sentence."""
    items = "".join(
        f'<li style="margin:.15em 0"><b>{_turns(line)}</b> {escape(line.text)}</li>'
        for line in lines
    )
    return (
        '<ol style="list-style:none;margin:0;padding-left:.6em;border-left:3px solid #0072B266;'
        f'overflow-wrap:anywhere;font-size:.9rem">{items}</ol>'
    )


def _turns(line: Line) -> str:
    if line.first == line.last:
        return f"Turn {line.first:,}"
    return f"Turns {line.first:,}-{line.last:,}"


def _influence(told: Story) -> str:
    if not told.prompts:
        return "No prompt ever held anything of it."
    return f"Something of it stood in the prompts of {_runs(told.prompts)}."


def _runs(runs: Iterable[tuple[int, int]]) -> str:
    shown = [f"turn {a:,}" if a == b else f"turns {a:,} to {b:,}" for a, b in runs]
    more = f" and {len(shown) - 6} more stretches" if len(shown) > 6 else ""
    return ", ".join(shown[:6]) + more


def _chosen() -> None:
    asking = mine().asking
    if asking is not None:
        asking.choose(asking.kind, str(value_of(_ITEM)))


def _go_to(kind: str, item: str) -> None:
    asking = mine().asking
    if asking is not None:
        asking.choose(kind, item)


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>#|$~:" else c for c in text)
