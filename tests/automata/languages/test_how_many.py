"""How many plans there are."""

from __future__ import annotations

import pytest

from formal_llm import CFG, Lookahead
from formal_llm.automata.languages.how_many import HowMany, how_many
from formal_llm.errors import Undecided


@pytest.mark.parametrize(
    ("rules", "many", "said"),
    [
        ("S -> a b | a b c d | e", HowMany(3, "words"), "3"),
        ("S -> a S | b", HowMany(5, "words", 5), "infinitely many; 5 up to 5"),
        ("S -> " + " | ".join(f"a{n}" for n in range(1200)), HowMany(1200, "words"), "1,200"),
    ],
)
def test_how_many_plans_there_are(rules: str, many: HowMany, said: str) -> None:
    found = how_many(Lookahead(CFG.from_string(rules)))
    assert found == many
    assert found.said("up to {}") == said


def test_derivations_are_counted_where_words_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    lookahead = Lookahead(CFG.from_string("S -> A | B\nA -> a\nB -> a"))
    count = lookahead.count

    def undecided(configuration: object = None, *, of: str = "words", max_length: int | None = None) -> int:
        if of == "words":
            raise Undecided("not counted")
        return count(configuration, of="derivations", max_length=max_length)

    monkeypatch.setattr(lookahead, "count", undecided)
    found = how_many(lookahead)
    assert found == HowMany(2, "derivations")
    assert found.said("") == "2 derivations (a plan may have several)"
