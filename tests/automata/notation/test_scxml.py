"""State machines in SCXML."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest

from formal_llm import PDA, Planner, ScriptedLLM
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.notation import statecharts
from formal_llm.automata.notation.files import read_rules
from formal_llm.automata.notation.scxml import COVERAGE
from formal_llm.errors import NotationError, ResourceNotFound

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

#: What the recommendation lists (W3C SCXML 1.0, sections 3 to 6): each element with its attributes.
STANDARD = {
    "scxml": "initial name version datamodel binding",
    "state": "id initial",
    "parallel": "id",
    "transition": "event cond target type",
    "initial": "",
    "final": "id",
    "onentry": "",
    "onexit": "",
    "history": "id type",
    "raise": "event",
    "if": "cond",
    "elseif": "cond",
    "else": "",
    "foreach": "array item index",
    "log": "label expr",
    "datamodel": "",
    "data": "id src expr",
    "assign": "location expr",
    "donedata": "",
    "content": "expr",
    "param": "name expr location",
    "script": "src",
    "send": "event eventexpr target targetexpr type typeexpr id idlocation delay delayexpr namelist",
    "cancel": "sendid sendidexpr",
    "invoke": "type typeexpr src srcexpr id idlocation namelist autoforward",
    "finalize": "",
}
#: The folder of the recommendation's schema, where there is one on this machine.
SCHEMA = os.environ.get("FORMAL_LLM_SCXML_SCHEMA")


_CONDITIONS = "".join(f'<if cond="c{n}"><raise event="e{n}"/></if>' for n in range(7))


def read(body: str, **options: object) -> tuple[PDA, list[str]]:
    """The automaton of the states in a machine, and what is warned of."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        pda = PDA.from_scxml(f"<scxml>\n{body}\n</scxml>", **options)  # type: ignore[arg-type]
    return pda, [str(one.message) for one in caught]


def spelled(pda: PDA, length: int) -> set[str]:
    return {" ".join(word) for word in words(pda, length)}


def is_known(element: str, attributes: list[str]) -> list[str]:
    """What no table knows of an element and its attributes."""
    treatment = COVERAGE.get_treatment(element)
    names = [element, *(f"{element}@{one}" for one in attributes if treatment == "meant")]
    return [name for name in names if COVERAGE.get_treatment(name) == "unknown"]


def test_an_order(tmp_path: Path) -> None:
    (tmp_path / "order.scxml").write_text(ORDER)
    pda = read_rules(tmp_path / "order.scxml")
    assert isinstance(pda, PDA)
    assert spelled(pda, 3) == {
        "pay ok", "pay cancel", "add pay ok", "add pay cancel", "pay fail ok", "pay fail cancel", "pay user.ok ok",
        "pay user.ok cancel",
    }  # fmt: skip
    plan = Planner(pda, llm := ScriptedLLM([2, 3])).plan("x")
    assert [option.text for option in llm.questions[0].options] == ["add", "pay (known)", "pay"]
    assert plan.word == ("pay", "cancel")
    assert PDA.from_string(str(pda)) == pda


@pytest.mark.parametrize("element", STANDARD)
def test_each_part_of_the_recommendation_is_in_a_table(element: str) -> None:
    assert is_known(element, STANDARD[element].split()) == []


@pytest.mark.skipif(SCHEMA is None, reason="FORMAL_LLM_SCXML_SCHEMA names no folder with the recommendation's schema")
def test_each_part_of_the_schema_is_in_a_table() -> None:
    space = "{http://www.w3.org/2001/XMLSchema}"
    found = set()
    trees = [ElementTree.parse(path).getroot() for path in Path(str(SCHEMA)).rglob("*.xsd")]
    named = {(one.tag, one.get("name")): one for tree in trees for one in tree if one.get("name")}

    def attributes(node: ElementTree.Element, seen: frozenset[str] = frozenset()) -> set[str]:
        names = {str(one.get("name")) for one in node.iter(f"{space}attribute") if one.get("name")}
        for one in node.iter():
            ref = str(one.get("ref") or one.get("base") or one.get("type") or "").rpartition(":")[2]
            for kind in (f"{space}attributeGroup", f"{space}complexType"):
                if (kind, ref) in named and ref not in seen:
                    names |= attributes(named[kind, ref], seen | {ref})
        return names

    for tree in trees:
        for element in tree.iter(f"{space}element"):
            if name := element.get("name"):
                found.add(name)
                assert is_known(name, sorted(attributes(element))) == []
    assert found >= STANDARD.keys()


