"""``sweep FILE``: measure which settings keep the evidence, over the questions of a file.

Two knobs are turned, token limit and top_k unless others are named. The file is any conversation
file that can be imported; its conversations that have questions are measured together. Nothing
is stored but the embeddings, and nothing is sent to a model unless a strategy that asks one is
named or one is to propose the questions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.messages import Json

if TYPE_CHECKING:
    from memory_core.lab.axes import Axis
    from memory_core.lab.choosing import Choice
    from memory_core.lab.inputs import SweepInput
    from memory_core.lab.pool import Pool
    from memory_core.lab.sweep import Sweep
    from memory_core.lab.table import SweepResult
    from memory_core.messages import Message
    from memory_core.models.catalogue import ModelChoice, Price
    from memory_core.models.embeddings import Embedder
    from memory_core.questions import RecallQuestion

RULE, MODEL = "rule", "model"
LIMITS, TOP_K = "500:4000:8", "1:10"  # what is swept when nothing is said


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("file", type=Path, help="conversation file with recall questions")
    parser.add_argument("--limits", metavar="VALUES", help=f"token limits ({LIMITS})")
    parser.add_argument("--top-k", metavar="VALUES", help=f"values of top_k ({TOP_K})")
    parser.add_argument(
        "--axis",
        action="append",
        default=[],
        metavar="NAME=VALUES",
        help="turn another knob, e.g. threshold=0:0.5:6, shares=60/20/20,40/40/20, summary_every, "
        "window_rule, strategy, embedding or recall_method=dense,bm25,hybrid",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that stands still, e.g. summarise=false",
    )
    parser.add_argument(
        "--strategy",
        default="layered",
        help="layered (default) or tutorial; played with the model: layered_played, "
        "chat_summary_memory_buffer, memory_facts",
    )
    parser.add_argument("--embedding", default="wordllama", help="wordllama (default) or minilm")
    parser.add_argument(
        "--model",
        default="",
        help="chat model, for token counts and its price, and to be asked where one is asked "
        "(the offline reader)",
    )
    parser.add_argument(
        "--base-url", default="", metavar="URL", help="an OpenAI-compatible server's, for --model"
    )
    parser.add_argument("--measure", choices=("share", "any", "all"), default="share")
    parser.add_argument("--keep", type=float, default=0.9, help="evidence to keep (0.9)")
    parser.add_argument("--conversation", type=int, metavar="N", help="only the N-th of the file")
    parser.add_argument(
        "--propose",
        action="store_const",
        const=RULE,
        help="ask about facts that the conversation states, found by rule",
    )
    parser.add_argument(
        "--propose-by-model",
        dest="propose",
        action="store_const",
        const=MODEL,
        help="ask what --model proposes to ask",
    )
    parser.add_argument(
        "--jobs", type=int, help="processes (one for what takes seconds, else one a processor)"
    )
    parser.add_argument("--dask", default="", metavar="ADDRESS", help="a Dask scheduler instead")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("MEMORY_INSPECTOR_DATA") or "data"),
        help="where embeddings and sweeps are kept (MEMORY_INSPECTOR_DATA, or data)",
    )
    parser.add_argument(
        "--save", metavar="NAME", help="keep the sweep, in the place of one of that name"
    )
    parser.add_argument("--user", default="local", help="in whose Tuning lab it is kept (local)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table as CSV")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the map as a page")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the sweep and print it; return 0, or 2 when something was refused."""
    try:
        from memory_core.lab.cells import Measure
        from memory_core.lab.choosing import cheapest
        from memory_core.lab.report import as_json
        from memory_core.models.catalogue import price

        result, paid = _swept(args), price(args.model)
        choice = cheapest(result, Measure(args.measure), keep=args.keep)
        _write(result, args, choice, paid)
    except MemoryInspectorError as exc:
        message = " ".join(filter(None, (str(exc), exc.next_step)))
        sys.stderr.write(f"{_printable(message)}\n")
        return 2
    if args.json:
        value = as_json(result, choice, price=paid)
        sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write("".join(_printable(line) + "\n" for line in _lines(result, choice)))
    return 0


