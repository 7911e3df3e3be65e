"""Exact token counts per message, cached, with the model's own encoding, offline.

Both encodings are shipped inside llama-index-core; tiktoken is pointed there, so no download
happens. The overheads are those OpenAI documents for its chat models ("How to count tokens with
tiktoken", OpenAI Cookbook): 3 tokens around each message, 1 more where a name is sent, 3 that
prime the reply. Tool calls and tool definitions have no documented rule; they are counted as
their names and JSON text, which is what providers render.

Text that looks like a control token (``<|endoftext|>``) is counted as the text it is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from memory_core.messages import Json, Message

if TYPE_CHECKING:
    import tiktoken

PER_MESSAGE = 3
PER_NAME = 1
PRIMING = 3
CACHED_TEXTS = 50_000
_CACHE_UP_TO = 20_000  # characters; longer texts are rare and would fill memory
_LONGEST_WORD = 100  # characters
# No token of the encodings in use runs across a single space between two other characters, so
# text is counted word by word and a word is encoded only once. A property test holds this.
_WORDS = re.compile(r"(?<=\S)(?= \S)")

# Model families whose encoding is cl100k_base; everything newer from OpenAI is o200k_base.
_CL100K_FAMILIES = ("gpt-4-", "gpt-3.5", "text-embedding-", "gpt-35")


def encoding_for(model: str) -> str:
    """Return the tiktoken encoding of a model name; unknown models are counted in o200k_base."""
    if model == "gpt-4" or model.startswith(_CL100K_FAMILIES):
        return "cl100k_base"
    return "o200k_base"


@lru_cache(maxsize=4)
def load_encoding(name: str) -> tiktoken.Encoding:
    """Return a tiktoken encoding from the files inside llama-index-core, without a network."""
    spec = importlib.util.find_spec("llama_index.core")
    if spec is not None and spec.origin:
        folder = Path(spec.origin).parent / "_static" / "tiktoken_cache"
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    return tiktoken.get_encoding(name)


class TokenCounter:
    """Counts tokens of texts and messages under one encoding and one price per picture.

    Two counters with the same :attr:`id` give the same counts, so a stored count can be reused.
    ``encoded`` is how many tokens were really encoded (cache hits cost nothing).
    """

    def __init__(self, encoding: str = "o200k_base", *, image_tokens: int = 765) -> None:
        self.encoding = encoding
        self.image_tokens = image_tokens
        self.encoded = 0
        self._cache: dict[str, int] = {}
        self._words: dict[str, int] = {}

    @property
    def id(self) -> str:
        """The name under which this counter's results may be stored and reused."""
        return f"{self.encoding}/{self.image_tokens}"

    def text(self, text: str) -> int:
        """Return the tokens of a text."""
        if not text:
            return 0
        known = self._cache.get(text)
        if known is None:
            known = sum(map(self._word, _WORDS.split(text)))
            if len(text) <= _CACHE_UP_TO:
                _keep(self._cache, text, known)
        return known

    def _word(self, word: str) -> int:
        known = self._words.get(word)
        if known is None:
            known = len(self.encode(word))
            if len(word) <= _LONGEST_WORD:
                _keep(self._words, word, known)
        return known

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, control-token look-alikes as text."""
        tokens = load_encoding(self.encoding).encode(text, disallowed_special=())
        self.encoded += len(tokens)
        return tokens

    def message(self, message: Message) -> int:
        """Return the tokens of a message: overhead, name, text, thinking, tool calls, pictures."""
        count = PER_MESSAGE + self.text(message.text) + self.text(message.thinking)
        if message.name:
            count += PER_NAME + self.text(message.name)
        for call in message.tool_calls:
            count += PER_MESSAGE + self.text(call.name) + self.text(call.arguments)
        return count + self.image_tokens * message.images

    def messages(self, messages: Sequence[Message]) -> int:
        """Return the tokens of a prompt: all its messages and the priming of the reply."""
        return sum(map(self.message, messages)) + PRIMING

    def tools(self, specs: Sequence[Json]) -> int:
        """Return the tokens of tool definitions, counted as their compact JSON text."""
        return sum(
            self.text(json.dumps(spec, ensure_ascii=False, separators=(",", ":"))) for spec in specs
        )

    def spans(self, text: str, ends: Sequence[int]) -> list[int]:
        """Split a text's tokens over consecutive spans; the results sum to ``text(text)``.

        ``ends`` are the ascending character offsets at which spans end, the last being
        ``len(text)``. A token belongs to the span in which it begins.
        """
        if len(ends) == 1:
            return [self.text(text)]
        encoding = load_encoding(self.encoding)
        tokens = self.encode(text)
        _, offsets = encoding.decode_with_offsets(tokens)
        cuts = [bisect_left(offsets, end) for end in ends[:-1]] + [len(tokens)]
        return [cut - before for cut, before in zip(cuts, [0, *cuts[:-1]], strict=True)]


def _keep(cache: dict[str, int], text: str, count: int) -> None:
    if len(cache) >= CACHED_TEXTS:
        cache.clear()
    cache[text] = count
