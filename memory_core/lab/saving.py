"""Sweeps on disk: one JSON file each, under a name people give.

The file holds what was asked and measured, not the conversation: reading it again needs nothing
else. A cell is compact: a digit a piece of evidence (where it stands, see :mod:`.cells`) and the
tokens a question. Whatever a file holds is checked before it is believed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from memory_core.errors import InvalidInput
from memory_core.lab.axes import Axis, Point
from memory_core.lab.cells import ELSEWHERE, Cell
from memory_core.lab.inputs import SweepQuestion
from memory_core.lab.table import SweepResult
from memory_core.messages import Json, repair_text
from memory_core.settings import settings_from_json
from memory_core.stores.files_disk import replace_file
from memory_core.stores.vectors.base import safe_name

KIND, VERSION = "memory-inspector-sweep", 1
SUFFIX = ".sweep.json"
MOST_BYTES = 200_000_000
_MOST_TEXT = 100_000
_HEAD = '{"name": '  # what a file begins with, so that a list needs no more of it than the name
_LONGEST_HEAD = 20_000
_NEXT_STEP = "Choose a file that this lab saved."


@dataclass(frozen=True)
class Saved:
    """A saved sweep as a list shows it. ``when`` is seconds since 1970."""

    name: str
    file: Path
    when: float


def save(result: SweepResult, name: str, folder: Path) -> Path:
    """Write a sweep under a name, in the place of one of that name; return its file.

    Raises :class:`InvalidInput` for an empty name and where nothing can be written.
    """
    name = repair_text(name)[0]
    file = file_of(name, folder)
    text = _HEAD + json.dumps(name) + ", " + json.dumps(to_json(result), ensure_ascii=False)[1:]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(file, text.encode())
    except OSError as exc:
        raise InvalidInput(f"The sweep cannot be saved in {folder}: {exc.strerror}.") from exc
    return file


def file_of(name: str, folder: Path) -> Path:
    """Return where the sweep of a name is kept; raise :class:`InvalidInput` for an empty one."""
    return folder / f"{safe_name(repair_text(name)[0])}{SUFFIX}"


def rename(one: Saved, name: str) -> Path:
    """Keep a saved sweep under another name; return its file.

    Raises :class:`InvalidInput` for an empty name, for that of another sweep, and when the sweep
    is gone.
    """
    result, folder = load(one.file), one.file.parent
    if file_of(name, folder) == one.file:
        return one.file
    check_free(name, folder)
    file = save(result, name, folder)
    delete(one)
    return file


def delete(one: Saved) -> None:
    """Erase a saved sweep; that it is gone already is no error.

    Raises :class:`InvalidInput` when it cannot be erased.
    """
    try:
        one.file.unlink(missing_ok=True)
    except OSError as exc:
        raise InvalidInput(f"The sweep cannot be deleted: {exc.strerror}.") from exc


def check_free(name: str, folder: Path) -> None:
    """Raise :class:`InvalidInput` when a sweep of this name is there, or the name is empty."""
    if file_of(name, folder).exists():
        raise InvalidInput(
            f"There is a sweep named “{name[:80]}” already.",
            next_step="Choose another name, or rename or delete that one first.",
        )


def saved(folder: Path) -> list[Saved]:
    """Return the sweeps of a folder, last saved first; files that are none are passed over."""
    found = []
    for file in folder.glob(f"*{SUFFIX}"):
        try:
            with file.open(encoding="utf-8") as lines:
                head = lines.read(_LONGEST_HEAD)
            name, _ = json.JSONDecoder().raw_decode(head, len(_HEAD))
            if head.startswith(_HEAD) and isinstance(name, str):
                found.append(Saved(repair_text(name)[0], file, file.stat().st_mtime))
        except (ValueError, RecursionError, OSError):
            continue
    return sorted(found, key=lambda one: (-one.when, one.name))


def load(file: Path) -> SweepResult:
    """Read a saved sweep; raise :class:`InvalidInput` with the reason when it is none."""
    return from_json(_read(file))


def to_json(result: SweepResult) -> dict[str, Json]:
    """Return a sweep as a JSON object that :func:`from_json` reads back unchanged."""
    return {
        "kind": KIND,
        "version": VERSION,
        "title": result.title,
        "x": {"name": result.x.name, "values": list(result.x.values)},
        "y": {"name": result.y.name, "values": list(result.y.values)},
        "base": {
            "settings": result.base.settings.to_json(),
            "strategy": result.base.strategy,
            "embedding": result.base.embedding,
        },
        "questions": [
            asdict(question) | {"evidence": list(question.evidence)}
            for question in result.questions
        ],
        "cells": [
            {
                "x": cell.x,
                "y": cell.y,
                "where": "".join(map(str, cell.where.tolist())),
                "tokens": cell.tokens.tolist(),
                "embeddings": cell.embeddings,
                "model_calls": cell.model_calls,
            }
            for cell in result.cells
        ],
        "counter": result.counter,
        "notices": list(result.notices),
        "seconds": result.seconds,
    }


def from_json(value: Json) -> SweepResult:
    """Return the sweep that :func:`to_json` wrote; raise :class:`InvalidInput` for the rest."""
    item = _typed(value, dict, "the file")
    if item.get("kind") != KIND:
        raise _refusal("it holds no saved sweep")
    if item.get("version") != VERSION:
        raise _refusal(f"it is of version {item.get('version')!r:.20}, {VERSION} can be read")
    base = _typed(item.get("base"), dict, "base")
    result = SweepResult(
        title=_text(item, "title"),
        x=_axis(item.get("x"), "x"),
        y=_axis(item.get("y"), "y"),
        base=Point(
            settings_from_json(_typed(base.get("settings"), dict, "settings")),
            _text(base, "strategy"),
            _text(base, "embedding"),
        ),
        questions=_each(item, "questions", _question),
        cells=_each(item, "cells", _cell),
        counter=_text(item, "counter"),
        notices=_each(
            item, "notices", lambda notice, place: repair_text(_typed(notice, str, place))[0]
        ),
        seconds=_number(item, "seconds"),
    )
    if not result.questions:
        raise _refusal("it holds no questions")
    result.check()
    return result


def _read(file: Path) -> Json:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise _refusal(f"it is larger than {MOST_BYTES:,} bytes")
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as exc:
        raise _refusal(f"it cannot be read ({type(exc).__name__})") from exc


def _axis(value: Json, name: str) -> Axis:
    item = _typed(value, dict, name)
    return Axis(_text(item, "name"), tuple(_typed(item.get("values"), list, f"{name}, values")))


def _question(value: Json, place: str) -> SweepQuestion:
    item = _typed(value, dict, place)
    evidence = [_whole(index, f"{place}, evidence") for index in _list(item, "evidence")]
    position = _whole(item.get("position"), f"{place}, position")
    if not evidence or sorted(set(evidence)) != evidence or evidence[-1] >= position:
        raise _refusal(f"{place} has no evidence, or some that was said later")
    return SweepQuestion(
        _text(item, "text"),
        position,
        tuple(evidence),
        _text(item, "expected"),
        _text(item, "category"),
        _text(item, "conversation"),
    )


def _cell(value: Json, place: str) -> Cell:
    item = _typed(value, dict, place)
    where, tokens = _text(item, "where"), _list(item, "tokens")
    codes = [ord(c) - ord("0") for c in where]
    if any(not 0 <= code <= ELSEWHERE for code in codes):
        raise _refusal(f"{place}, where: a digit is none of 0 to {ELSEWHERE}")
    return Cell(
        x=_whole(item.get("x"), place),
        y=_whole(item.get("y"), place),
        where=np.array(codes, np.int8),
        tokens=np.array([_whole(n, f"{place}, tokens") for n in tokens], np.int64),
        embeddings=_number(item, "embeddings"),
        model_calls=_number(item, "model_calls"),
    )


def _each(
    item: Mapping[str, Json], key: str, read: Callable[[Json, str], object]
) -> tuple[Json, ...]:
    return tuple(read(one, f"{key} {n}") for n, one in enumerate(_list(item, key), start=1))


def _list(item: Mapping[str, Json], key: str) -> list[Json]:
    found: list[Json] = _typed(item.get(key), list, key)
    return found


def _text(item: Mapping[str, Json], key: str) -> str:
    text: str = _typed(item.get(key), str, key)
    if len(text) > _MOST_TEXT and key != "where":
        raise _refusal(f"{key} is longer than {_MOST_TEXT:,} characters")
    return repair_text(text)[0]


def _number(item: Mapping[str, Json], key: str) -> float:
    value = item.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise _refusal(f"{key} must be a number from 0")
    return float(value)


def _whole(value: Json, place: str) -> int:
    if type(value) is not int or not 0 <= value < 10**12:
        raise _refusal(f"{place} must be a whole number from 0")
    return value


def _typed(value: Json, kind: type, place: str) -> Json:
    if not isinstance(value, kind):
        raise _refusal(f"{place} must be of type {kind.__name__}")
    return value


def _refusal(problem: str) -> InvalidInput:
    return InvalidInput(f"The sweep cannot be opened: {problem}.", next_step=_NEXT_STEP)
