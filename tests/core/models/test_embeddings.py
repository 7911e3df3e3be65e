"""Embedding models behind one interface."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import TextNode

from memory_core.errors import ModelKeyRefused, ModelRateLimited, ModelRefused, ModelUnreachable
from memory_core.models.catalogue import MINILM, OPENAI, OPENAI_LIKE, EmbeddingChoice
from memory_core.models.embeddings import (
    FunctionEmbedder,
    LlamaIndexEmbedding,
    build_embedder,
    from_llama_index,
    needs_download,
)
from memory_core.testing import HashEmbedder
from tests import wire as wire_server
from tests.wire import Fail

KEY = "wire-secret-0123456789"


@pytest.fixture(scope="module")
def wordllama():
    """Load the embedded default once."""
    return build_embedder(EmbeddingChoice())


def test_the_default_is_embedded_and_knows_meaning(wordllama: Any):
    """Vectors have length 1, come without a download, and put related texts nearer."""
    vectors = wordllama.embed(["I love my dog", "My puppy is lovely", "The tax form is due"])
    assert wordllama.name == "wordllama-256"
    assert vectors.shape == (3, wordllama.dimension) == (3, 256)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    assert not needs_download(EmbeddingChoice())


def test_loading_the_default_leaves_logging_alone():
    """A program that uses the embeddings logs as it chose to: no handler, no other level."""
    code = (
        "import logging; from memory_core.models.embeddings import build_embedder\n"
        "from memory_core.models.catalogue import EmbeddingChoice\n"
        "root = logging.getLogger(); before = (list(root.handlers), root.level)\n"
        "build_embedder(EmbeddingChoice()).embed(['bread'])\n"
        "assert (list(root.handlers), root.level) == before, (root.handlers, root.level)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_texts_are_counted_and_batches_agree(wordllama: Any):
    """A text has the same vector alone and in a batch; every one is counted."""
    before = wordllama.embedded
    texts = ["short", "a much longer text about bread and ovens " * 20, "中文 🦊"]
    together = wordllama.embed(texts)
    alone = np.vstack([wordllama.embed([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-5)
    assert wordllama.embedded == before + 6


@pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
def test_blank_text_never_reaches_the_model(wordllama: Any, blank: str):
    """Blank text is refused before the model sees it, whatever stands beside it."""
    with pytest.raises(ValueError, match="blank"):
        wordllama.embed(["fine", blank])


def test_nothing_to_embed_is_no_call(wordllama: Any):
    """No texts give no vectors of the right width."""
    assert wordllama.embed([]).shape == (0, 256)


@pytest.mark.parametrize("odd", ["\u200b", "\0", "\ud83d", "…", "<s>"])
def test_odd_text_has_a_vector(wordllama: Any, odd: str):
    """Invisible characters, half an emoji and control-token look-alikes are embedded."""
    assert np.isfinite(wordllama.embed([odd])).all()


def test_a_model_that_gives_nonsense_is_told():
    """Vectors of a wrong shape, of length 0 or not a number are refused with the model's name."""
    for made in ([[1.0, 2.0, 3.0]], [[0.0, 0.0]], [[float("nan"), 1.0]], [1.0, 2.0]):
        embedder = FunctionEmbedder(name="odd", dimension=2, function=lambda _, made=made: made)
        with pytest.raises(ModelRefused, match="odd"):
            embedder.embed(["text"])


