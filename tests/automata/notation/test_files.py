"""Rules from files, whatever they are written in."""

import pytest

from formal_llm import CFG, PDA, Behaviour, Flowchart, authored
from formal_llm.automata.notation.files import ENDINGS, read_rules, read_rules_text
from formal_llm.errors import GrammarError, InputError, NotationError, ResourceNotFound

TEXTS = {
    ".cfg": (CFG, "S -> a"),
    ".pda": (PDA, "%accept q\np, a, ε -> q, ε"),
    ".mmd": (Flowchart, "flowchart TD\nA --> B"),
    ".mermaid": (Flowchart, "flowchart TD\nA --> B"),
    ".agent": (Behaviour, "(define b (:states a) (:behavior a))"),
    ".bpmn": (Flowchart, '<process id="p"><task id="a"/></process>'),
    ".scxml": (PDA, '<scxml><state id="a"><transition event="e" target="f"/></state><final id="f"/></scxml>'),
    ".xstate": (PDA, '{"states": {"a": {"on": {"e": "f"}}, "f": {"type": "final"}}}'),
    ".json": (PDA, '{"states": {"a": {"on": {"e": "f"}}, "f": {"type": "final"}}}'),
    ".xml": (Flowchart, '<process id="p"><task id="a"/></process>'),
}
READ = {
    ".bpmn": Flowchart.from_bpmn, ".scxml": PDA.from_scxml, ".xstate": PDA.from_xstate, ".json": PDA.from_xstate,
    ".xml": Flowchart.from_bpmn,
}  # fmt: skip
DIAGRAM = "stateDiagram-v2\n[*] --> A\nA --> B : go\nB --> [*]"


class TestReadRules:
    @pytest.mark.parametrize("ending", ENDINGS)
    def test_each_ending_is_read_as_what_it_is(self, tmp_path, ending):
        kind, text = TEXTS[ending]
        path = tmp_path / f"some rules{ending}"
        path.write_text(text, encoding="utf-8")
        assert type(read_rules(path)) is kind
        assert read_rules(str(path)) == read_rules(path) == READ.get(ending, kind.from_string)(text)

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


class TestWhatIsInAFile:
    @pytest.mark.parametrize("ending", [".mmd", ".mermaid"])
    def test_a_state_diagram(self, tmp_path, ending):
        path = tmp_path / f"diagram{ending}"
        path.write_text(DIAGRAM, encoding="utf-8")
        assert read_rules(path) == read_rules_text(DIAGRAM, path) == PDA.from_file(path) == PDA.from_mermaid(DIAGRAM)

    def test_xml_is_known_by_its_first_element(self, tmp_path):
        path = tmp_path / "rules.xml"
        path.write_text(f"<?xml version='1.0'?>\n<!-- <process> -->\n{TEXTS['.scxml'][1]}", encoding="utf-8")
        assert read_rules(path) == PDA.from_file(path) == PDA.from_scxml(TEXTS[".scxml"][1])
        path.write_text('<b:definitions xmlns:b="u"><b:process id="p"><b:task id="a"/></b:process></b:definitions>')
        assert type(read_rules(path)) is Flowchart
        path.write_text("<html/>")
        with pytest.raises(NotationError, match="this XML is no rules: it begins with <html>"):
            read_rules(path)
        path.write_text("S -> a")
        with pytest.raises(NotationError, match="this is no XML"):
            read_rules(path)

    def test_json_that_is_no_machine(self, tmp_path):
        path = tmp_path / "rules.json"
        path.write_text('{"rules": ["S -> a"]}')
        with pytest.raises(NotationError, match="this JSON is no machine of XState: its keys are rules"):
            read_rules(path)


class TestOptions:
    @pytest.mark.parametrize("ending", [".scxml", ".xstate", ".json", ".mmd"])
    def test_the_states_in_which_plans_end(self, tmp_path, ending):
        path = tmp_path / f"machine{ending}"
        path.write_text(DIAGRAM if ending == ".mmd" else TEXTS[ending][1], encoding="utf-8")
        first = "A" if ending == ".mmd" else "a"
        pda = read_rules(path, final=[first])
        assert pda.accepts([])
        assert pda == PDA.from_file(path, final=[first]) == read_rules_text(path.read_text(), path, final=[first])
        with pytest.raises(ResourceNotFound, match="no state 'nowhere'"):
            read_rules(path, final=["nowhere"])

    @pytest.mark.parametrize("name", ["rules.cfg", "rules.bpmn", "rules.pda", "rules"])
    def test_final_states_of_something_else(self, tmp_path, name):
        path = tmp_path / name
        path.write_text(TEXTS.get(path.suffix, TEXTS[".cfg"])[1], encoding="utf-8")
        with pytest.raises(InputError, match=r"final \(a\) is for a state machine .*, which .* is not"):
            read_rules(path, final=["a"])

    @pytest.mark.parametrize("name", ["rules.cfg", "rules.scxml", "rules.mmd"])
    def test_a_process_of_something_else(self, tmp_path, name):
        path = tmp_path / name
        path.write_text(TEXTS[path.suffix][1], encoding="utf-8")
        with pytest.raises(InputError, match=r"process \(p\) is for a process in BPMN, which .* is not"):
            read_rules(path, process="p")