def _swept(args: argparse.Namespace) -> SweepResult:
    from memory_core.lab.asking import strategies
    from memory_core.lab.axes import EMBEDDING, Axis, Point
    from memory_core.lab.embedded import EmbeddingCache
    from memory_core.lab.pool import Pool
    from memory_core.lab.sweep import pool_for, prepare_sweep
    from memory_core.tokens import TokenCounter, encoding_for

    x, y = _axes(args)
    given = args.jobs is not None or args.dask
    pool = Pool(1 if args.jobs is None else args.jobs, args.dask) if given else None
    inputs = list(_inputs(args))
    kinds = next((axis.values for axis in (x, y) if axis.name == EMBEDDING), (args.embedding,))
    embedders = [_embedder(str(kind)) for kind in kinds]
    names = tuple(embedder.name for embedder in embedders)
    x, y = (Axis(EMBEDDING, names) if axis.name == EMBEDDING else axis for axis in (x, y))
    base = Point(_settings(args.set), args.strategy, names[0])
    sweeps = [
        prepare_sweep(
            one,
            x,
            y,
            base=base,
            counter=TokenCounter(encoding_for(args.model)),
            embedders=embedders,
            cache=EmbeddingCache(args.data / "embeddings.sqlite"),
            strategies=strategies(_model(args)),
            progress=_progress(args, f"texts embedded of “{one.title[:40]}”"),
        )
        for one in inputs
    ]
    return _run(sweeps, pool or pool_for(sweeps), args)


def _run(sweeps: Sequence[Sweep], pool: Pool, args: argparse.Namespace) -> SweepResult:
    from memory_core.lab.sweep import cells_of, table_of

    began, known = time.perf_counter(), []
    told = _progress(args, "cells")
    total = sum(len(sweep.x.values) * len(sweep.y.values) for sweep in sweeps)
    for numbered in cells_of(sweeps, pool):
        known.append(numbered)
        told(len(known), total)
    table = table_of(sweeps, known, args.file.name, seconds=time.perf_counter() - began)
    if table is None:
        raise InvalidInput("The sweep has no cells.")
    return table


def _axes(args: argparse.Namespace) -> tuple[Axis, Axis]:
    from memory_core.lab.axes import TOKEN_LIMIT, Axis
    from memory_core.lab.axes import TOP_K as TOP_K_AXIS

    named = [(TOKEN_LIMIT, args.limits), (TOP_K_AXIS, args.top_k)]
    axes = [Axis.parse(name, values) for name, values in named if values]
    axes += [Axis.parse(*_pair(text, "an axis")) for text in args.axis]
    for name, values in ((TOKEN_LIMIT, LIMITS), (TOP_K_AXIS, TOP_K)):
        if len(axes) < 2 and name not in {axis.name for axis in axes}:
            axes.append(Axis.parse(name, values))
    if len(axes) != 2:
        raise InvalidInput(f"A sweep turns two knobs, not {len(axes)}.")
    return axes[0], axes[1]


def _inputs(args: argparse.Namespace) -> Iterator[SweepInput]:
    """Yield what can be swept of the file; raise the last reason when nothing can."""
    from memory_core.interchange import conversations
    from memory_core.lab.inputs import from_conversation

    refused, any_read = InvalidInput("The file holds no conversation."), False
    try:
        file = args.file.open("rb")
    except OSError as exc:
        raise InvalidInput(f"The file cannot be opened: {exc.strerror}.") from exc
    with file:
        for number, one in enumerate(conversations(file, name=args.file.name), start=1):
            if args.conversation not in (None, number):
                continue
            proposed = _proposed(one.messages, args) if args.propose else ()
            asked = [*one.questions, *(replace(question, accepted=True) for question in proposed)]
            try:
                yield from_conversation(one, asked)
                any_read = True
            except InvalidInput as exc:
                hint = "" if args.propose else "Add --propose to ask about stated facts."
                refused = InvalidInput(str(exc), next_step=hint)
    if not any_read:
        raise refused


