"""Redaction: what is found, what is left alone, and that nothing found is kept."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_core.errors import InvalidInput
from memory_core.messages import Message
from memory_core.redaction import CARD, EMAIL, IBAN, KEY, PHONE, Redactor, luhn, remainder_97

FOUND = {
    EMAIL: [
        "dana@example.org", "d.o+n-a_1@mail.example.co.uk", "дана@пример.рф",
        "x@sub-1.example.museum",
    ],
    PHONE: [
        "+49 171 1234567", "+1 (415) 555-2671", "+351 912 345 678", "0049 30 123456",
        "030/12345678",
        "(0171) 123 45 67", "0171-1234567", "415-555-2671", "(415) 555-2671", "1-800-555-0199",
        "+442079460958",
    ],
    CARD: [
        "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "378282246310005",
        "3782 822463 10005", "6011000990139424", "4222222222222",
    ],
    IBAN: [
        "DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "GB29 NWBK 6016 1331 9268 19",
        "PT50 0002 0123 1234 5678 9015 4", "NO93 8601 1117 947", "de89370400440532013000",
    ],
    KEY: [
        "sk-proj-abcdefghijklmnop1234567890", "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAIOSFODNN7EXAMPLE", "AIza" + "a" * 35, "xoxb-1234567890-abcdefghij",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijkl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabc+/=\n-----END RSA PRIVATE KEY-----",
    ],
}  # fmt: skip
LEFT = [
    "order 4111111111111112", "room 101, 2nd floor", "2026-03-01 12:00:00", "12.03.2026",
    "1,234,567.89 EUR", "version 10.11.12.13", "192.168.0.1", "a@b", "user @ example", "@dana",
    "3.14159265358979", "ISBN 978-3-16-148410-0", "0.0000012345678", "#00112233445566",
    "GB83WEST12345698765432", "skating is fun", "the secret is out", "my password: short",
    "10000000000000000000000000000000000000000000000001", "2026", "12/2026", "call 911", "01.02.03",
    "de305d54-75b4-431b-adb2-eb6b9e546014", "Token limit 1600",
]  # fmt: skip


@pytest.mark.parametrize(("kind", "value"), [(k, v) for k, vs in FOUND.items() for v in vs])
def test_what_is_found_is_replaced_by_its_kind(kind, value):
    """Each kind is found alone, in a sentence and beside punctuation, and counted once."""
    redactor = Redactor()
    for text in ("{}", "It is {}, please.", "({})", "a: {}\nb", "«{}»"):
        found = redactor.text(text.format(value))
        assert found.text == text.format(f"[{kind}]"), found
        assert found.counts == {kind: 1}


@pytest.mark.parametrize("text", LEFT)
def test_what_only_looks_alike_stays(text):
    """Wrong check digits, dates, versions, amounts and ids are left as they are."""
    found = Redactor().text(text)
    assert (found.text, found.counts) == (text, {})


def test_a_number_beside_another_is_still_found():
    """A card followed by its code, or an account by a bank code, does not hide."""
    found = Redactor().text("4111 1111 1111 1111 123 and DE89 3704 0044 0532 0130 00 BIC COBADEFF")
    assert found.text == "[card] 123 and [IBAN] BIC COBADEFF"
    assert Redactor().text("id 12 4111 1111 1111 1111").text == "id 12 [card]"


def test_a_named_secret_is_found():
    """Whatever follows a name for a secret goes, the name stays."""
    found = Redactor().text("password: hunter2hunter2, api_key=0123456789abcdef")
    assert found.text == "password: [key], api_key=[key]"
    assert found.counts == {KEY: 2}


def test_only_the_chosen_kinds():
    """A kind that was not chosen stays; an unknown one is refused."""
    text = "dana@example.org +49 171 1234567"
    assert Redactor([PHONE]).text(text).text == "dana@example.org [phone]"
    assert Redactor([]).text(text).text == text
    with pytest.raises(InvalidInput):
        Redactor(["shoe size"])


def test_patterns_of_ones_own():
    """A named regular expression is redacted too; one that cannot work is refused."""
    found = Redactor(patterns={"customer": r"\bC-\d{4}\b"}).text("C-1234 and C-5678, C-9")
    assert (found.text, found.counts) == ("[customer] and [customer], C-9", {"customer": 2})
    for name, pattern in (("x", "("), ("x", "a*"), ("", "a"), ("[x]", "a"), ("x", "a" * 501)):
        with pytest.raises(InvalidInput):
            Redactor(patterns={name: pattern})


def test_a_message_is_redacted_wherever_it_holds_text():
    """Text, tool arguments and kwargs lose it; ids and structure stay."""
    message = Message(
        "assistant",
        (
            {"block_type": "text", "text": "write to dana@example.org"},
            {
                "block_type": "tool_call",
                "tool_call_id": "0171 1234567",
                "tool_name": "mail",
                "tool_kwargs": {"to": ["dana@example.org"], "n": 3},
            },
        ),
        {"note": "+49 171 1234567"},
    )
    found, counts = Redactor().message(message)
    assert counts == {EMAIL: 2, PHONE: 1}
    assert found.blocks[1]["tool_kwargs"] == {"to": ["[e-mail]"], "n": 3}
    assert found.blocks[1]["tool_call_id"] == "0171 1234567"
    assert found.kwargs == {"note": "[phone]"}
    plain = Message.of("user", "nothing here")
    assert Redactor().message(plain) == (plain, {})


def test_keys_are_redacted_and_stay_apart():
    """A key that says too much is redacted as well, and no entry takes another's place."""
    counts: Counter[str] = Counter()
    found = Redactor().json({"a@x.example": 1, "b@x.example": 2, "c@x.example": 3}, counts)
    assert found == {"[e-mail]": 1, "[e-mail] 2": 2, "[e-mail] 3": 3}
    assert counts == {EMAIL: 3}


