"""Files of examples beside rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG
from formal_llm.authoring import Example, load_plan_examples, read_plan_examples, write_examples
from formal_llm.authoring.examples import examples_beside, plan_of
from formal_llm.errors import NotationError

RULES = CFG.from_string("S -> wash S | dry | ε\n%limit 2 wash")

TEXT = """\
# what was agreed
--- allowed
wash dry

--- Not allowed: too much water
wash wash
wash
---
ε
"""


def test_what_stands_there() -> None:
    found = read_plan_examples(TEXT, RULES)
    assert found == (
        Example(("wash", "dry"), True, "", 2),
        Example(("wash", "wash", "wash"), False, "too much water", 5),
        Example((), True, "", 8),
    )
    assert all(one.satisfied_by(RULES) for one in found)  # the limit counts
    assert not Example(("dry", "dry"), True).satisfied_by(RULES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--- allowed\nwash drye", "2:6: drye is no terminal(?s:.*)did you mean dry"),
        ("--- allowed\n", "the example is empty"),
        ("wash\n--- allowed\nwash", "my.examples:1:1: this belongs to no example"),
        ("# a comment\n\nwash\n--- allowed\nwash", "my.examples:3:1: this belongs to no example"),
        ("# nothing\n", "there is no example"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(NotationError, match=said):
        read_plan_examples(text, RULES, "my.examples")


NAMES = st.sampled_from(["wash", "a b", 'say "x"', "é-=1"])


@given(
    st.lists(
        st.tuples(st.lists(NAMES, max_size=4), st.booleans(), st.sampled_from(["", "since it rains"])),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_written_is_read_back(rows: list[tuple[list[str], bool, str]]) -> None:
    from formal_llm import PDA

    rules = PDA([("q", name, None, "q", ()) for name in ("wash", "a b", 'say "x"', "é-=1")], start="q", accepting=["q"])
    examples = [Example(tuple(plan), allowed, why) for plan, allowed, why in rows]
    back = read_plan_examples(write_examples(examples), rules)
    assert [(one.plan, one.allowed, one.why) for one in back] == [(one.plan, one.allowed, one.why) for one in examples]


def test_beside_a_file(tmp_path: Path) -> None:
    path = tmp_path / "r.cfg"
    assert examples_beside(path) is None
    assert load_plan_examples(path, RULES) == ()
    path.with_suffix(".examples").write_text(TEXT, encoding="utf-8")
    assert len(load_plan_examples(path, RULES)) == 3
    assert plan_of("wash [Thought]", RULES.terminals) is None