@pytest.mark.parametrize(
    ("body", "problem", "line"),
    [
        ('<state id="a"><history id="h"/></state>', "<history> h is not covered: which states were active", 2),
        ('<state id="a"><transition event="e" target="bb"/></state><state id="b"/>', "unknown target.*bb", 2),
        ('<state id="a"/><state id="a"/>', "a second state with the id a", 2),
        ('<state id="a" initial="b"><state id="c"/></state>', "unknown first state: b", 2),
        ('<state id="a" initial="b"><state id="c"/></state><state id="b"/>', "a begins with b, which is not inside", 2),
        ('<state id="a"><transition target="a"/></state>', "the machine never waits", 1),
        ('<state id="a"><transition event="e" target="b c"/></state><state id="b"/><state id="c"/>',
         "b and c cannot be active together", 2),
        ('<state id="a"><onentry><raise event="e"/><raise event="e"/></onentry><transition event="e" target="a"/>'
         "</state>", "raises events without end", 2),
        ("", "the machine has no states", 1),
        (f'<state id="a"><onentry>{_CONDITIONS}</onentry></state>', "can go in more than 64 ways", 2),
    ],
)  # fmt: skip
def test_what_is_refused(body: str, problem: str, line: int) -> None:
    with pytest.raises(NotationError, match=problem) as caught, warnings.catch_warnings(action="ignore"):
        PDA.from_scxml(f"<scxml>\n{body}\n</scxml>")
    assert caught.value.line in (line, 1)


def test_other_xml_and_parts_that_there_are_not() -> None:
    with pytest.raises(NotationError, match="it begins with <html>"):
        PDA.from_scxml("<html/>")
    _, (warning,) = read('<state id="a"><transition event="e" ontransit="x" target="f"/></state><final id="f"/>')
    assert "2:15" in warning
    assert "the attribute ontransit of <transition> is left out: SCXML 1.0 has no such part" in warning


def test_who_decides_in_a_state() -> None:
    body = (
        '<state id="a"><transition event="look" target="h"/></state><state id="h" my:world="{}">'
        '<transition event="fine" target="end"/><transition event="sick" target="a"/></state><final id="end"/>'
    )
    assert read(body.format("true"))[0].world == {"h"}
    assert read(body.format("false"))[0].world == frozenset()
    with pytest.raises(NotationError, match="world is true or false, not 'yes'"):
        read(body.format("yes"))


def test_any_event_is_any_that_the_machine_names() -> None:
    pda, _ = read(
        '<state id="a"><transition event="x y" target="a"/><transition event="*" target="f"/></state>'
        '<state id="b"><transition event="z" target="f"/></state><final id="f"/>'
    )
    assert spelled(pda, 2) == {"z", "x z", "y z"}
    pda, _ = read('<state id="a"><transition event="*" target="f"/></state><final id="f"/>')
    assert spelled(pda, 2) == {"any"}


def test_a_name_is_for_all_events_that_it_begins() -> None:
    pda, _ = read(
        '<state id="a"><transition event="go" target="b"/></state><state id="b"><transition event="error.*" '
        'target="f"/><transition event="error.late" target="a"/></state><state id="c"><transition event="errors"/>'
        '</state><final id="f"/>'
    )
    assert spelled(pda, 2) == {"go error", "go error.late"}


PARALLEL = """<parallel id="p">
  <state id="a"><state id="a1"><transition event="e" target="a2"/></state><final id="a2"/></state>
  <state id="b"><state id="b1"><transition event="f" target="b2"/></state>
    <state id="b2"><transition event="g" cond="In('a2')" target="b3"/></state><final id="b3"/></state>
  <transition event="done.state.p" target="end"/>
</parallel><final id="end"/>"""


