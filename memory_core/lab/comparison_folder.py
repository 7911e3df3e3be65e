"""Comparisons on disk: one file each in a user's own folder, under a name people give.

A file is two lines of stored text, the name and the comparison as JSON, both redacted and sealed
as the session store is. It holds the conversation's words, so reopening it needs nothing else;
what it holds is checked before it is believed. Its file name is a digest and says nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_core.errors import InvalidInput, MemoryInspectorError, NotFound
from memory_core.lab.comparison import (
    FEWEST,
    MODES,
    MOST,
    PLANNED,
    PLAYED,
    Asked,
    Column,
    Comparison,
    Configuration,
    Kept,
    Line,
    Spent,
)
from memory_core.messages import Json, repair_text
from memory_core.models.catalogue import model_from_json
from memory_core.questions import RecallQuestion
from memory_core.settings import settings_from_json
from memory_core.stores.encoding import Cipher, Encoding
from memory_core.stores.files_disk import replace_file
from memory_core.stores.vectors.base import safe_name
from memory_core.strategies import setup_from_json

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from memory_core.redaction import Redactor

KIND, VERSION = "memory-inspector-comparison", 1
SUFFIX = ".comparison"
MOST_BYTES = 200_000_000
MOST_NAME = 100  # characters
_ID = re.compile(r"[0-9a-f]{24}")
_NEXT_STEP = "Choose a comparison that was saved here."


@dataclass(frozen=True)
class Saved:
    """A saved comparison as a list shows it. ``when`` is seconds since 1970."""

    id: str
    name: str
    when: float


class ComparisonFolder:
    """The comparisons that one user saved."""

    def __init__(
        self, folder: Path, *, cipher: Cipher | None = None, redactor: Redactor | None = None
    ) -> None:
        self.folder = folder
        self._encoding = Encoding(cipher)
        self._redactor = redactor

    def save(self, comparison: Comparison, name: str) -> Saved:
        """Write a comparison under a name, in the place of one of that name.

        Raises :class:`InvalidInput` for an empty name and where nothing can be written.
        """
        line = " ".join(repair_text(name)[0].split())[:MOST_NAME]
        if not line:
            raise InvalidInput("A comparison is saved under a name.", next_step="Write one.")
        value = to_json(comparison)
        if self._redactor is not None:
            line = self._redactor.text(line).text
            value = self._redactor.json(value, Counter())
        file = self._file(_id(line))
        text = f"{self._encoding.json(line, 'name')}\n{self._encoding.json(value, 'comparison')}\n"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_file(file, text.encode())
            return Saved(_id(line), line, file.stat().st_mtime)
        except OSError as exc:
            raise InvalidInput(
                f"The comparison cannot be saved in {self.folder}: {exc.strerror}."
            ) from exc

    def list(self) -> list[Saved]:
        """Return what is saved, newest first; files that are none are passed over."""
        found = []
        for file in self.folder.glob(f"*{SUFFIX}"):
            try:
                with file.open(encoding="utf-8") as lines:
                    name = self._encoding.read_json(lines.readline(1_000_000))
                if isinstance(name, str) and _ID.fullmatch(file.stem):
                    found.append(Saved(file.stem, repair_text(name)[0], file.stat().st_mtime))
            except (ValueError, RecursionError, OSError, MemoryInspectorError):
                continue
        return sorted(found, key=lambda one: (-one.when, one.name))

    def load(self, id_: str) -> tuple[str, Comparison]:
        """Return a saved comparison with its name.

        Raises :class:`NotFound` when this user saved none of that id, :class:`InvalidInput` with
        the reason when the file cannot be used.
        """
        file = self._file(id_)
        try:
            if file.stat().st_size > MOST_BYTES:
                raise _refusal(f"it is larger than {MOST_BYTES:,} bytes")
            first, _, second = file.read_text(encoding="utf-8").partition("\n")
            name = self._encoding.read_json(first)
            return str(name), from_json(self._encoding.read_json(second.rstrip("\n")))
        except FileNotFoundError as exc:
            raise NotFound(
                "There is no such comparison among yours.", next_step=_NEXT_STEP
            ) from exc
        except (OSError, ValueError, RecursionError) as exc:
            raise _refusal(f"it cannot be read ({type(exc).__name__})") from exc

    def delete(self, id_: str) -> None:
        """Erase a saved comparison; one that is not there is ignored."""
        self._file(id_).unlink(missing_ok=True)

    def _file(self, id_: str) -> Path:
        if not _ID.fullmatch(id_):
            raise NotFound("There is no such comparison among yours.", next_step=_NEXT_STEP)
        return self.folder / f"{id_}{SUFFIX}"


def comparisons_of(data: Path, user: str) -> Path:
    """Return the folder of a user's saved comparisons, under the data folder."""
    return data / "comparisons" / safe_name(user)


