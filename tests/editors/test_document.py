"""What is wrong where, and what names mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm.editors.document import Document, DocumentFinding, NamePlace


def test_an_error_at_its_place() -> None:
    (found,) = Document("S -> a\n%limit 1 washs", "g.cfg").findings
    assert (found.line, found.column, found.end, found.severity) == (1, 9, 14, "error")
    assert found.message.startswith("unknown symbol in a limit: washs")


def test_warnings_and_nothing() -> None:
    (found,) = Document("S -> a\nBee -> b", "g.cfg").findings
    assert found == DocumentFinding(1, 0, 3, "warning", "Bee cannot be reached from the start symbol S")
    assert Document("S -> a", "g.cfg").findings == ()


def test_an_error_in_an_imported_file_is_told_at_the_import(tmp_path: Path) -> None:
    (tmp_path / "tools.cfg").write_text("T -> ->")
    (found,) = Document('S -> T\n%import "tools.cfg"', tmp_path / "g.cfg").findings
    assert (found.line, found.column, found.end) == (1, 0, 19)
    assert "tools.cfg:1:6: unexpected '->'" in found.message


@pytest.mark.parametrize("text", ["", "\n", "S ->", 'S -> "', "\ufeffS -> x y\r", "S -> a |", "#", "%", "(" * 50, "\0"])
@pytest.mark.parametrize("ending", [".cfg", ".pda", ".agent", ".mmd", ".txt"])
def test_whatever_is_half_written_is_told_within_the_text(text, ending) -> None:
    document = Document(text, f"x{ending}")
    lines = text.split("\n")
    for found in document.findings:
        assert 0 <= found.line < len(lines)
        assert 0 <= found.column <= len(lines[found.line])
        assert found.end > found.column or not lines[found.line]
    for column in range(len(lines[0]) + 1):
        document.hover(0, column)
        document.names.completions(0, column)


def test_hover_tells_labels_rules_limits_and_how_many_plans() -> None:
    text = '%order forward\n%limit 2 a\nS "all" -> a A\nA -> b | c | b c\na "Ay" "first" minutes=5\n'
    document = Document(text, "g.cfg")
    assert document.hover(3, 0) == (
        "**A** (nonterminal)\n\n```\nA -> b\nA -> c\nA -> b c\n```\n\nwhat it can be, limits aside: 3"
    )
    assert "**S** (start symbol)\n\nall" in document.hover(2, 0)
    assert document.hover(2, 0).endswith("plans: 3")
    assert document.hover(4, 0) == "**a** (terminal)\n\nAy\n\nfirst\n\nminutes = 5\n\n`%limit 2 a`"
    assert document.hover(0, 9) is None
    again = Document(text.replace("A -> b", "A -> -> b"), "g.cfg", document)
    assert again.findings
    assert "minutes = 5" in again.hover(4, 0)  # what it meant when it could be read


def test_infinitely_many() -> None:
    assert "infinitely many; 5 of at most 4 terminals" in Document("%order forward\nS -> a*", "g.cfg").hover(1, 0)


@pytest.mark.parametrize(
    ("file", "text", "place", "said"),
    [
        ("a.pda", '%accept q\nq, a, ε -> q, ε\na "the a"\n', (2, 0), "terminal\n\nthe a"),
        ("a.pda", "%accept q\nq, a, ε -> q, ε\n", (1, 0), "state, final"),
        ("a.agent", '(define x (:states (Ask (:text "[Q]")))\n (:behavior Ask))', (1, 13), "state\n\n[Q]"),
        ("a.mmd", "flowchart TD\n b[Wash] --> c[Dry]", (1, 1), "step\n\nWash"),
    ],
)
def test_other_notations(file, text, place, said) -> None:
    document = Document(text, file)
    assert document.findings == ()
    assert said in document.hover(*place)


def test_rules_for_tool_calls_are_read_as_such(tmp_path: Path) -> None:
    (tmp_path / "base.guard").write_text("mail: send_mail | post\n")
    text = '%import "base.guard"\npay: pay_invoice\nrule few: at most 3 mail\nrule first: male before pay\n'
    document = Document(text, tmp_path / "shop.guard")
    assert [(one.line, one.column, one.severity) for one in document.findings] == [(3, 12, "error")]
    assert "did you mean mail?" in document.findings[0].message
    assert not Document(text.replace("male", "mail"), tmp_path / "shop.guard").findings
    assert document.names.definition("mail") == NamePlace(tmp_path / "base.guard", 0, 0)
    assert document.hover(2, 19) is None
    assert {"pay", "mail", "before", "budget"} <= set(document.names.completions(3, 12))


def test_procedures_and_those_that_are_drawn(tmp_path: Path) -> None:
    text = "check look(x)\ngoal action act(x)\n    lok(x) == 1\n"
    document = Document(text, tmp_path / "my.procedure")
    (finding,) = document.findings
    assert (finding.line, finding.column) == (2, 4)
    assert "did you mean look?" in finding.message
    assert document.names.definition("act") == NamePlace(tmp_path / "my.procedure", 1, 12)
    assert not Document(text.replace("lok", "look"), tmp_path / "my.procedure").findings
    drawn = 'flowchart TD\n%% check look(x)\n%% goal action act(x)\nA{"lok(x)"} -->|yes| B[act]\n'
    (finding,) = Document(drawn, tmp_path / "my.mmd").findings
    assert (finding.line, finding.column) == (3, 3)
    assert not Document(drawn.replace("lok", "look"), tmp_path / "my.mmd").findings
