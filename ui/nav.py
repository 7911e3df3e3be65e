"""Page frame: configuration and the sidebar's links. Every page calls :func:`begin` first.

``pages/`` is Streamlit's own discovered folder with its default list hidden. A page's file may
carry a number in front (``1_Time_travel.py``); it is known by the rest of its name. Links are
drawn for the pages that are there, in the order given here, others after them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from ui import banner

ROOT = Path(__file__).resolve().parents[1]
HOME = "app.py"
TAB = "🧠"  # drawn by the browser; a material icon would be fetched from a server on the internet


@dataclass(frozen=True)
class Page:
    """One page: its file's name without number and ending, title, icon, a sentence on it."""

    name: str
    title: str
    icon: str
    help: str = ""


PLAYGROUND = Page("", "Playground", ":material/forum:", "Chat, and see what the agent remembers.")
PAGES = (
    Page("time_travel", "Time travel", ":material/history:", "Any turn as it was."),
    Page("why", "Why?", ":material/help:", "What happened to each message, and why."),
    Page("compare", "Compare", ":material/compare:", "One chat under several memories."),
    Page("tuning_lab", "Tuning lab", ":material/tune:", "Find token limit and top_k."),
    Page("sessions", "Sessions", ":material/folder:", "Import, export, tidy up."),
    Page("storage", "Storage", ":material/database:", "What is stored where."),
)


def begin(title: str) -> None:
    """Configure the page of this title and draw the links to all pages in the sidebar."""
    scripts = _scripts()
    known = {page.name for page in PAGES}
    others = [
        Page(name, _title(name), ":material/article:") for name in scripts if name not in known
    ]
    pages = [page for page in (*PAGES, *others) if page.name in scripts]
    st.set_page_config(page_title=f"{title} · Memory Inspector", page_icon=TAB, layout="wide")
    if pages:  # subtle: without a pages folder Streamlit knows no page to link to
        _link(HOME, PLAYGROUND)
        for page in pages:
            _link(scripts[page.name], page)
    banner.draw(title)


def _link(script: str, page: Page) -> None:
    st.sidebar.page_link(script, label=page.title, icon=page.icon, help=page.help or None)


def _scripts() -> dict[str, str]:
    """Return the scripts in the folder by the names they are known by."""
    found = sorted((ROOT / "pages").glob("*.py"))
    return {re.sub(r"^\d+[_ -]*", "", p.stem).lower(): f"pages/{p.name}" for p in found}


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
