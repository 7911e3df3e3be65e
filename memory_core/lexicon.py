"""BM25 over a growing collection: exact after every single addition or removal.

The formula is Lucene's, as in ``bm25s`` (Lù 2024, arXiv 2407.03618), which the tests use as
oracle::

    score(d) = Σ over query terms t of  idf(t) · tf / (tf + k1 · (1 - b + b · |d| / average))
    idf(t)   = ln(1 + (N - df(t) + 0.5) / (df(t) + 0.5))

``bm25s`` bakes idf and lengths into a matrix, so one more memory means indexing all of them
again (0.4 s at 10,000 memories, after every turn of a chat). Here only counts are kept and the
formula is applied to the postings of the query's terms: 0.3 ms there.

A score has no scale of its own. :meth:`Lexicon.shares` divides it by what the query would score
against itself: 1 is a memory that says just the query, and scores of different queries compare.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from math import log

import numpy as np
import Stemmer
from numpy.typing import NDArray

K1, B = 0.9, 0.4  # chosen on public conversations, see benchmarks/recall.py

Floats = NDArray[np.float64]

_WORD = re.compile(r"\w+")
_NO_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+")


class Lexicon:
    """Postings of numbered texts. Not safe to use from several threads at once."""

    def __init__(self) -> None:
        self._stem = Stemmer.Stemmer("english").stemWord
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self._alive: Counter[str] = Counter()  # documents that hold a term
        self._terms: dict[int, tuple[str, ...]] = {}
        self._lengths = np.zeros(64)
        self._total = 0

    def __len__(self) -> int:
        return len(self._terms)

    def terms(self, text: str) -> list[str]:
        """Return the stems of a text's words; scripts without spaces give pairs of characters.

        >>> Lexicon().terms("Painting sunsets, 日本語")
        ['paint', 'sunset', '日本', '本語']
        """
        found: list[str] = []
        for word in _WORD.findall(text.casefold()):
            if _NO_SPACES.fullmatch(word):
                found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
            elif len(word) > 1 or word.isdigit():
                found.append(self._stem(word))
        return found

    def add(self, row: int, text: str) -> None:
        """Add a text under a row number that was never used before."""
        terms = self.terms(text)
        tally = Counter(terms)
        for term, count in tally.items():
            self._rows.setdefault(term, array("q")).append(row)
            self._counts.setdefault(term, array("q")).append(count)
        self._alive.update(tally.keys())
        self._terms[row] = tuple(tally)
        if row >= len(self._lengths):
            grown = np.zeros(max(row + 1, 2 * len(self._lengths)))
            grown[: len(self._lengths)] = self._lengths
            self._lengths = grown
        self._lengths[row] = len(terms)
        self._total += len(terms)

    def remove(self, row: int) -> None:
        """Take a text out; it scores 0 from now on and counts for nothing."""
        for term in self._terms.pop(row):
            self._alive[term] -= 1
        self._total -= int(self._lengths[row])
        self._lengths[row] = np.inf

    def scores(self, query: str, rows: int) -> Floats:
        """Return the BM25 scores of the first ``rows`` rows; a repeated query word counts once."""
        found = np.zeros(rows)
        if not self._terms:
            return found
        norms = self._norm(self._lengths[:rows])
        for term in dict.fromkeys(self.terms(query)):
            if term not in self._rows:
                continue
            where = np.frombuffer(self._rows[term], dtype=np.int64)
            times = np.frombuffer(self._counts[term], dtype=np.int64)
            found[where] += self._idf(term) * times / (times + norms[where])
        return found

    def shares(self, query: str, rows: int) -> Floats:
        """Return the scores as shares of what the query scores against itself."""
        own = Counter(self.terms(query))
        norm = float(self._norm(own.total()))
        best = sum(self._idf(term) * times / (times + norm) for term, times in own.items())
        return self.scores(query, rows) / best if best else np.zeros(rows)

    def _idf(self, term: str) -> float:
        having = self._alive[term]
        return log(1 + (len(self._terms) - having + 0.5) / (having + 0.5))

    def _norm(self, length: Floats | float) -> Floats:
        average = self._total / len(self._terms) if self._terms else 0.0
        return np.asarray(K1 * (1 - B + B * length / (average or 1.0)))
