"""Policies in usual words: groups, parts, what is written, and the texts of SOPBench where there is a copy."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from formal_llm.errors import InputError
from formal_llm.llms import RandomLLM
from formal_llm.procedures import Hole, NeedGroup, Procedure, read_policy
from formal_llm.procedures.procedure import GROUPINGS, FactNeed, Need, NotNeed, walk_need

TOOLS = """# What a shop can do.
check find_order(order_id: text) "Looks an order up."
check find_customer(email: text) "Looks a customer up."
action log_in(email: text, password: text) "Logs a customer in."
    changes nothing
goal action refund(order_id: text, email: text) "Pays money back."
    cost 3
    sent(order_id)  # this need is replaced
goal action send_card(email: text) "Sends a gift card."

# What is true of orders and customers.
fact logged_in(email): log_in(email, password) is ok
fact sent(order_id): find_order(order_id).state == "sent"
fact damaged(order_id): find_order(order_id).condition == "damaged"
fact gold_member(email): find_customer(email).tier == "gold"
fact blocked(email): find_customer(email).status == "blocked"
"""
SHOP = Procedure.from_string(TOOLS)
SENTENCES = {
    "The customer is logged in.": "logged_in(email)",
    "The order is sent.": "sent(order_id)",
    "The order is not damaged.": "not damaged(order_id)",
    "The customer is a gold member.": "gold_member(email)",
    "The customer must not be blocked.": "not blocked(email)",
    "The moon is full.": '? "The moon is full."',
}
HEADINGS = {
    "all of": ["ALL of these conditions must be met:", "All of the following must hold:", "Each of these is required:"],
    "any of": [
        "ANY ONE of these conditions must be met:",
        "At least one of the following applies:",
        "Either of these:",
    ],
    "in order": ["These steps must be completed in order:", "In this order:"],
    "none of": ["NONE of these may hold:", "None of the following conditions may apply:"],
    "first of": ["The first of these that can be determined decides:"],
}


def write(need: Need) -> str:
    """A need in one line, to compare."""
    return f"{need.grouping}({', '.join(map(write, need.items))})" if isinstance(need, NeedGroup) else str(need)


def read(text: str, tool: str = "refund") -> str:
    return write(read_policy(SHOP, text, tool=tool).needs[tool])


def make_text(rng: random.Random, depth: int, mark: str, indent: str) -> tuple[list[str], str]:
    """A text at random, and the need that it states."""
    if depth == 0 or rng.random() < 0.4:
        sentence, need = rng.choice([*SENTENCES.items()])
        return [f"{mark}{sentence}"], need
    grouping = rng.choice(GROUPINGS)
    lines, needs = [f"{mark}{rng.choice(HEADINGS[grouping])}"], []
    for number in range(1, rng.randint(2, 4)):
        inner, need = make_text(
            rng, depth - 1, rng.choice(["• ", "- ", f"{number}. ", f"({'abc'[number - 1]}) "]), indent
        )
        lines += [f"{indent}{line}" for line in inner]
        needs.append(need)
    return lines, f"{grouping}({', '.join(needs)})"


@pytest.mark.parametrize("seed", range(60))
def test_groups_are_read_as_they_were_written(seed: int) -> None:
    rng = random.Random(seed)
    lines, need = make_text(rng, 4, "", rng.choice(["  ", "    "]))
    assert read("\n".join(lines)) == need


def test_parentheses_and_words_between_the_parts() -> None:
    text = "(\nThe customer is logged in.\nAND\n(\nThe order is sent.\nOR\nThe customer is a gold member.\n)\n)"
    assert read(text) == "all of(logged_in(email), any of(sent(order_id), gold_member(email)))"
    assert (
        read("- The order is sent.\nTHEN\n- The customer is logged in.") == "in order(sent(order_id), logged_in(email))"
    )
    mixed = "The order is sent.\nAND\nThe customer is logged in.\nOR\nThe customer is a gold member."
    assert read(mixed).startswith('? "The order is sent. AND')


def test_lines_go_on_and_lists_need_no_heading() -> None:
    assert (
        read("1. The order\n   is sent.\n2. The customer is a gold\n   member.")
        == "all of(sent(order_id), gold_member(email))"
    )
    assert read("The order is sent.") == "sent(order_id)"
    assert read("None.") == "all of()"


@pytest.mark.parametrize(
    "heading",
    [
        "At least two of these hold:",
        "If the order is late, all of these hold:",
        "Not all of these hold:",
        "Conditions:",
    ],
)
def test_a_heading_that_says_more_makes_a_hole(heading: str) -> None:
    text = f"{heading}\n- The order is sent.\n- The customer is logged in."
    assert read(text) == f'? "{heading} The order is sent. The customer is logged in."'


def test_parts_whose_heading_is_not_clear_are_a_hole() -> None:
    text = (
        "All of these:\n• The order is sent.\n• Any of these:\n• The customer is logged in.\n• The customer is blocked."
    )
    assert read(text).startswith('? "The order is sent. Any of these:')
    assert read("Any of these: the order is sent; the customer is logged in.").startswith("?")


POLICY = """The policy of our shop