def forget_comparisons(data: Path, user: str) -> None:
    """Erase a user's saved comparisons: they hold whole conversations."""
    shutil.rmtree(comparisons_of(data, user), ignore_errors=True)


def to_json(comparison: Comparison) -> dict[str, Json]:
    """Return a comparison as a JSON object that :func:`from_json` reads back unchanged."""
    return {
        "kind": KIND,
        "version": VERSION,
        "title": comparison.title,
        "mode": comparison.mode,
        "session": comparison.session,
        "made": comparison.made.isoformat(),
        "notices": comparison.notices,
        "lines": [asdict(line) for line in comparison.lines],
        "questions": [asdict(question) for question in comparison.questions],
        "columns": [
            {
                "name": column.name,
                "setup": column.configuration.setup.to_json(),
                "settings": column.configuration.settings.to_json(),
                "model": column.configuration.model.to_json(),
                "how": column.how,
                "turns": [asdict(kept) for kept in column.turns],
                "asked": [asdict(asked) for asked in column.asked],
                "spent": asdict(column.spent),
                "notices": column.notices,
                "error": column.error,
            }
            for column in comparison.columns
        ],
    }


def from_json(value: Json) -> Comparison:
    """Return the comparison that :func:`to_json` wrote; raise :class:`InvalidInput` otherwise."""
    if not isinstance(value, Mapping) or value.get("kind") != KIND:
        raise _refusal("it holds no saved comparison")
    if value.get("version") != VERSION:
        raise _refusal(f"it is of version {value.get('version')!r:.20}, {VERSION} can be read")
    columns = value.get("columns")
    if not isinstance(columns, list):
        raise _refusal("its columns are no list")
    head = {k: v for k, v in value.items() if k not in ("kind", "version", "columns")}
    try:
        bare = _adapter(_Head).validate_json(json.dumps(head))
        comparison = Comparison(
            **{name: getattr(bare, name) for name in _Head.__dataclass_fields__},
            columns=tuple(map(_column, columns)),
        )
    except MemoryInspectorError as exc:
        raise _refusal(str(exc).rstrip(".")) from exc
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        line = str(exc).splitlines()[0] if str(exc) else type(exc).__name__
        raise _refusal(f"a value in it is of the wrong kind ({line[:120]})") from exc
    _check(comparison)
    return comparison


@dataclass(frozen=True)
class _Head:
    """All of a comparison but its columns, as it is checked."""

    title: str
    mode: str
    lines: tuple[Line, ...]
    questions: tuple[RecallQuestion, ...]
    made: datetime
    session: str
    notices: tuple[str, ...]


@dataclass(frozen=True)
class _Body:
    """All of a column but its configuration, as it is checked."""

    how: str
    turns: tuple[Kept, ...]
    asked: tuple[Asked, ...]
    spent: Spent
    notices: tuple[str, ...]
    error: str


def _column(value: Mapping[str, Json]) -> Column:
    body = {name: value[name] for name in _Body.__dataclass_fields__}
    checked = _adapter(_Body).validate_json(json.dumps(body))
    configuration = Configuration(
        str(value["name"]),
        setup_from_json(value["setup"]),
        settings_from_json(value["settings"]),
        model_from_json(value["model"]),
    )
    return Column(
        configuration, **{name: getattr(checked, name) for name in _Body.__dataclass_fields__}
    )


def _check(comparison: Comparison) -> None:
    """Refuse what a page could not draw: columns, places or evidence that are not there."""
    count = len(comparison.lines)
    if not FEWEST <= len(comparison.columns) <= MOST or comparison.mode not in MODES:
        raise _refusal("its columns or its mode are none that can be shown")
    if any(not 0 <= i < count for q in comparison.questions for i in q.evidence):
        raise _refusal("a question's evidence is no message of it")
    for column in comparison.columns:
        if column.how not in (PLANNED, PLAYED) or len(column.asked) > len(comparison.questions):
            raise _refusal("a column has more questions than the comparison")
        if any(not 0 <= a < b <= count for kept in column.turns for a, b in kept.runs):
            raise _refusal("a turn holds messages that are not there")
        pairs = zip(column.asked, comparison.questions, strict=False)
        if any(len(asked.where) != len(question.evidence) for asked, question in pairs):
            raise _refusal("a question's evidence and its places do not match")


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _id(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _refusal(problem: str) -> InvalidInput:
    return InvalidInput(f"The comparison cannot be opened: {problem}.", next_step=_NEXT_STEP)
