"""Embedding models behind one small interface, and the way to LlamaIndex's and back.

An :class:`Embedder` has a name that is recorded with the collection it fills, a dimension, and
:meth:`~Embedder.embed`. Its vectors have length 1, whatever the model gives. Blank text never
reaches a model: embedding it is a ``ValueError``, since nothing could ever be near it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.embeddings.openai import OpenAIEmbedding
from pydantic import PrivateAttr

from memory_core.errors import ModelKeyRefused, ModelRefused, ModelUnreachable
from memory_core.models.build import clients
from memory_core.models.catalogue import (
    HIDDEN,
    MINILM,
    OPENAI,
    OPENAI_LIKE,
    OPENAI_URL,
    WORDLLAMA,
    EmbeddingChoice,
    ModelChoice,
)
from memory_core.models.failures import explain

Vectors: TypeAlias = npt.NDArray[np.float32]

_WORDLLAMA_DIMENSION = 256
_MINILM_DIMENSION = 384


class Embedder(Protocol):
    """Turns texts into vectors.

    ``name`` is recorded with the collection, ``dimension`` is the numbers of one vector,
    ``embedded`` counts the texts embedded so far.
    """

    @property
    def name(self) -> str:
        """The name under which its vectors may be compared."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers one vector has."""
        ...

    @property
    def embedded(self) -> int:
        """How many texts were embedded so far."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of length 1, float32 of shape ``(len(texts), dimension)``."""
        ...


class FunctionEmbedder:
    """An :class:`Embedder` made of any function from texts to vectors."""

    def __init__(
        self, *, name: str, dimension: int | None, function: Callable[[list[str]], Any]
    ) -> None:
        """Wrap a function; a ``dimension`` of ``None`` is found by embedding one word."""
        self.name = name
        self.embedded = 0
        self._function = function
        self._known = dimension
        self._lock = threading.Lock()

    @cached_property
    def dimension(self) -> int:
        """How many numbers one vector has."""
        if self._known is None:
            self._known = int(self._vectors(["dimension"]).shape[1])
        return self._known

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of length 1, float32 of shape ``(len(texts), dimension)``.

        Raises ``ValueError`` for blank text, and of :mod:`memory_core.errors` what the model's
        failure means.
        """
        checked = [_checked(text) for text in texts]
        if not checked:
            return np.zeros((0, self.dimension), np.float32)
        vectors = self._vectors(checked)
        with self._lock:
            self.embedded += len(checked)
        return vectors

    def _vectors(self, texts: list[str]) -> Vectors:
        made = np.asarray(self._function(texts), np.float32)
        if (
            made.ndim != 2
            or made.shape[0] != len(texts)
            or self._known not in (None, made.shape[1])
        ):
            raise ModelRefused(
                f"The embedding model {self.name} gave vectors of shape {made.shape} for "
                f"{len(texts)} texts of {self._known} numbers."
            )
        lengths = np.linalg.norm(made, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise ModelRefused(
                f"The embedding model {self.name} gave a vector without a direction."
            )
        unit: Vectors = (made / lengths).astype(np.float32)
        return unit


class LlamaIndexEmbedding(BaseEmbedding):
    """Any :class:`Embedder` as LlamaIndex's ``BaseEmbedding``. Blank text becomes zeros."""

    _embedder: Embedder = PrivateAttr()

    def __init__(self, embedder: Embedder) -> None:
        """Wrap an embedder."""
        super().__init__(model_name=embedder.name)
        self._embedder = embedder

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises this class."""
        return "LlamaIndexEmbedding"

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        out = np.zeros((len(texts), self._embedder.dimension), np.float32)
        filled = [i for i, text in enumerate(texts) if text.strip()]
        if filled:
            out[filled] = self._embedder.embed([texts[i] for i in filled])
        rows: list[list[float]] = out.tolist()
        return rows


def from_llama_index(model: BaseEmbedding, *, name: str = "") -> FunctionEmbedder:
    """Return an :class:`Embedder` that asks one of LlamaIndex's."""
    return FunctionEmbedder(
        name=name or model.model_name, dimension=None, function=model.get_text_embedding_batch
    )


def build_embedder(choice: EmbeddingChoice, *, key: str | None = None) -> Embedder:
    """Return the embedder of a choice.

    Raises :class:`~memory_core.errors.ModelKeyRefused` when OpenAI is chosen without a key.
    Nothing is downloaded here; see :func:`needs_download`.
    """
    if choice.kind == WORDLLAMA:
        return _wordllama()
    if choice.kind == MINILM:
        return _minilm()
    if choice.kind == OPENAI and not key:
        raise ModelKeyRefused("OpenAI's embeddings need a key, and none was given.")
    return _on_server(choice, key)


def needs_download(choice: EmbeddingChoice) -> bool:
    """Return whether the first use of this model fetches its weights from the network."""
    if choice.kind != MINILM:
        return False
    function = _minilm_class()
    return not (
        Path(function.DOWNLOAD_PATH) / function.EXTRACTED_FOLDER_NAME / "model.onnx"
    ).exists()


def _wordllama() -> FunctionEmbedder:
    with _logging_as_it_was():
        from wordllama import WordLlama

    spec = find_spec("wordllama")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    model = WordLlama.load(cache_dir=folder, disable_download=True, trunc_dim=_WORDLLAMA_DIMENSION)
    return FunctionEmbedder(
        name=f"wordllama-{_WORDLLAMA_DIMENSION}",
        dimension=_WORDLLAMA_DIMENSION,
        function=model.embed,
    )


@contextmanager
def _logging_as_it_was() -> Iterator[None]:
    """Undo what an import does to the root logger: how a program logs is its own to say."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        for handler in root.handlers[:]:
            if handler not in handlers:
                root.removeHandler(handler)
        root.setLevel(level)


def _minilm() -> FunctionEmbedder:
    model = _minilm_class()()

    def function(texts: list[str]) -> Any:
        try:
            return model(texts)
        except Exception as exc:
            if needs_download(EmbeddingChoice(MINILM)):
                raise ModelUnreachable(
                    "The weights of MiniLM could not be downloaded.",
                    next_step="Go online once, or choose the built-in embeddings.",
                ) from exc
            raise ModelRefused(f"MiniLM failed: {type(exc).__name__}: {exc}") from exc

    return FunctionEmbedder(name="all-MiniLM-L6-v2", dimension=_MINILM_DIMENSION, function=function)


def _minilm_class() -> Any:
    # subtle: onnxruntime writes telemetry files when imported, unless told before
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

    return ONNXMiniLM_L6_V2


def _on_server(choice: EmbeddingChoice, key: str | None) -> FunctionEmbedder:
    url = choice.base_url or OPENAI_URL
    # By model_name, not model: LlamaIndex refuses names under "model" that it does not know.
    model = OpenAIEmbedding(model_name=choice.model, api_key=HIDDEN, api_base=url, max_retries=1)
    model._client, model._aclient = clients(  # noqa: SLF001 - so that no field holds the key
        url, key, timeout_seconds=choice.timeout_seconds, retries=1
    )
    as_model = ModelChoice(
        OPENAI_LIKE, choice.model, url, timeout_seconds=choice.timeout_seconds, retries=1
    )

    def function(texts: list[str]) -> list[list[float]]:
        try:
            return model.get_text_embedding_batch(texts)
        except Exception as exc:
            raise explain(exc, as_model, keys=[key]) from exc

    return FunctionEmbedder(name=choice.model, dimension=None, function=function)


def _checked(text: str) -> str:
    if not text.strip():
        raise ValueError("blank text has no embedding")
    return text.encode("utf-8", "replace").decode("utf-8")
