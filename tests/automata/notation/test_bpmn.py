"""Processes in BPMN."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from formal_llm import Flowchart
from formal_llm.automata.languages.words import words
from formal_llm.automata.notation.files import read_rules
from formal_llm.errors import GrammarWarning, NotationError
from tests.automata.processes import LONGEST, Again, Both, Do, Drawing, Either, Process, Then, drawn, processes
from tests.strategies import examples


def bpmn(body: str, flows: str) -> str:
    """A process with these elements, and flows as ``a b; b c yes``."""
    arrows = ""
    for number, flow in enumerate(flows.split(";")):
        one, other, *text = flow.split()
        name = f' name="{" ".join(text)}"' if text else ""
        arrows += f'<sequenceFlow id="f{number}" sourceRef="{one}" targetRef="{other}"{name}/>\n'
    space = 'xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"'
    return f'<definitions {space}>\n<process id="p" name="Work">\n{body}\n{arrows}</process>\n</definitions>'


def tasks(*names: str) -> str:
    return "".join(f'<task id="{name}"/>' for name in names)


def plans(text: str, length: int = 6) -> set[str]:
    return {" ".join(word) for word in words(Flowchart.from_bpmn(text).pda(decisions=False), length)}


ENDS = '<startEvent id="s"/><endEvent id="e"/>'


@pytest.mark.parametrize(
    ("body", "flows", "told"),
    [
        (ENDS + tasks("a", "b"), "s a;a b;b e", {"a b"}),
        (ENDS + tasks("a", "b", "c"), "s a;a b;a c;b e;c e", {"a b c", "a c b"}),  # a task follows all of its flows
        (ENDS + tasks("a", "b") + '<exclusiveGateway id="g" name="Well?"/>', "s a;a g;g a no;g b yes;b e",
         {"a b", "a a b", "a a a b", "a a a a b", "a a a a a b"}),
        (ENDS + tasks("a", "b", "c") + '<parallelGateway id="g"/><parallelGateway id="j"/>',
         "s g;g a;g b;a j;b j;j c;c e", {"a b c", "b a c"}),
        (ENDS + tasks("a") + '<subProcess id="sub" name="Inner"><startEvent id="s2"/><task id="b"/><task id="c"/>'
         '<endEvent id="e2"/><sequenceFlow id="i1" sourceRef="s2" targetRef="b"/>'
         '<sequenceFlow id="i2" sourceRef="b" targetRef="c"/><sequenceFlow id="i3" sourceRef="c" targetRef="e2"/>'
         "</subProcess>", "s a;a sub;sub e", {"a b c"}),
        (ENDS + tasks("a", "b") + '<boundaryEvent id="x" name="it broke" attachedToRef="a"><errorEventDefinition/>'
         "</boundaryEvent>", "s a;a e;x b;b e", {"a", "a b"}),
        (ENDS + tasks("a") + '<endEvent id="n" name="Refused"/><exclusiveGateway id="g"/>', "s a;a g;g e yes;g n no",
         {"a", "a n"}),
        (ENDS + tasks("a", "b") + '<dataObject id="d"/><textAnnotation id="t"/><exclusiveGateway id="m"/>',
         "s a;a m;m b;b e", {"a b"}),
    ],
)  # fmt: skip
def test_small_processes(body: str, flows: str, told: set[str]) -> None:
    assert plans(bpmn(body, flows)) == told


def test_conditions_are_answers_that_facts_decide() -> None:
    text = bpmn(ENDS + tasks("a", "b") + '<exclusiveGateway id="g" name="How much?" default="f2"/>',
                "s g;g a;g b;a e;b e").replace(
        'id="f1" sourceRef="g" targetRef="a"/>',
        'id="f1" sourceRef="g" targetRef="a"><conditionExpression>${sum &gt; 9}</conditionExpression></sequenceFlow>',
    )  # fmt: skip
    chart = Flowchart.from_bpmn(text)
    assert (chart.title, chart.facts, list(chart.answers("g"))) == ("Work", ("sum",), ["g=sum_9", "g=else"])
    assert list(words(chart.fill({"sum": 10}).pda(decisions=False), 3)) == [("a",)]
    assert list(words(chart.fill({"sum": 9}).pda(decisions=False), 3)) == [("b",)]


def test_timers_are_left_out_with_what_only_they_lead_to(tmp_path: Path) -> None:
    late = '<boundaryEvent id="x" attachedToRef="a"><timerEventDefinition/></boundaryEvent>'
    wait = '<intermediateCatchEvent id="w" name="A day"><timerEventDefinition/></intermediateCatchEvent>'
    (tmp_path / "work.bpmn").write_text(bpmn(ENDS + tasks("a", "b", "c") + late + wait, "s a;a w;w e;x b;b c;c e"))
    with pytest.warns(GrammarWarning, match=r"the timer (x|A day) is left out") as told:
        chart = read_rules(tmp_path / "work.bpmn")
    assert len(told) == 2
    assert isinstance(chart, Flowchart)
    assert chart.terminals == ("a",)


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("<definitions/>", "no process", 1),
        (bpmn('<inclusiveGateway id="g"/>' + tasks("a"), "g a"), "inclusive gateway.*not covered", 3),
        (bpmn(tasks("a", "b"), "a c"), "unknown end of a flow: c", 4),
        (bpmn(tasks("a", "a"), "a a"), "a second element with the id a", 3),
        (bpmn(tasks("a", "b"), "a b;b a"), "no end can be reached from a", 3),
        (bpmn("<task/>", "a a"), "has no id", 3),
    ],
)
def test_what_is_refused(text: str, said: str, line: int) -> None:
    with pytest.raises(NotationError, match=said) as caught:
        Flowchart.from_bpmn(text)
    assert caught.value.line == line


class InBPMN(Drawing):
    """The same processes, drawn in BPMN."""

    def draw_bpmn(self, what: Process) -> str:
        entered, left, _ = self.draw(what)
        kinds = {"[Do it]": "task", "{Which?}": "exclusiveGateway", "{Again?}": "exclusiveGateway"}
        body, flows = "", [f"begin {entered}", f"{left} finish"]
        for line in self.lines[1:]:
            one, arrow, other = line.partition(" -->")
            if arrow:
                text, _, target = other.rpartition(" ")
                flows.append(f"{one} {target} {text.strip(' |')}")
                continue
            name, shape = one[: len(one) - len(one.lstrip("sx0123456789"))], one.lstrip("sx0123456789")
            body += f'<{kinds.get(shape, "parallelGateway" if "shape" in shape else "exclusiveGateway")} id="{name}"/>'
        return bpmn('<startEvent id="begin"/><endEvent id="finish"/>' + body, ";".join(flows))


def with_bars(what: Process) -> Process:
    """The same process with gateways where branches run side by side."""
    match what:
        case Both(parts, _):
            return Both(tuple(map(with_bars, parts)), bar=True)
        case Then(parts):
            return Then(tuple(map(with_bars, parts)))
        case Either(parts, asked):
            return Either(tuple(map(with_bars, parts)), asked)
        case Again(part):
            return Again(with_bars(part))
    return Do()


@given(processes().map(with_bars))
@examples(40)
def test_a_process_has_the_plans_that_it_was_drawn_for(process: Process) -> None:
    _, told = drawn(process)
    chart = Flowchart.from_bpmn(InBPMN().draw_bpmn(process))
    assert set(words(chart.pda(decisions=False), LONGEST)) == {word for word in told if len(word) <= LONGEST}
