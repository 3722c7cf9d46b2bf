"""What values have in common: notations, frozen mappings, what is planned with."""

import pytest
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, Lookahead
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.rules import automaton_of
from formal_llm.errors import AutomatonError, GrammarError
from tests.automata.charts import RETURNS

#: One of each kind, as it is printed.
PRINTED = {
    CFG: "%start S\n%limit 1\n\nS -> a S | ε\n\na \"the a\" cost=2\n",
    PDA: "%start p\n%accept q\n\np, a, ε -> q, ε \"go\"\n",
    Flowchart: 'flowchart TB\n    A["Do it"]\n    B(["End"])\n    A --> B\n',
    Behaviour: '(define b\n  (:states\n    (a (:text "[A]"))\n    (c))\n  (:behavior\n    (until a c)))\n',
}  # fmt: skip


class TestKinds:
    @pytest.mark.parametrize("kind", PRINTED)
    def test_there_and_back(self, kind, tmp_path):
        value = kind.from_string(PRINTED[kind])
        assert type(value) is kind
        assert str(value) == PRINTED[kind]
        path = tmp_path / "rules"
        path.write_text(str(value), encoding="utf-8")
        assert kind.from_file(path) == value


class TestFiles:
    def test_missing_file_and_folder(self, tmp_path):
        with pytest.raises(GrammarError, match="no such file") as caught:
            CFG.from_file(tmp_path / "missing.cfg")
        assert caught.value.file == str(tmp_path / "missing.cfg")
        with pytest.raises(GrammarError, match="cannot be read") as caught:
            CFG.from_file(tmp_path)
        assert caught.value.file == str(tmp_path)

    @pytest.mark.parametrize(
        "data",
        [
            b"\x80\x81",
            b"S -> a\xff",
            "S -> a".encode("utf-16"),
            "S -> a".encode("utf-32"),
            b"\x7fELF\x00\x01",
            b"S -> \x00",
        ],
    )
    def test_files_that_are_not_text(self, tmp_path, data):
        path = tmp_path / "odd.cfg"
        path.write_bytes(data)
        with pytest.raises(GrammarError, match="not a text file") as caught:
            CFG.from_file(path)
        assert caught.value.file == str(path)


plain = st.dictionaries(st.text(max_size=3), st.integers() | st.none(), max_size=5)


class TestFrozenDict:
    @pytest.mark.parametrize(
        "change",
        [
            lambda frozen: frozen.__setitem__("a", 2), lambda frozen: frozen.__delitem__("a"),
            lambda frozen: frozen.clear(), lambda frozen: frozen.pop("a"), lambda frozen: frozen.popitem(),
            lambda frozen: frozen.setdefault("b", 1), lambda frozen: frozen.update(b=1),
            lambda frozen: frozen.__ior__({"b": 1}),
        ],
    )  # fmt: skip
    def test_refuses_every_change(self, change):
        frozen = FrozenDict({"a": 1})
        with pytest.raises(TypeError, match="does not change"):
            change(frozen)
        assert frozen == {"a": 1}


class TestAutomatonOf:
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
