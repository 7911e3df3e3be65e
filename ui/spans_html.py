"""The prompt as HTML: every span in its source's colour, every character as it was sent.

Texts are escaped and stand in one ``pre-wrap`` block, so nothing in them is read as markup. The
small chip in front of a span (letter and tokens) is no part of the text. Markup is kept short:
a prompt has many spans, and all of it goes to the browser.
"""

from __future__ import annotations

from html import escape

from memory_core.prompt import Source
from ui.palette import swatch
from ui.view_models.prompt import PromptMessage, PromptView, Span
from ui.view_models.text import plural

_BLOCK = "white-space:pre-wrap;overflow-wrap:anywhere;font:.82rem monospace"
_TINT = "38"  # alpha of a span's background, two hex digits: text stays readable on it


def prompt_html(view: PromptView) -> str:
    """Return the messages of a prompt, in order, and what stands beside them."""
    parts = []
    before = -1
    for message in view.messages:
        if message.index != before + 1:
            parts.append(f"<p>… {plural(view.skipped, 'message')} not drawn …</p>")
        parts.append(_message(message))
        before = message.index
    if view.beside:
        beside = " ".join(f"{_chip(span)} {_named(span)}" for span in view.beside)
        parts.append(f"<p><small>beside the messages:</small> {beside}</p>")
    return (
        f'<div style="{_BLOCK}" role="group" aria-label="The exact prompt">{"".join(parts)}</div>'
    )


def _message(message: PromptMessage) -> str:
    head = f"<small>{escape(message.role)} · {plural(message.tokens, 'token')}</small>"
    alone = len(message.spans) == 1
    spans = "".join(
        _span(span) if alone else f"{_chip(span)} {_span(span)}" for span in message.spans
    )
    calls = "".join(f"\n{escape(call)}" for call in message.calls)
    letter = f"{_letter(message.spans[0].source)} " if alone else ""
    return f"<p>{letter}{head}\n{spans}{calls}</p>"


def _span(span: Span) -> str:
    more = f"<em> … {span.hidden:,} more characters</em>" if span.hidden else ""
    told = f' title="{escape(_named(span))}"' if span.note else ""
    colour = f"{swatch(span.source).colour}{_TINT}"
    return f'<span style="background:{colour}"{told}>{escape(span.text)}</span>{more}'


def _chip(span: Span) -> str:
    return f"{_letter(span.source)}<small> {span.tokens:,}</small>"


def _letter(source: Source) -> str:
    look = swatch(source)
    return f'<b style="border-bottom:3px solid {look.colour}">{look.letter}</b>'


def _named(span: Span) -> str:
    return " · ".join(filter(None, (swatch(span.source).label, span.note)))
