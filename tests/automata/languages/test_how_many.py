"""How many plans there are, for people."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Lookahead
from formal_llm.automata.languages.how_many import PlanCount, count_plans
from formal_llm.errors import Undecided


@pytest.mark.parametrize(
    ("rules", "many", "said"),
    [
        ("S -> a b | a b c d | e", PlanCount(3, "words"), "3"),
        ("S -> a S | b", PlanCount(5, "words", 5), "infinitely many; 5 up to 5"),
        ("S -> " + " | ".join(f"a{n}" for n in range(1200)), PlanCount(1200, "words"), "1,200"),
    ],
)
def test_how_many_plans_there_are(rules: str, many: PlanCount, said: str) -> None:
    found = count_plans(Lookahead(CFG.from_string(rules)))
    assert found == many
    assert found.describe_count("up to {}") == said


def test_derivations_are_counted_where_words_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    lookahead = Lookahead(CFG.from_string("S -> A | B\nA -> a\nB -> a"))
    count = lookahead.count

    def undecided(configuration: object = None, *, of: str = "words", max_length: int | None = None) -> int:
        if of == "words":
            raise Undecided("not counted")
        return count(configuration, of="derivations", max_length=max_length)

    monkeypatch.setattr(lookahead, "count", undecided)
    found = count_plans(lookahead)
    assert found == PlanCount(2, "derivations")
    assert found.describe_count("") == "2 derivations (a plan may have several)"
