"""What a question about a selection tells of the sets that can be chosen: true, and enough where there are few."""

from __future__ import annotations

import re
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Walk, Wording
from formal_llm.errors import NoValidPlan
from formal_llm.planning.walks.hints import LISTED
from tests import oracles, strategies

LETTERS = "abcdef"


def told(walk: Walk) -> list[str]:
    """The lines of a question between its options and its instruction."""
    assert walk.question is not None
    lines = walk.question.prompt.split("\n")
    return lines[lines.index("", lines.index(f"1: {walk.question.options[0].text}")) + 1 : -1]


def selecting(costs: list[float], lines: str, rest: str = "x") -> CFG:
    names = LETTERS[: len(costs)]
    numbers = "\n".join(f"{name} cost={cost}" for name, cost in zip(names, costs, strict=True))
    return CFG.from_string(f"S -> some({', '.join(names)}) T\nT -> {rest}\n{numbers}\n{lines}")


def test_few_sets_are_listed() -> None:
    walk = Walk(selecting([1, 1, 1.25, 9, 9], "%limit cost <= 3\n%limit cost >= 2.1"))
    assert told(walk) == ["Only these can be chosen together: 1, 3; 2, 3."]
    walk.answer([2, 3])
    walk.rule_out()
    assert walk.plan.word == ("a", "c", "x")  # the other one is taken without a question


def test_of_many_sets_the_sums_are_told() -> None:
    walk = Walk(selecting([1, 2, 3, 4, 5, 6], "%limit cost <= 10\n%limit cost >= 3.5"))
    assert told(walk) == ["Your choices together must come to between 3.5 and 10 in cost."]
    later = Walk(selecting([1, 2, 3, 4, 5, 6], "%limit cost <= 10\n%limit cost >= 3.5\nx cost=0.5"))
    assert told(later) == ["Your choices, with all that comes after them, must come to between 3.5 and 10 in cost."]
    exactly = Walk(selecting([1, 1, 1, 1, 1, 1], "%limit cost <= 3\n%limit cost >= 3"))
    assert told(exactly) == ["Your choices together must come to exactly 3 in cost."]


def test_what_has_to_be_chosen_and_what_is_ruled_out_is_told() -> None:
    walk = Walk(selecting([1] * 6, "%require 1 b e"))
    assert told(walk) == ["Among your choices must be: 2, 5."]
    walk.answer([2, 5])
    walk.rule_out()
    assert told(walk)[1:] == ["These cannot be chosen together any more: 2, 5."]


def test_where_all_may_be_chosen_together_nothing_is_told() -> None:
    for count in (2, 6):
        walk = Walk(selecting([1] * count, "%limit cost <= 6\n%limit 1"))
        assert "together" not in walk.question.prompt  # type: ignore[union-attr]


def test_the_lines_are_templates() -> None:
    wording = Wording(selection_sets="Nur: {sets}")
    walk = Walk(selecting([1, 1, 1.25], "%limit cost <= 3\n%limit cost >= 2.1"), wording=wording)
    assert told(walk) == ["Nur: 1, 3; 2, 3"]
    with pytest.raises(ValueError, match="selection_sum"):
        Wording(selection_sum="{sum}")


@strategies.examples(80)
@given(
    costs=st.lists(st.sampled_from([0, 0.5, 1, 2, 3]), min_size=1, max_size=6),
    most=st.sampled_from(["", 2, 3.5, 5, 9]),
    least=st.sampled_from(["", 0.5, 2, 4]),
    required=st.sampled_from(["", "a", "b", "a b", "x"]),
    rest=st.sampled_from(["x", "x | y", "x | a x", "y | x y"]),
    numbers=st.sampled_from(["", "x cost=1"]),
)
def test_what_is_asked_and_told_is_what_all_words_say(
    costs: list[float], most: object, least: object, required: str, rest: str, numbers: str
) -> None:
    lines = [numbers, f"%limit cost <= {most}" if most else "", f"%limit cost >= {least}" if least else ""]
    known = {*LETTERS[: len(costs)], "x"} if "x" in rest else {*LETTERS[: len(costs)]}
    lines += [f"%require 1 {required}" if set(required.split()) <= known else ""]
    try:
        cfg = selecting(costs, "\n".join(lines), rest)
        walk = Walk(cfg)
    except (NoValidPlan, ValueError):
        return  # that this is so is tested elsewhere
    words = [w for w in oracles.language(cfg, 9) if oracles.keeps(w, cfg.limits, oracles.alphabet(cfg), cfg.symbols)]
    every = LETTERS[: len(costs)]
    # The rest begins with x or y, or with an a after which no more member can come.
    trees = {
        frozenset(word[:cut])
        for word in words
        for cut in range(1, len(word))
        if set(word[:cut]) <= set(every)
        and list(word[:cut]) == sorted(set(word[:cut]))
        and " ".join(word[cut:]) in rest.split(" | ")
    }
    question = walk.question
    if question is None or not question.several:
        assert len(trees) == 1
        return
    assert len(trees) > 1
    shown = [option.text for option in question.options]
    assert shown == [name for name in every if any(name in one for one in trees)]
    sizes = range(1, len(shown) + 1)
    numbers_of = list(chain.from_iterable(combinations(sizes, size) for size in sizes))
    legal = [some for some in numbers_of if not question.problem(some)]
    assert {frozenset(shown[n - 1] for n in some) for some in legal} == trees
    for line in told(walk):
        said = line.rstrip(".").split(": ")[-1]
        if line.startswith("Only"):
            assert len(legal) <= LISTED < 2 ** len(shown) - 1 or len(legal) < len(numbers_of)
            assert [tuple(map(int, one.split(", "))) for one in said.split("; ")] == legal
        elif line.startswith("Among"):
            assert set(map(int, said.split(", "))) == set.intersection(*map(set, legal))
        else:
            amounts = [float(found) for found in re.findall(r"\d+(?:\.\d+)?", line)]
            low, high = (amounts[0], amounts[-1]) if "least" not in line else (amounts[0], float("inf"))
            low = 0.0 if "at most" in line else low
            carried = {**dict(zip(every, costs, strict=True)), "x": 1.0 if numbers else 0.0}
            sums = [sum(carried[shown[n - 1]] for n in some) for some in legal]
            if "comes after" not in line:
                assert all(low <= one <= high for one in sums)
            assert all(one <= high for one in sums)