## Refund
All of these:
- The customer is logged in.
- Any of these:
  - The order is not damaged.
  - The moon is full.

# Other things
We are nice.

send card: The customer is a gold member.
"""


def test_a_policy_has_a_part_for_each_tool() -> None:
    reading = read_policy(SHOP, POLICY)
    assert {name: write(need) for name, need in reading.needs.items()} == {
        "refund": 'all of(logged_in(email), any of(not damaged(order_id), ? "The moon is full."))',
        "send_card": "gold_member(email)",
    }
    assert reading.procedure == replace(
        SHOP, tools={name: replace(one, need=reading.needs.get(name, one.need)) for name, one in SHOP.tools.items()}
    )
    assert reading.unread == ("The policy of our shop", "# Other things", "We are nice.")
    assert [one.is_understood for one in reading.sentences] == [True, True, False, True]
    with pytest.raises(InputError, match="names no tool; write the name of a tool"):
        read_policy(SHOP, "The customer is logged in.")


def test_the_written_file_is_the_procedure_with_the_sentences() -> None:
    reading = read_policy(SHOP, POLICY)
    text = reading.write(TOOLS)
    assert Procedure.from_string(text) == reading.procedure == Procedure.from_string(reading.write())
    assert "        # The customer is logged in.\n        logged_in(email)\n" in text
    assert '            ? "The moon is full."\ngoal action send_card' in text
    assert "# What a shop can do.\n" in text
    assert "\n\n# What is true of orders and customers.\n" in text
    assert "this need is replaced" not in text


def test_a_model_is_asked_for_what_is_not_understood() -> None:
    asked = []

    class Chooser:
        def choose(self, question):  # type: ignore[no-untyped-def]
            asked.append(question)
            return RandomLLM(seed=1).choose(question)

    reading = read_policy(SHOP, POLICY, Chooser())
    assert len(asked) == 1
    assert "The moon is full." in asked[0].prompt
    assert asked[0].options[-1].text == "none of these"
    [one] = [one for one in reading.sentences if one.by_model]
    assert isinstance(one.need, FactNeed | NotNeed)
    assert f"# a model chose this: The moon is full.\n            {one.need}\n" in reading.write(TOOLS)
    none = read_policy(SHOP, POLICY, f"test:script={len(asked[0].options)}")
    assert [one.text for one in walk_need(none.needs["refund"]) if isinstance(one, Hole)] == ["The moon is full."]


COPY = Path(__file__).parents[3] / "shared" / "data" / "sopbench"


@pytest.mark.skipif(not COPY.is_dir(), reason="no copy of SOPBench beside the repository")
@pytest.mark.parametrize(
    ("domain", "form", "least"),
    [("bank", "tree", 0.97), ("dmv", "tree", 0.93), ("healthcare", "tree", 1), ("online_market", "tree", 0.92),
     ("dmv", "structured", 0.79)],
)  # fmt: skip
def test_the_texts_of_sopbench_are_not_misread(
    domain: str, form: str, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.policy_text import measure_domain
    from formal_llm.packs.sop.benchmark import SopBench

    monkeypatch.syspath_prepend(str(COPY))
    texts, opposites, _ = measure_domain(SopBench(COPY), domain, form)
    for score in (texts, opposites):
        assert score.counts["misread"] == score.counts["tree wrong"] == 0
    # Lists of three levels have lost their indentation in the other form: what belongs where is not clear.
    assert form == "structured" or texts.counts["tree right"] == texts.counts["trees"]
    assert texts.counts["understood"] >= least * texts.counts["leaves"]
