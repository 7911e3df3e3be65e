"""Signing in and out with Streamlit's own login (OIDC), where the secrets file has ``[auth]``.

Who is signed in is the user of every store call, see :mod:`ui.visitor`.
"""

from __future__ import annotations

import streamlit as st

from ui import resources
from ui.problems import plain
from ui.visitor import signed_in


def draw() -> None:
    """Draw who is signed in, with the way in or out; nothing where no login is configured."""
    if not resources.secrets().get("auth"):
        return
    name = signed_in()
    with st.sidebar:
        if name:
            st.caption(f":material/person: {plain(name)}")
            st.button("Sign out", key="sign-out", icon=":material/logout:", on_click=st.logout)
        else:
            st.button("Sign in", key="sign-in", icon=":material/login:", on_click=st.login)
            st.caption("Signed in, your sessions are there again on every visit.")
