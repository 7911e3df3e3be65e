"""Backup, restore, and forget me: each tells before, asks, and reports after.

Backups hold every user, so only an operator makes them: the local person, or who is named in
``MEMORY_OPERATORS`` (ids separated by commas, in the environment or the secrets).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.session import utc_now
from ui import resources
from ui.operators import is_operator
from ui.problems import plain
from ui.state import PageState, mine, value_of
from ui.storage.place import place_of
from ui.view_models.sessions_page import size_text
from ui.view_models.text import plural

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory_core.backups import Backup
    from memory_core.engine import Engine

WORDS = "forget me"
_WORDS, _BACKUP = "forget-words", "backup-chosen"


def draw_backups(page: PageState, engine: Engine) -> None:
    """Draw the backups and the buttons that make and restore one."""
    if engine.opened is None:
        return
    place, found = place_of(page), engine.opened.backups.all()
    st.markdown("**Backups**")
    st.caption(
        "Everything of every user in one file, sealed where there is a key. A backup can be "
        "restored onto another backend: point `MEMORY_STORE_URL` at it first."
    )
    st.button("Back up now", key="backup-make", icon=":material/save:", on_click=_make)
    if not found:
        st.caption("There is no backup yet.")
        return
    by_name = {backup.path.name: backup for backup in found}
    st.selectbox(
        "Backup",
        list(by_name),
        key=_BACKUP,
        format_func=lambda name: _label(by_name.get(name)),
        on_change=_ask,
        args=("",),
    )
    chosen = by_name.get(str(value_of(_BACKUP))) or found[0]
    with st.container(horizontal=True):
        if place.asking == chosen.path.name:
            st.button(
                "Restore: add what is missing here",
                key="backup-sure",
                type="primary",
                on_click=_restore,
                args=(chosen.path.name,),
            )
            st.button("Cancel", key="backup-cancel", on_click=_ask, args=("",))
        else:
            st.button(
                "Restore …",
                key="backup-restore",
                icon=":material/settings_backup_restore:",
                on_click=_ask,
                args=(chosen.path.name,),
            )
            st.download_button(
                "Download",
                chosen.path.read_bytes,
                chosen.path.name,
                "application/gzip",
                key="backup-download",
                on_click="ignore",
                icon=":material/download:",
            )
    if place.asking == chosen.path.name:
        st.caption("Sessions that are here already are kept as they are; nothing is overwritten.")


def draw_forget(page: PageState, engine: Engine) -> None:
    """Draw the way to have everything of this user erased, and the report afterwards."""
    place = place_of(page)
    st.markdown("**Forget me**")
    if place.report is not None:
        _report(page)
    count = len(engine.sessions(page.user)) + len(engine.store.sessions(page.user, deleted=True))
    st.caption(
        f"Erases everything of yours everywhere: {plural(count, 'session')} with all messages, "
        "traces, states and summaries, long-term memories and their vectors, and your part of "
        "every backup. It cannot be undone; export your sessions first if you may want them back."
    )
    with st.form("forget-form", border=False):
        left, right = st.columns(2, vertical_alignment="bottom")
        left.text_input(f"Write “{WORDS}” to confirm", key=_WORDS, max_chars=20)
        right.form_submit_button(
            "Erase it all",
            icon=":material/delete_forever:",
            width="stretch",
            on_click=_forget,
        )


def _report(page: PageState) -> None:
    report = place_of(page).report
    if report is None:
        return
    rows = ", ".join(
        plural(count, kind.removesuffix("s")) for kind, count in report.rows.items() if count
    )
    st.success(
        plain(
            f"Forgotten: {rows or 'no rows'}; {plural(report.vectors, 'vector')} in "
            f"{plural(report.collections, 'collection')}; "
            f"{plural(len(report.backups), 'backup')} rewritten."
        ),
        icon=":material/check_circle:",
    )
    for note in report.notes:
        st.caption(plain(note))


def _label(backup: Backup | None) -> str:
    if backup is None:
        return "?"
    return (
        f"{backup.created:%Y-%m-%d %H:%M} UTC · {plural(backup.users, 'user')} · "
        f"{size_text(backup.size)}"
    )


def _act(action: Callable[[PageState, Engine], str]) -> None:
    page, engine = mine(), resources.engine()
    if engine is None:
        return
    place = place_of(page)
    place.said, place.error = "", None
    try:
        place.said = action(page, engine)
    except MemoryInspectorError as exc:
        place.error = exc
    except OSError as exc:
        place.error = MemoryInspectorError(
            f"The backup folder cannot be used: {exc.strerror or exc}.",
            next_step="Free some space or correct the folder's rights, then try again.",
        )


def _ask(name: str) -> None:
    place_of(mine()).asking = name


def _make() -> None:
    def make(page: PageState, engine: Engine) -> str:
        if engine.opened is None or not is_operator(page.user):
            raise InvalidInput("Only an operator makes backups.")
        made = engine.opened.backups.create(engine.store, now=utc_now())
        return f"Backed up {plural(made.users, 'user')} to {made.path.name}."

    _act(make)


def _restore(name: str) -> None:
    def restore(page: PageState, engine: Engine) -> str:
        if engine.opened is None or not is_operator(page.user):
            raise InvalidInput("Only an operator restores backups.")
        chosen = next((b for b in engine.opened.backups.all() if b.path.name == name), None)
        if chosen is None:
            raise InvalidInput("This backup is not there any more.")
        done = engine.opened.backups.restore(chosen.path, engine.store)
        return (
            f"Restored {plural(len(done.sessions), 'session')} with "
            f"{plural(done.turns, 'turn')}; {len(done.kept):,} were here already. Vectors follow "
            "with the next turn, or at once with “Re-embed all memories”."
        )

    _ask("")
    _act(restore)


def _forget() -> None:
    def forget(page: PageState, engine: Engine) -> str:
        if str(value_of(_WORDS) or "").strip().casefold() != WORDS:
            raise InvalidInput(
                "Nothing was erased.", next_step=f"Write “{WORDS}” into the field to confirm."
            )
        if page.compare is not None and page.compare.running is not None:
            page.compare.running.stop()
        report = engine.forget_user(page.user)
        page.compare = page.lab = page.asking = None
        page.info = page.chat = page.live = page.player = page.scene = page.past = None
        page.deleted = page.parted = page.sessions_place = page.chronicle = page.place = None
        place_of(page).report = report
        return ""

    _act(forget)