def test_a_trace_is_redacted_as_json():
    """JSON text is read, redacted and written; anything else is redacted as text."""
    counts: Counter[str] = Counter()
    trace = json.dumps({"query": "dana@example.org", "session": "a@b.example", "n": 1})
    found = json.loads(Redactor().json_text(trace, counts))
    assert found == {"query": "[e-mail]", "session": "a@b.example", "n": 1}
    assert Redactor().json_text("no {json dana@example.org", counts) == "no {json [e-mail]"
    assert counts == {EMAIL: 2}


def test_checks_by_hand():
    """The check sums agree with examples worked by hand."""
    assert luhn("79927398713")
    assert not luhn("79927398710")
    assert remainder_97("GB82WEST12345698765432") == 1
    assert remainder_97("GB83WEST12345698765432") != 1


@given(st.text(max_size=300))
def test_redacting_twice_changes_nothing_more(text):
    """What was redacted holds nothing left to find, whatever the text."""
    once = Redactor().text(text)
    twice = Redactor().text(once.text)
    assert twice.counts == {} or sum(twice.counts.values()) < sum(once.counts.values())
    if not once.counts:
        assert once.text == text


@pytest.mark.parametrize(
    "text",
    ["a" * 200_000, "0" * 200_000, "0 " * 100_000, "a@" * 100_000, "a." * 100_000, "(0" * 100_000,
     "+1" * 100_000, "DE12 " * 40_000, "sk-" * 70_000, "password " * 20_000, "eyJ" * 70_000,
     "-----BEGIN PRIVATE KEY-----" * 8_000, "1-" * 100_000, "x@a" + "-a" * 100_000],
    ids=lambda t: t[:8],
)  # fmt: skip
def test_hostile_text_is_no_trap(text):
    """Two hundred thousand characters made to confuse end in a moment, or this test never would."""
    assert Redactor().text(text).text
