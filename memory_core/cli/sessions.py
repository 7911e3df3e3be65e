"""``sessions``: list the sessions of a user or of all, or search in their text."""

from __future__ import annotations

import argparse
import json
import sys

from memory_core.cli.opened import add_store, config_of, counted, opened_store, say
from memory_core.listing import Found, search_sessions
from memory_core.messages import Json
from memory_core.stores.protocols import SessionInfo


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_store(parser)
    parser.add_argument("--user", help="only this user's")
    parser.add_argument("--search", metavar="WORDS", help="only messages with this text")
    parser.add_argument("--deleted", action="store_true", help="those that can still come back")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """List; return 0."""
    with opened_store(config_of(args)) as store:
        users = [args.user] if args.user else store.users()
        infos = [i for user in users for i in store.sessions(user, deleted=args.deleted)]
        if args.search:
            found = list(search_sessions(store, infos, args.search))
            _show_found(found, as_json=args.json)
        else:
            _show(infos, as_json=args.json)
    return 0


def _show(infos: list[SessionInfo], *, as_json: bool) -> None:
    if as_json:
        _print_json([_row(info) for info in infos])
        return
    for info in infos:
        marks = " archived" if info.archived else ""
        say(
            f"{info.key.user}  {info.key.session}  {info.used:%Y-%m-%d %H:%M}  "
            f"{info.turns} turns  {info.messages} messages  {info.tokens} tokens{marks}  "
            f"{info.title}"
        )
    say(counted(len(infos), "sessions"))


def _show_found(found: list[Found], *, as_json: bool) -> None:
    if as_json:
        _print_json(
            [_row(hit.info) | {"found": hit.messages, "excerpt": hit.excerpt} for hit in found]
        )
        return
    for hit in found:
        key = hit.info.key
        say(f"{key.user}  {key.session}  {hit.messages} messages  {hit.excerpt}")
    say(counted(len(found), "sessions"))


def _row(info: SessionInfo) -> dict[str, Json]:
    return {
        "user": info.key.user,
        "session": info.key.session,
        "title": info.title,
        "created": info.created.isoformat(),
        "used": info.used.isoformat(),
        "turns": info.turns,
        "messages": info.messages,
        "tokens": info.tokens,
        "strategy": info.strategy,
        "archived": info.archived,
        "deleted": info.deleted,
    }


def _print_json(value: Json) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
