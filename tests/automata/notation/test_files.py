"""Rules from files, whatever they are written in."""

import pytest

from formal_llm import CFG, PDA, Behaviour, Flowchart, authored
from formal_llm.automata.notation.files import ENDINGS, read_rules, read_rules_text
from formal_llm.errors import GrammarError, NotationError

TEXTS = {
    ".cfg": (CFG, "S -> a"),
    ".pda": (PDA, "%accept q\np, a, ε -> q, ε"),
    ".mmd": (Flowchart, "flowchart TD\nA --> B"),
    ".mermaid": (Flowchart, "flowchart TD\nA --> B"),
    ".agent": (Behaviour, "(define b (:states a) (:behavior a))"),
}


class TestReadRules:
    @pytest.mark.parametrize("ending", ENDINGS)
    def test_each_ending_is_read_as_what_it_is(self, tmp_path, ending):
        kind, text = TEXTS[ending]
        path = tmp_path / f"some rules{ending}"
        path.write_text(text, encoding="utf-8")
        assert type(read_rules(path)) is kind
        assert read_rules(str(path)) == read_rules(path) == kind.from_string(text)

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_a_text_that_is_not_saved_is_read_as_its_file_would_be(self, tmp_path, ending):
        kind, text = TEXTS[ending]
        path = tmp_path / f"rules{ending}"
        assert type(read_rules_text(text, path)) is kind
        path.write_text(text, encoding="utf-8")
        assert read_rules_text(text, path) == read_rules(path)

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_errors_name_the_file(self, tmp_path, ending):
        path = tmp_path / f"broken{ending}"
        with pytest.raises(NotationError, match="no such file"):
            read_rules(path)
        path.write_text("(", encoding="utf-8")
        with pytest.raises(NotationError) as caught:
            read_rules(path)
        assert caught.value.file == str(path)

    def test_an_ending_that_names_no_notation(self, tmp_path):
        with pytest.raises(NotationError, match=r"\.cgf names no notation of rules; there are: \.cfg, \.pda"):
            read_rules(tmp_path / "rules.cgf")

    @pytest.mark.parametrize("name", ["rules", "rules.txt"])
    def test_a_file_of_another_name_is_a_grammar(self, tmp_path, name):
        path = tmp_path / name
        path.write_text("S -> a b", encoding="utf-8")
        assert read_rules(path) == CFG([("S", ("a", "b"))])
        path.write_text("S -> a b)", encoding="utf-8")
        with pytest.raises(GrammarError):
            read_rules(path)

    @pytest.mark.parametrize("kind", ["grammars", "agents"])
    def test_every_shipped_file_is_read_back_from_its_print(self, kind):
        for name in authored.names(kind):
            rules = read_rules(authored.find(kind, name, ENDINGS))
            assert type(rules).from_string(str(rules)) == rules
