"""One turn as it happened: events with times, writes, usage beside ours, degradations."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ui.panels.tables import columns, table_height
from ui.problems import plain
from ui.scene import Scene
from ui.view_models.turn import AskRow, Event, TurnView, UsageRow, turn_view


def draw(scene: Scene) -> None:
    """Draw the last turn."""
    if scene.trace is None:
        st.caption(
            "After the first turn: what ran and how long it took, what was written, and the "
            "provider's token count beside our own."
        )
        return
    view = turn_view(scene.trace)
    st.caption(f"{view.headline} · {view.started}")
    if view.error:
        st.error(plain(view.error))
    for sentence in view.degradations:
        st.warning(plain(sentence))
    _events(view.events)
    _asks(view.asks)
    _usage(view.usage)
    lines = [*view.writes, _spent(view)]
    st.code("\n".join(filter(None, lines)), language=None, wrap_lines=True)


def _events(events: Sequence[Event]) -> None:
    if not events:
        return
    longest = max(event.milliseconds for event in events)
    st.dataframe(
        columns(
            [
                {
                    "at ms": round(event.at, 1),
                    "took ms": round(event.milliseconds, 1),
                    "": ("✗ " if event.failed else "") + event.kind,
                    "what": event.what,
                }
                for event in events
            ]
        ),
        key="turn-events",
        hide_index=True,
        height=table_height(len(events)),
        column_config={
            "took ms": st.column_config.ProgressColumn(
                "took ms", format="%.1f", min_value=0.0, max_value=max(longest, 1.0)
            )
        },
        alt="What happened in the turn, in order",
    )


def _asks(rows: Sequence[AskRow]) -> None:
    """Draw each request of the agent for the prompt, where they were watched."""
    if not rows:
        return
    times = "once" if len(rows) == 1 else f"{len(rows)} times"
    st.markdown(f"**The agent asked its memory for the prompt {times}**")
    st.dataframe(
        columns(
            [
                {
                    "": row.number,
                    "tokens": row.tokens,
                    "messages": row.messages,
                    "model calls": row.calls,
                    "embedded": row.embedded,
                    "took ms": round(row.milliseconds, 1),
                    "question": f"✗ {row.error}" if row.error else row.question,
                }
                for row in rows
            ]
        ),
        key="turn-asks",
        hide_index=True,
        height=table_height(len(rows)),
        alt="Requests for the prompt: what each returned and what it cost",
    )


def _usage(rows: Sequence[UsageRow]) -> None:
    known = [row for row in rows if row.theirs_prompt is not None]
    if not known:
        st.caption("The model reports no usage of its own; the counts are ours.")
        return
    for row in known:
        cost = f" · ${row.cost:.6f}" if row.cost is not None else ""
        off = f" ({row.off:+.1%})" if row.off is not None else ""
        st.text(
            f"{row.purpose}: ours {row.ours_prompt:,} + {row.ours_reply:,}{off}, "
            f"provider {row.theirs_prompt:,} + {row.theirs_reply:,}{cost}"
        )


def _spent(view: TurnView) -> str:
    return "time: " + " · ".join(f"{name} {ms:,.1f} ms" for name, ms in view.spent)
