"""Who is looking: the local person, somebody signed in, or a passing visitor.

On one's own machine there is one person, ``local``, and what they said is there again after a
restart. An app that is served to others must not show one visitor's chats to the next: a
visitor who is signed in (Streamlit's own ``st.login``) is known by the e-mail address, and
everybody else is a stranger with an empty catalogue of their own, until the tab is closed.
"""

from __future__ import annotations

import os
import uuid

import streamlit as st

LOCAL = "local"
_OWN_MACHINE = ("127.0.0.1", "::1", "localhost")


def who() -> str:
    """Return the id of the user of this browser tab."""
    email = signed_in()
    if email:
        return email
    if os.environ.get("MEMORY_INSPECTOR_VISITORS") != "separate" and served_locally():
        return LOCAL
    return f"visitor-{uuid.uuid4().hex}"


def served_locally() -> bool:
    """Return whether the server listens on this machine only."""
    return (st.get_option("server.address") or "") in _OWN_MACHINE


def signed_in() -> str:
    """Return who is signed in, empty when nobody is."""
    user = st.user
    if not getattr(user, "is_logged_in", False):
        return ""
    return str(user.get("email") or user.get("sub") or "")
