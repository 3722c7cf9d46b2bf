"""What can be planned with, as the automaton that it is."""

import pytest

from formal_llm import CFG, PDA, Behaviour, Flowchart, Lookahead
from formal_llm.automata.models.rules import automaton_of
from formal_llm.errors import AutomatonError
from tests.automata.charts import RETURNS


class TestAutomatonOf:
    @pytest.mark.parametrize(
        "rules", [CFG.from_string("S -> a"), PDA([("p", "a", None, "q")], start="p", accepting=["q"])]
    )
    def test_grammars_and_automata_are_themselves(self, rules):
        assert automaton_of(rules) is rules
        assert automaton_of(rules, {"limit": 14}) is rules

    def test_a_behaviour_is_its_automaton(self):
        behaviour = Behaviour.load("react")
        assert automaton_of(behaviour) is behaviour.pda

    def test_a_flowchart_is_filled_first(self):
        pda = automaton_of(RETURNS, {"limit": 14})
        assert pda == RETURNS.fill({"limit": 14}).pda()
        assert {t.question for t in pda.transitions} == {"Within 14 days?", "Seal broken?", ""}

    def test_what_a_flowchart_misses_is_told(self):
        with pytest.raises(AutomatonError, match=r"no value for \{limit\}"):
            automaton_of(RETURNS)

    def test_what_was_filled_is_not_filled_again(self):
        text = "flowchart TD\na[Write to {company}] --> b{Does {company} answer?}\nb -->|yes| c\nb -->|no| d"
        filled = Flowchart.from_mermaid(text).fill({"company": "ACME {Holding} Ltd"})
        assert (filled.placeholders, filled.fill({})) == ((), filled)
        assert automaton_of(filled) == Lookahead(filled).pda
        texts = {text for t in filled.pda().transitions for text in (t.text, t.question)}
        assert {"Write to ACME {Holding} Ltd", "Does ACME {Holding} Ltd answer?"} <= texts
        with pytest.raises(AutomatonError, match=r"no \{Holding\}; its names are: none"):
            filled.fill({"Holding": "x"})
