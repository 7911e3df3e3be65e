"""How far the ledger has read, while it reads: a slice per look, then the page follows."""

from __future__ import annotations

import streamlit as st

from ui.state import mine
from ui.time_travel.chronicle import chronicle_of

LOOK_IN = 0.1  # seconds between two slices of folding


@st.fragment(run_every=LOOK_IN, key="folding")
def draw() -> None:
    """Fold some turns and draw how far it is."""
    past = chronicle_of(mine())
    if past is None or past.complete:
        st.rerun()
    past.fold()
    if past.complete:
        st.rerun()
    st.progress(past.folded / past.turns, f"Reading turn {past.folded:,} of {past.turns:,}")
