"""State machines in SCXML."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import PDA, Planner, ScriptedLLM
from formal_llm.automata.languages.words import words
from formal_llm.automata.notation.files import read_rules
from formal_llm.errors import GrammarWarning, NotationError

ORDER = """<scxml xmlns="http://www.w3.org/2005/07/scxml" initial="cart" name="order">
  <state id="cart">
    <transition event="add"/>
    <transition event="pay" cond="known" target="paying"/>
    <transition event="pay" target="login"/>
  </state>
  <state id="login"><transition event="user.ok" target="paying"/></state>
  <state id="paying">
    <initial><transition target="card"/></initial>
    <state id="card"><transition event="ok" target="paid"/><transition event="fail" target="card"/></state>
    <final id="paid"/>
    <transition event="done.state.paying" target="sent"/>
    <transition event="cancel" target="gone"/>
  </state>
  <final id="sent"/>
  <final id="gone"/>
</scxml>"""


def test_an_order(tmp_path: Path) -> None:
    (tmp_path / "order.scxml").write_text(ORDER)
    pda = read_rules(tmp_path / "order.scxml")
    assert isinstance(pda, PDA)
    assert {" ".join(word) for word in words(pda, 3)} == {
        "pay ok", "pay cancel", "add pay ok", "add pay cancel", "pay fail ok", "pay fail cancel", "pay user.ok ok",
        "pay user.ok cancel",
    }  # fmt: skip
    plan = Planner(pda, llm := ScriptedLLM([2, 3])).plan("x")
    assert [option.text for option in llm.questions[0].options] == ["add", "pay (known)", "pay"]
    assert plan.word == ("pay", "cancel")
    assert PDA.from_string(str(pda)) == pda


@pytest.mark.parametrize(
    ("body", "said", "line"),
    [
        ('<parallel id="p"/>', "parallel states are not covered", 2),
        ('<state id="a"><history id="h"/></state>', "history is not covered", 2),
        ('<state id="a"><transition event="e" target="bb"/></state><state id="b"/>', "unknown target.*bb", 2),
        ('<state id="a"/><state id="a"/>', "a second state with the id a", 2),
        ('<state id="a" initial="b c"/>', "several first states", 2),
        ('<state id="a" initial="b"><state id="c"/></state>', "unknown first state: b", 2),
        ('<state id="a"><transition event="e" target="a"/></state>', "no final state is reached", 1),
    ],
)
def test_what_is_refused(body: str, said: str, line: int) -> None:
    with pytest.raises(NotationError, match=said) as caught:
        PDA.from_scxml(f"<scxml>\n{body}\n</scxml>")
    assert caught.value.line == line


def test_other_xml_and_events_that_are_sent_later() -> None:
    with pytest.raises(NotationError, match="it begins with <html>"):
        PDA.from_scxml("<html/>")
    with pytest.warns(GrammarWarning, match="sent later is left out"):
        PDA.from_scxml(
            '<scxml><state id="a"><onentry><send event="e" delay="3s"/></onentry><transition event="e" target="f"/>'
            '</state><final id="f"/></scxml>'
        )
    any_event = '<scxml><state id="a"><transition event="x y" target="a"/><transition event="*" target="f"/></state>'
    pda = PDA.from_scxml(any_event + '<state id="b"><transition event="z" target="f"/></state><final id="f"/></scxml>')
    assert set(words(pda, 2)) == {("z",), ("x", "z"), ("y", "z")}