def test_regions_go_on_in_any_order_and_a_predicate_is_decided() -> None:
    pda, warned = read(PARALLEL)
    assert warned == []
    assert spelled(pda, 5) == {"e f g", "f e g"}
    assert "a2+b1" in pda.states


def test_an_event_is_taken_by_every_region_and_the_inner_state_preempts() -> None:
    both = PARALLEL.replace('event="f"', 'event="e"').replace(" cond=\"In('a2')\"", "")
    assert spelled(read(both)[0], 3) == {"e g"}
    outer = both.replace('<transition event="done', '<transition event="e" target="end"/><transition event="done')
    assert spelled(read(outer)[0], 2) == {"e g", "e e"}


def test_events_of_the_machine_itself_are_no_steps() -> None:
    pda, (warning,) = read(
        '<state id="a"><transition event="e" target="b"><send event="late"/><raise event="now"/></transition></state>'
        '<state id="b"><transition event="late" target="bad"/><transition event="now" target="c"/></state>'
        '<state id="c"><transition event="late" target="f"/></state><state id="bad"/><final id="f"/>'
    )
    assert "the machine itself raises late, now: plans have no such steps" in warning
    assert spelled(pda, 3) == {"e"}


def test_what_is_raised_under_a_condition_is_a_choice() -> None:
    pda, _ = read(
        '<state id="a"><onentry><if cond="x"><raise event="b"/><elseif cond="y"/><raise event="c"/></if></onentry>'
        '<transition event="b" target="b"/><transition event="c" target="f"/><transition event="d" target="f"/>'
        '</state><state id="b"><transition event="e" target="f"/></state><final id="f"/>'
    )
    assert spelled(pda, 2) == {"e", "", "d"}


def test_what_is_sent_later_or_by_name_of_data() -> None:
    body = '<state id="a"><onentry>{}</onentry><transition event="e" target="f"/></state><final id="f"/>'
    pda, (warning,) = read(body.format('<send event="e" delay="3s"/>'))
    assert "e is sent with a delay: plans have no clock, so it may come at any time" in warning
    assert spelled(pda, 2) == {"e"}
    _, (warning,) = read(body.format('<send eventexpr="x + y"/>'))
    assert "its eventexpr is data" in warning
    assert spelled(read(body.format("<send eventexpr=\"'e'\"/>"))[0], 2) == {""}
    assert read(body.format('<send event="e" target="#other"/>'))[1] == []
    _, (warning,) = read(body.format('<foreach array="x" item="y"><raise event="z"/></foreach>'))
    assert "what is raised in <foreach> is left out" in warning


def test_where_no_final_state_is_reached_a_plan_may_end_anywhere() -> None:
    body = "".join(f'<state id="{one}"><transition event="e" target="{other}"/></state>' for one, other in ("ab", "ba"))
    pda, (warning,) = read(body)
    assert "a plan may end wherever the machine waits; --final STATE" in warning
    assert spelled(pda, 2) == {"", "e", "e e"}
    pda, warned = read(body, final=["b"])
    assert warned == []
    assert spelled(pda, 3) == {"e", "e e e"}
    with pytest.raises(ResourceNotFound, match=r"no state 'bb'\. Did you mean 'b'"):
        read(body, final=["bb"])
    with pytest.raises(NotationError, match="c is not reached: a plan would never be finished"):
        read(body + '<state id="c"/>', final=["c"])


def test_a_machine_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statecharts, "MOST_CONFIGURATIONS", 100)
    regions = "".join(
        f'<state id="r{n}"><state id="a{n}"><transition event="e{n}" target="b{n}"/></state>'
        f'<state id="b{n}"><transition event="f{n}" target="a{n}"/></state></state>'
        for n in range(7)
    )
    with pytest.raises(NotationError, match="more than 100 configurations"):
        read(f'<parallel id="p">{regions}</parallel>')
