"""Settings travel in a link and come back equal, or are refused in words."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.settings import MemorySettings
from ui.sharing import link, settings_from_link

settings = st.builds(
    MemorySettings,
    system_prompt=st.text(
        st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=50
    ),
    token_limit=st.integers(1, 10_000_000),
    top_k=st.integers(0, 1000),
    threshold=st.floats(-1, 1),
    scope=st.sampled_from(["user", "session"]),
    summarise=st.booleans(),
    share_state=st.floats(0, 1),
)


@given(settings)
def test_link_gives_the_settings_back(given_settings):
    """Whatever the knobs, the settings read from a link are those it was made of."""
    address = link("http://localhost:8501/?token_limit=7", given_settings)
    query = dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))
    assert (settings_from_link(query) or MemorySettings()) == given_settings


def test_defaults_need_no_parameters():
    """A link of the default settings is the bare address."""
    assert link("http://localhost:8501/", MemorySettings()) == "http://localhost:8501/"
    assert settings_from_link({"utm_source": "x"}) is None


@pytest.mark.parametrize(
    "query",
    [
        {"token_limit": "-1"},
        {"token_limit": "1e3"},
        {"token_limit": "[" * 3000},
        {"top_k": "true"},
        {"threshold": "Infinity"},
        {"threshold": "NaN"},
        {"scope": "all"},
        {"summarise": "1"},
        {"system_prompt": "x" * 5000},
    ],
)
def test_unusable_value_is_refused_by_name(query):
    """A value of another type, out of range or endless is refused, and the knob is named."""
    with pytest.raises(InvalidInput, match=next(iter(query))):
        settings_from_link(query)
