"""Page frame: configuration and the sidebar's links. Every page calls :func:`begin` first.

Links are drawn for the pages whose files exist, in the order given here; ``pages/`` is
Streamlit's own discovered folder with its default list hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Page:
    """One page: its script, title, icon and a sentence on what it shows."""

    script: str
    title: str
    icon: str
    help: str


PAGES = (
    Page("app.py", "Playground", ":material/forum:", "Chat, and see what the agent remembers."),
    Page("pages/1_Time_travel.py", "Time travel", ":material/history:", "Any turn as it was."),
    Page("pages/2_Why.py", "Why?", ":material/help:", "What happened to each message, and why."),
    Page("pages/3_Compare.py", "Compare", ":material/compare:", "One chat under several memories."),
    Page("pages/tuning.py", "Tuning lab", ":material/tune:", "Find token limit and top_k."),
    Page("pages/sessions.py", "Sessions", ":material/folder:", "Import, export, tidy up."),
    Page("pages/storage.py", "Storage", ":material/database:", "What is stored where."),
)


def begin(title: str) -> None:
    """Configure the page of this title and draw the links to all pages in the sidebar."""
    page = next(p for p in PAGES if p.title == title)
    st.set_page_config(
        page_title=f"{page.title} · Memory Inspector", page_icon=page.icon, layout="wide"
    )
    known = {p.script for p in PAGES}
    for link in (*PAGES, *_others(known)):
        if (ROOT / link.script).is_file():
            st.sidebar.page_link(link.script, label=link.title, icon=link.icon, help=link.help)


def _others(known: set[str]) -> list[Page]:
    """Return pages in the folder that are not listed above."""
    found = sorted((ROOT / "pages").glob("*.py"))
    scripts = [f"pages/{path.name}" for path in found]
    return [
        Page(script, Path(script).stem.replace("_", " ").capitalize(), ":material/article:", "")
        for script in scripts
        if script not in known
    ]
