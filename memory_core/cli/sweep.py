"""``sweep FILE``: measure which settings keep the evidence, over the questions of a file.

Two knobs are turned, token limit and top_k unless others are named. The file is any conversation
file that can be imported; its conversations that have questions are measured together. Nothing
is sent to a model, and nothing is stored but the embeddings.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_core.errors import InvalidInput, MemoryInspectorError
from memory_core.messages import Json

if TYPE_CHECKING:
    from memory_core.lab.axes import Axis
    from memory_core.lab.choosing import Choice
    from memory_core.lab.inputs import SweepInput
    from memory_core.lab.table import SweepResult
    from memory_core.models.catalogue import Price
    from memory_core.models.embeddings import Embedder

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
        help="turn another knob, e.g. threshold=0:0.5:6 or recall_method=dense,bm25,hybrid",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting that stands still, e.g. summarise=false",
    )
    parser.add_argument("--strategy", default="layered", help="layered (default) or tutorial")
    parser.add_argument("--embedding", default="wordllama", help="wordllama (default) or minilm")
    parser.add_argument("--model", default="", help="chat model, for token counts and its price")
    parser.add_argument("--measure", choices=("share", "any", "all"), default="share")
    parser.add_argument("--keep", type=float, default=0.9, help="evidence to keep (0.9)")
    parser.add_argument("--conversation", type=int, metavar="N", help="only the N-th of the file")
    parser.add_argument(
        "--propose", action="store_true", help="ask about facts that the conversation states"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--dask", default="", metavar="ADDRESS", help="a Dask scheduler instead")
    parser.add_argument("--data", type=Path, default=Path("data"), help="where embeddings are kept")
    parser.add_argument("--save", metavar="NAME", help="keep the sweep, to be opened in the lab")
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
    from memory_core.lab.axes import EMBEDDING, Axis, Point
    from memory_core.lab.embedded import EmbeddingCache
    from memory_core.lab.pool import Pool
    from memory_core.lab.sweep import merge, prepare_sweep, run_many
    from memory_core.tokens import TokenCounter, encoding_for

    x, y = _axes(args)
    pool = Pool(args.jobs, args.dask)
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
        )
        for one in inputs
    ]
    if len(sweeps) == 1:
        return sweeps[0].run(pool)
    results = dict(run_many(sweeps, pool))
    return merge([results[number] for number in range(len(sweeps))], args.file.name)


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
    from memory_core.questions import propose_questions

    refused, any_read = InvalidInput("The file holds no conversation."), False
    try:
        file = args.file.open("rb")
    except OSError as exc:
        raise InvalidInput(f"The file cannot be opened: {exc.strerror}.") from exc
    with file:
        for number, one in enumerate(conversations(file, name=args.file.name), start=1):
            if args.conversation not in (None, number):
                continue
            proposed = propose_questions(one.messages) if args.propose else []
            asked = [*one.questions, *(replace(question, accepted=True) for question in proposed)]
            try:
                yield from_conversation(one, asked)
                any_read = True
            except InvalidInput as exc:
                hint = "" if args.propose else "Add --propose to ask about stated facts."
                refused = InvalidInput(str(exc), next_step=hint)
    if not any_read:
        raise refused


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

    if args.save:
        save(result, args.save, args.data / "sweeps")
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
