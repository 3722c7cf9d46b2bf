"""Examples are transcripts that their agent could have written; the first slip is shown where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import Behaviour, authored
from formal_llm.agents.examples import examples_beside, load_examples, read_examples
from formal_llm.errors import NotationError, ResourceNotFound

REACT = Behaviour.load("react")
GOOD = """# two of them
--- one
[Question] 2 + 2?
[Thought] I add.
It is easy.
[Action] Calculator
[Action Input] 2 + 2
[Observation] 4, not [\\Answer] 5
[Final Thought] Four.
[Answer] 4

--- another
[Question] 1? [Final Thought] One. [Answer] 1
"""


def problem(text: str) -> str:
    with pytest.raises(NotationError) as caught:
        read_examples(text, REACT, "my.examples")
    return str(caught.value)


def test_read() -> None:
    one, other = read_examples(GOOD, REACT)
    assert one.word == ("Ques", "Tht", "Act", "Act-Inp", "Obs", "Final-Tht", "Ans")
    assert [segment.source for segment in one.segments][:5] == ["user", "model", "model", "model", "environment"]
    assert (one.segments[1].text, one.text_of("Obs")) == ("I add.\nIt is easy.", "4, not [Answer] 5")
    assert (other.word, other.answer) == (("Ques", "Final-Tht", "Ans"), "1")


def test_the_first_violation_has_its_place_and_what_was_allowed() -> None:
    assert problem("---\n[Question] q\n[Thought] t\n[Observation] o\n[Answer] a\n") == (
        "my.examples:4:1: [Observation] cannot stand here\n  4 | [Observation] o\n    | ^\n  expected: [Action]"
    )


def test_an_example_that_ends_too_early() -> None:
    assert problem(GOOD + "---\n[Question] q\n[Thought] t  \n\n").startswith(
        "my.examples:16:12: the example ends too early\n  16 | [Thought] t  \n     |            ^\n  expected: [Action]"
    )
    assert "my.examples:1:4: the example is empty" in problem("---\n\n---\n[Question]")


def test_slips() -> None:
    near = problem("---\n[Question] q\n[Thougt] t\n")
    assert near.startswith("my.examples:3:1: [Thougt] is no marker of react")
    assert "did you mean [Thought]? As text, write [\\Thougt]" in near
    assert "my.examples:2:1: [Questions] is no marker" in problem("---\n[Questions] q\n[Thought] t\n")
    assert "my.examples:2:1: there is text before the first marker" in problem("---\nhello\n[Question] q\n")
    assert "my.examples:2:1: there is text before the first marker" in problem("---\nhello\n")
    assert "my.examples:2:1: this belongs to no example" in problem("# one\n[Question] q\n")
    assert "there is no example" in problem("# nothing\n")
    assert read_examples("---\n[Question] [1] q\n[2] [Final Thought] t\n[Answer] a", REACT)[0].segments[0].text == (
        "[1] q\n[2]"
    )


def test_a_limit_is_named() -> None:
    text = '(define once (:states (a (:text "[A]")) (b (:text "[B]"))) (:limits "%limit 1 a") (:behavior (until a b)))'
    with pytest.raises(NotationError, match=r"\[A\] cannot stand here because of %limit 1 a"):
        read_examples("---\n[A] 1\n[A] 2\n[B]", Behaviour.from_string(text))


@pytest.mark.parametrize("name", authored.names("agents"))
def test_each_shipped_agent_has_examples_that_it_allows(name: str) -> None:
    found = load_examples(name)
    base = {"react-5": "react", "pass-5": "pass", "reflexion-2-3": "reflexion"}.get(name)
    if base is not None:
        # The bounded forms have the markers of the others, so those examples are theirs, too.
        path = examples_beside(authored.find("agents", base, (".agent",)))
        assert path is not None
        found = read_examples(path.read_text(encoding="utf-8"), Behaviour.load(name))
    assert len(found) >= 2
    behaviour = Behaviour.load(name)
    for transcript in found:
        assert transcript.verify(behaviour).valid
        assert all(segment.text for segment in transcript.segments)
        assert read_examples("---\n" + transcript.to_text(behaviour), behaviour) == (transcript,)


def test_beside_an_agent_of_ones_own(tmp_path: Path) -> None:
    agent = tmp_path / "mine.agent"
    agent.write_text(str(Behaviour.load("direct")), encoding="utf-8")
    assert load_examples(str(agent)) == ()
    (tmp_path / "mine.examples").write_text("---\n[Question] q\n[Answer] a\n", encoding="utf-8")
    assert [one.answer for one in load_examples(str(agent))] == ["a"]
    with pytest.raises(ResourceNotFound):
        load_examples("reakt")
