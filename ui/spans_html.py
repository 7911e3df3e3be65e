"""The prompt as HTML: every span in its source's colour, every character as it was sent.

Texts are escaped and stand in ``pre-wrap`` spans, so nothing in them is read as markup. The
small chip in front of a span (letter and tokens) cannot be selected and is no part of the text.
"""

from __future__ import annotations

from html import escape

from ui.palette import swatch, translucent
from ui.view_models.prompt import PromptMessage, PromptView, Span
from ui.view_models.text import plural

_MESSAGE = "margin:0 0 .7rem 0;border-left:3px solid rgba(140,140,140,.4);padding-left:.6rem"
_HEAD = "font-size:.8rem;opacity:.7;margin-bottom:.15rem"
_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace;font-size:.82rem"
_CHIP = "font-size:.7rem;user-select:none;border-radius:.3rem;padding:0 .25rem;margin-right:.2rem"


def prompt_html(view: PromptView) -> str:
    """Return the messages of a prompt, in order, with a legend of what stands beside them."""
    parts = []
    for number, message in enumerate(view.messages):
        gap = view.skipped and number and message.index != view.messages[number - 1].index + 1
        if gap:
            parts.append(
                f'<div style="{_HEAD}">… {plural(view.skipped, "message")} not drawn …</div>'
            )
        parts.append(_message(message))
    if view.beside:
        beside = " ".join(_chip(span) + _named(span) for span in view.beside)
        parts.append(f'<div style="{_HEAD}">beside the messages: {beside}</div>')
    return f'<div role="group" aria-label="The exact prompt">{"".join(parts)}</div>'


def _message(message: PromptMessage) -> str:
    head = f"{escape(message.role)} · {plural(message.tokens, 'token')}"
    spans = "".join(_chip(span) + _span(span) for span in message.spans)
    calls = "".join(f"\n{escape(call)}" for call in message.calls)
    return (
        f'<div style="{_MESSAGE}"><div style="{_HEAD}">{head}</div>'
        f'<div style="{_TEXT}">{spans}{calls}</div></div>'
    )


def _span(span: Span) -> str:
    look = swatch(span.source)
    more = f'<em style="opacity:.7"> … {span.hidden:,} more characters</em>' if span.hidden else ""
    style = f"background:{translucent(look.colour, 0.22)};border-bottom:2px solid {look.colour}"
    return f'<span style="{style}" title="{escape(_told(span))}">{escape(span.text)}</span>{more}'


def _chip(span: Span) -> str:
    look = swatch(span.source)
    style = f"{_CHIP};background:{translucent(look.colour, 0.45)}"
    return (
        f'<span style="{style}" title="{escape(_told(span))}">{look.letter} {span.tokens:,}</span>'
    )


def _named(span: Span) -> str:
    return escape(" · ".join(filter(None, (swatch(span.source).label, span.note))))


def _told(span: Span) -> str:
    tokens = plural(span.tokens, "token")
    return " · ".join(filter(None, (swatch(span.source).label, tokens, span.note)))