def _proposed(messages: Sequence[Message], args: argparse.Namespace) -> Iterable[RecallQuestion]:
    """Return questions that a rule or the model proposes; raise what the model raises."""
    from memory_core.proposing import propose_by_model
    from memory_core.questions import propose_questions
    from memory_core.tokens import TokenCounter, encoding_for

    if args.propose == RULE:
        return propose_questions(messages)
    from memory_core.models.build import build_llm
    from memory_core.models.catalogue import find_key

    choice = _model(args)
    found = propose_by_model(
        messages,
        build_llm(choice, key=find_key(choice.kind, os.environ, {})),
        choice=choice,
        counter=TokenCounter(encoding_for(choice.model)),
        progress=_progress(args, "parts read by the model"),
    )
    if found.error is not None:
        raise found.error
    return found.questions


def _model(args: argparse.Namespace) -> ModelChoice:
    """Return the model to ask: a server's, OpenAI's, or without a name the offline reader."""
    from memory_core.models.catalogue import OFFLINE, OPENAI, OPENAI_LIKE, ModelChoice

    if args.base_url:
        return ModelChoice(OPENAI_LIKE, args.model, args.base_url)
    return ModelChoice(OPENAI, args.model) if args.model not in ("", OFFLINE) else ModelChoice()


def _progress(args: argparse.Namespace, what: str) -> Callable[[int, int], None]:
    """Return what tells a person at a terminal how far it is."""
    if args.json or not sys.stderr.isatty():
        return lambda _done, _total: None

    def show(done: int, total: int) -> None:
        line = _printable(f"{done:,} of {total:,} {what}")
        sys.stderr.write(f"\r{line}" + ("\n" if done >= total else ""))

    return show


def _settings(changes: Sequence[str]) -> Any:
    from memory_core.settings import MemorySettings

    values: dict[str, Json] = {}
    for text in changes:
        name, value = _pair(text, "a setting")
        if not hasattr(MemorySettings(), name):
            raise InvalidInput(f"There is no setting {name!r:.60}.")
        try:
            values[name] = json.loads(value)
        except ValueError:
            values[name] = value
    return MemorySettings().with_(**values)


def _embedder(kind: str) -> Embedder:
    from memory_core.models.catalogue import MINILM, WORDLLAMA, EmbeddingChoice
    from memory_core.models.embeddings import build_embedder, needs_download

    if kind not in (WORDLLAMA, MINILM):
        raise InvalidInput(
            f"There is no embedding model {kind!r:.60} here.",
            next_step=f"Choose {WORDLLAMA} or {MINILM}.",
        )
    choice = EmbeddingChoice(kind)
    if needs_download(choice):
        raise InvalidInput(f"The weights of {kind} are not on this machine.")
    return build_embedder(choice)


def _write(
    result: SweepResult, args: argparse.Namespace, choice: Choice, price: Price | None
) -> None:
    from memory_core.lab.exporting import to_csv, to_html
    from memory_core.lab.saving import save
    from memory_core.lab.sweep_folder import sweeps_of

    if args.save:
        save(result, args.save, sweeps_of(args.data, args.user))
    texts = []
    if args.csv:
        texts.append((args.csv, to_csv(result, price=price)))
    if args.html:
        texts.append((args.html, to_html(result, choice, price=price)))
    for path, text in texts:
        try:
            path.write_text(text, encoding="utf-8", newline="")
        except OSError as exc:
            raise InvalidInput(f"{path} cannot be written: {exc.strerror}.") from exc


def _lines(result: SweepResult, choice: Choice) -> Iterator[str]:
    from memory_core.lab.report import in_words

    yield f"{result.title}: {len(result.questions):,} questions, {len(result.cells):,} cells"
    yield from result.notices
    width = max(8, *(len(str(value)) + 1 for value in result.x.values))
    yield f"{result.y.title} (rows) by {result.x.title} (columns): evidence in the prompt"
    yield " " * 12 + "".join(f"{value!s:>{width}}" for value in result.x.values)
    for value, row in zip(result.y.values, result.heat(choice.measure), strict=True):
        yield f"{value!s:>12}" + "".join(f"{share:>{width}.0%}" for share in row)
    yield in_words(result, choice)


def _pair(text: str, what: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InvalidInput(f"{text[:60]!r} is not {what}.", next_step="Write NAME=VALUE.")
    return name.strip(), value.strip()


def _printable(text: str) -> str:
    """Return a line that no terminal takes for a command."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