def test_minilm_says_that_it_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whether weights must be fetched is known before; building fetches nothing."""
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", tmp_path)
    assert needs_download(EmbeddingChoice(MINILM))
    embedder = build_embedder(EmbeddingChoice(MINILM))
    assert (embedder.name, embedder.dimension) == ("all-MiniLM-L6-v2", 384)
    assert list(tmp_path.iterdir()) == []
    model = tmp_path / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME / "model.onnx"
    model.parent.mkdir()
    model.touch()
    assert not needs_download(EmbeddingChoice(MINILM))


def test_minilm_switches_telemetry_off_first(monkeypatch: pytest.MonkeyPatch):
    """When its runtime is loaded, the switch that keeps it from writing telemetry is set."""
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    found = []
    monkeypatch.setattr(
        ONNXMiniLM_L6_V2,
        "__init__",
        lambda self: found.append(os.environ["ORT_DISABLE_TELEMETRY"]),
    )
    build_embedder(EmbeddingChoice(MINILM))
    assert found == ["1"]


def test_minilm_without_a_network_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A download that fails is told with what to do; nothing half-done is kept as weights."""
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", tmp_path)
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "MODEL_DOWNLOAD_URL", "http://127.0.0.1:9/onnx.tar.gz")
    with pytest.raises(ModelUnreachable, match="could not be downloaded"):
        build_embedder(EmbeddingChoice(MINILM)).embed(["text"])
    assert needs_download(EmbeddingChoice(MINILM))


def test_llama_index_can_use_an_embedder():
    """The adapter embeds texts and queries alike, blank text as zeros, and works in an index."""
    model = LlamaIndexEmbedding(HashEmbedder(16))
    assert model.model_name == "hash-16"
    one, blank = model.get_text_embedding_batch(["red oven", " "])
    assert one == model.get_query_embedding("red oven")
    assert blank == [0.0] * 16
    nodes = [TextNode(text=text) for text in ("red oven", "blue sky")]
    index = VectorStoreIndex(nodes, embed_model=model)
    (hit,) = index.as_retriever(similarity_top_k=1).retrieve("the red oven")
    assert hit.node.text == "red oven"


async def test_the_async_way_is_the_same():
    """Asked asynchronously the adapter gives the same vectors."""
    model = LlamaIndexEmbedding(HashEmbedder(16))
    assert await model.aget_query_embedding("oven") == model.get_query_embedding("oven")
    assert await model.aget_text_embedding("oven") == model.get_query_embedding("oven")


def test_an_embedding_of_llama_index_becomes_an_embedder():
    """The way back finds the dimension by itself and normalises."""
    embedder = from_llama_index(MockEmbedding(embed_dim=4), name="mock")
    assert embedder.name == "mock"
    assert embedder.dimension == 4
    assert np.allclose(embedder.embed(["a"]), 0.5)
    assert embedder.embedded == 1


@pytest.mark.parametrize("kind", [OPENAI, OPENAI_LIKE])
def test_embeddings_of_a_server(kind: str):
    """Many texts are embedded in order over HTTP under the model's name, the key in the header."""
    with wire_server.serve() as wire:
        embedder = build_embedder(EmbeddingChoice(kind, "some-embedding", wire.url), key=KEY)
        texts = [f"text {'x' * i}" for i in range(150)]
        vectors = embedder.embed(texts)
        assert vectors.shape == (150, embedder.dimension) == (150, wire.dimension)
        assert np.allclose(vectors[7], embedder.embed([texts[7]])[0], atol=1e-6)
        assert {body["model"] for body in wire.requests} == {"some-embedding"}
        assert {h["authorization"] for h in wire.headers} == {f"Bearer {KEY}"}
        assert KEY not in repr(embedder)


def test_failures_of_an_embedding_server_are_told():
    """Failures come as our errors, without the key."""
    with wire_server.serve() as wire:
        embedder = build_embedder(EmbeddingChoice(OPENAI_LIKE, "m", wire.url), key=KEY)
        wire.queue(Fail(401, f"bad {KEY}"))
        with pytest.raises(ModelKeyRefused) as caught:
            embedder.embed(["text"])
        assert KEY not in f"{caught.value} {caught.value.__cause__!r}"
        wire.queue(*[Fail(429, "no", "insufficient_quota", {"retry-after-ms": "1"})] * 2)
        with pytest.raises(ModelRateLimited):
            embedder.embed(["text"])


def test_openai_without_a_key_is_refused_at_once():
    """No request is made without a key."""
    with pytest.raises(ModelKeyRefused):
        build_embedder(EmbeddingChoice(OPENAI, "text-embedding-3-small"))
