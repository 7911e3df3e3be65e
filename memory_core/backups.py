"""Backups of a whole store in one file each, restorable onto any backend.

A backup is gzip-compressed JSON lines: a header, one line for each user with that user's export
(:mod:`memory_core.portable_format`), and a last line with a checksum over all before. With a key
the exports are sealed; the user's id beside each is not, so that :meth:`BackupIndex.forget` can
take a user out of old backups without reading anybody's text.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memory_core.errors import InvalidInput, StoreError
from memory_core.messages import Json
from memory_core.portable import Imported, export_user, import_bundle
from memory_core.portable_format import read_bundle, write_bundle
from memory_core.stores.encoding import Cipher, Encoding
from memory_core.stores.protocols import Store

FORMAT, VERSION = "memory-inspector-backup", 1
SUFFIX = ".backup.jsonl.gz"

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Backup:
    """One backup file. ``size`` is in bytes."""

    path: Path
    created: datetime
    users: int
    size: int


class BackupIndex:
    """The backups in one folder."""

    def __init__(self, folder: Path, *, cipher: Cipher | None = None) -> None:
        self._folder = folder
        self._encoding = Encoding(cipher)

    def all(self) -> list[Backup]:
        """Return the backups, newest first; files that are none are left out."""
        found = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            try:
                found.append(_about(path))
            except StoreError:
                continue
        return sorted(found, key=lambda backup: backup.created, reverse=True)

    def create(
        self, store: Store, *, now: datetime, progress: Progress = lambda _done, _all: None
    ) -> Backup:
        """Write everything in a store to a new backup; it is there whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        users = store.users()
        name = now.astimezone(UTC).strftime("memory-%Y%m%d-%H%M%S-%f") + SUFFIX

        def lines() -> Iterator[dict[str, Json]]:
            for done, user in enumerate(users, 1):
                text = write_bundle(export_user(store, user), now=now)
                yield {"user": user, "export": self._encoding.text(text, "export")}
                progress(done, len(users))

        path = self._folder / name
        _write(path, _header(now, len(users)), lines())
        return _about(path)

    def restore(
        self, path: Path, store: Store, *, progress: Progress = lambda _done, _all: None
    ) -> Imported:
        """Write what a backup holds to a store; sessions that are there already are kept.

        The file is checked to its end before anything is written.
        """
        header = _check(path)
        total = Imported()
        for done, line in enumerate(_lines(path), 1):
            bundle = read_bundle(self._encoding.read_text(line["export"]))
            one = import_bundle(store, bundle)
            total = Imported(
                total.sessions + one.sessions,
                total.turns + one.turns,
                total.records + one.records,
                total.kept + one.kept,
            )
            progress(done, header["users"])
        return total

    def forget(self, user: str) -> tuple[str, ...]:
        """Take a user out of every backup; return the names of the files that held one."""
        changed = []
        for backup in self.all():
            header = _check(backup.path)
            if any(line["user"] == user for line in _lines(backup.path)):
                kept = (line for line in _lines(backup.path) if line["user"] != user)
                _write(backup.path, {**header, "users": header["users"] - 1}, kept)
                changed.append(backup.path.name)
        return tuple(changed)


def open_backup(path: Path) -> Backup:
    """Return what a backup file says of itself; raise :class:`StoreError` when it is none."""
    return _about(path)


def _header(now: datetime, users: int) -> dict[str, Json]:
    return {"format": FORMAT, "version": VERSION, "created": now.isoformat(), "users": users}


def _write(path: Path, header: dict[str, Json], lines: Iterator[dict[str, Json]]) -> None:
    """Write a backup beside its place and move it there once it is on disk."""
    scratch = path.with_name(f".{path.name}.new")
    digest = hashlib.sha256()
    try:
        with scratch.open("wb") as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as file:
                for line in _chain(header, lines):
                    data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
                    digest.update(data)
                    file.write(data)
                file.write(json.dumps({"sha256": digest.hexdigest()}).encode() + b"\n")
            raw.flush()
            os.fsync(raw.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _chain(header: dict[str, Json], lines: Iterator[dict[str, Json]]) -> Iterator[dict[str, Json]]:
    yield header
    yield from lines


def _about(path: Path) -> Backup:
    header = _read_header(path)
    return Backup(
        path, datetime.fromisoformat(header["created"]), header["users"], path.stat().st_size
    )


def _read_header(path: Path) -> dict[str, Json]:
    first: Json = next(_raw_lines(path), b"{}")
    try:
        header = json.loads(first)
    except ValueError:
        header = {}
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise StoreError(f"{path.name} is no backup of Memory Inspector.")
    if header["version"] > VERSION:
        raise InvalidInput(f"{path.name} was written by a newer version of Memory Inspector.")
    return header


def _check(path: Path) -> dict[str, Json]:
    """Return the header of a backup whose checksum fits; raise :class:`StoreError` otherwise."""
    header = _read_header(path)
    digest, last = hashlib.sha256(), b""
    for line in _raw_lines(path):
        digest.update(last)
        last = line
    try:
        right = json.loads(last)["sha256"] == digest.hexdigest()
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise StoreError(f"{path.name} is damaged or not complete: its checksum does not fit.")
    return header


def _lines(path: Path) -> Iterator[dict[str, Json]]:
    """Yield the lines of users; the file was checked before."""
    lines = _raw_lines(path)
    next(lines)
    for line in lines:
        value = json.loads(line)
        if "user" in value:
            yield value


def _raw_lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") as file:
            yield from file
    except gzip.BadGzipFile as exc:
        raise StoreError(f"{path.name} is no backup of Memory Inspector.") from exc
    except (OSError, EOFError) as exc:
        why = getattr(exc, "strerror", None) or exc
        raise StoreError(f"{path.name} cannot be read: {why}.") from exc
