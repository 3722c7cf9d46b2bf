"""Examples of traces beside rules for tool calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.errors import NotationError
from formal_llm.guard import Call, Guard, GuardRules, Result, Said
from formal_llm.guard.examples import load_trace_examples, read_trace_examples

RULES = """
approve: approve.result[ok] with order = order
pay: pay with order = order
big: pay[amount > 100]
rule approval for each order: approve before pay
rule care ask: never big
"""
EXAMPLES = """# What stands here is a comment.
--- allowed
user: Please pay "order 7" -> now.
approve {"order": 7, "note": "a} -> b"} -> {"ok": true}

pay {"order": 7, "amount": 500} approved -> "paid"
close

--- not allowed: it failed
approve {"order": 7} -> error
pay {"order": 7, "amount": 5}

--- not allowed: nobody was asked
approve {"order": 7} -> true
pay {"order": 7, "amount": 500}
"""


def test_lines_are_events() -> None:
    first, second, third = read_trace_examples(EXAMPLES)
    approval, order = {"order": 7, "note": "a} -> b"}, {"order": 7, "amount": 500}
    assert first.trace.events == (
        Said("user", 'Please pay "order 7" -> now.'),
        Call("approve", approval, "4"), Result("approve", approval, {"ok": True}, "4"),
        Call("pay", order, "6", approved=True), Result("pay", order, "paid", "6"),
        Call("close", id="7"),
    )  # fmt: skip
    assert first.trace.places == ("line 3", "line 4", "line 4", "line 6", "line 6", "line 7")
    assert second.trace.events[1].error
    assert [(one.allowed, one.why, one.line) for one in (first, second, third)] == [
        (True, "", 2), (False, "it failed", 9), (False, "nobody was asked", 13),
    ]  # fmt: skip


def test_what_is_kept_and_what_is_not() -> None:
    guard = Guard(GuardRules.from_string(RULES))
    assert [one.describe_mismatch(guard) for one in read_trace_examples(EXAMPLES)] == ["", "", ""]
    turned = EXAMPLES.replace("--- allowed", "--- refused").replace("--- not allowed", "--- allowed, thought someone")
    told = [one.describe_mismatch(guard) for one in read_trace_examples(turned)]
    assert told[0] == "allowed, and should not be"
    assert told[1].startswith("line 11 is refused: pay cannot be called now: approval")
    assert told[2].startswith("line 15 is refused: pay needs the approval of a person")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("pay {'order': 7}", "this is no event: Expecting property name"),
        ('pay {"a": 1, "a": 2}', "'a' is there twice"),
        ("pay 7", "'7' is neither arguments nor a result"),
        ("-> true", "the name of a tool stands first"),
        ("pay -> maybe", "this is no event"),
        ('pay {"a": ' + "[" * 100_000 + "}", "this is no event"),
    ],
)
def test_other_lines_are_errors_with_their_place(line: str, said: str) -> None:
    with pytest.raises(NotationError, match=said) as caught:
        read_trace_examples(f"--- allowed\nclose\n  {line}\n", "shop.examples")
    assert (caught.value.file, caught.value.line, caught.value.column) == ("shop.examples", 3, 3)


def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    rules = tmp_path / "shop.guard"
    rules.write_text(RULES, encoding="utf-8")
    assert load_trace_examples(rules) == ()
    (tmp_path / "shop.examples").write_text(EXAMPLES, encoding="utf-8")
    assert len(load_trace_examples(rules)) == 3
