"""``import FILE``: say what a conversation file holds, and store it where that is wanted.

Without ``--into`` nothing is stored; with it, text is sealed where ``MEMORY_ENCRYPTION_KEY`` is
set, as everywhere. What their turns leave for the long term waits there for the app, which indexes
it in the background. The same conversations again are told and not stored twice
unless ``--again`` is given.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from memory_core.cli.opened import counted
from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.interchange import ImportPreview, conversations, preview
from memory_core.messages import Json

_ROWS_TOLD = 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", type=Path, help="conversation file, or zip of an account export")
    parser.add_argument("--json", action="store_true", help="print the preview as JSON")
    parser.add_argument(
        "--branches", action="store_true", help="take other branches as conversations of their own"
    )
    parser.add_argument(
        "--into", metavar="URL", help="store the conversations, e.g. sqlite:///data/memory.db"
    )
    parser.add_argument("--user", default="local", help="whose sessions they become (local)")
    parser.add_argument(
        "--no-memories", action="store_true", help="make no long-term memories of their turns"
    )
    parser.add_argument("--again", action="store_true", help="store what is stored already")


def run(args: argparse.Namespace) -> int:
    """Preview a file, store it if asked to; return 0, or 2 when it was refused."""
    try:
        with _opened(args.file) as file:
            told = preview(
                file, name=args.file.name, branches=args.branches, progress=_progress(args)
            )
            stored = _store(file, told, args) if args.into else None
    except MemoryInspectorError as exc:
        message = " ".join(filter(None, (str(exc), exc.next_step)))
        sys.stderr.write(f"{args.file.name}: {_printable(message)}\n")
        return 2
    write = _as_json if args.json else _as_text
    sys.stdout.write(write(told, stored))
    return 0


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as exc:
        raise InvalidInput(f"The file cannot be opened: {exc.strerror}.") from exc


def _store(file: BinaryIO, told: ImportPreview, args: argparse.Namespace) -> Json:
    from memory_core.interchange.storing import imported_before, store_conversation
    from memory_core.stores.encryption import SETTING, cipher_from
    from memory_core.stores.opening import open_store
    from memory_core.stores.protocols import SessionKey
    from memory_core.tokens import TokenCounter

    store = open_store(args.into, folder=Path(), cipher=cipher_from(os.environ.get(SETTING)))
    try:
        known = store.sessions(args.user)
        counter, sessions, skipped = TokenCounter(), [], 0
        for conversation in conversations(file, name=args.file.name, branches=args.branches):
            same = imported_before(known, conversation=conversation.fingerprint)
            if same and not args.again:
                skipped += 1
                continue
            key = SessionKey(args.user, uuid.uuid4().hex)
            store_conversation(
                conversation,
                store=store,
                key=key,
                counter=counter,
                file=told.fingerprint,
                remember=not args.no_memories,
            )
            sessions.append(key.session)
    finally:
        store.close()
    return {"sessions": sessions, "skipped": skipped}


def _progress(args: argparse.Namespace) -> Callable[[int, int], None] | None:
    if args.json or not sys.stderr.isatty():
        return None
    last = -1

    def show(done: int, total: int) -> None:
        nonlocal last
        percent = 100 * done // max(total, 1)
        if percent != last:
            last = percent
            sys.stderr.write(f"\r{percent:3} % read" + ("\n" if done >= total else ""))

    return show


def _as_json(told: ImportPreview, stored: Json) -> str:
    value = asdict(told) | {
        "messages": told.messages,
        "questions": told.questions,
        "branches": told.branches,
    }
    if stored is not None:
        value["stored"] = stored
    return json.dumps(value, ensure_ascii=False, indent=2, default=lambda t: t.isoformat()) + "\n"


def _as_text(told: ImportPreview, stored: Json) -> str:
    counts = (
        f"{counted(len(told.conversations), 'conversations')}, "
        f"{counted(told.messages, 'messages')}, {counted(told.questions, 'questions')}"
        + (f", {told.branches:,} on other branches" if told.branches else "")
    )
    lines = [f"{told.name}: {told.format_title}, {told.size:,} bytes", counts]
    for row in told.conversations[:_ROWS_TOLD]:
        began = f"  {row.began:%Y-%m-%d}" if row.began else ""
        lines.append(f"  {row.messages:>6,} messages{began}  {row.title}")
    if len(told.conversations) > _ROWS_TOLD:
        lines.append(f"  and {len(told.conversations) - _ROWS_TOLD:,} more")
    if told.notices:
        lines.append("Changed or left out:")
        lines += [f"  {notice}" for notice in told.notices]
    if stored is not None:
        lines.append(
            f"Stored {counted(len(stored['sessions']), 'sessions')}"
            + (f", {stored['skipped']:,} were stored before." if stored["skipped"] else ".")
        )
    return "".join(_printable(line) + "\n" for line in lines)


def _printable(text: str) -> str:
    """Return a line that no terminal takes for a command."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
