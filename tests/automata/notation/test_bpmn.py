"""Processes in BPMN."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from warnings import catch_warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Flowchart
from formal_llm.automata.languages.words import words
from formal_llm.automata.notation.files import read_rules
from formal_llm.errors import GrammarWarning, NotationError
from tests.automata.processes import LONGEST, Again, Both, Do, Drawing, Either, Process, Then, drawn, processes
from tests.automata.token_game import TokenGame
from tests.strategies import examples


def bpmn(body: str, flows: str) -> str:
    """A process with these elements, and flows as ``a b; b c yes``."""
    arrows = ""
    for number, flow in enumerate(filter(None, flows.split(";"))):
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


# -- against the tokens of the standard -----------------------------------------------------------------------------


class Modeller:
    """Draws a process of random blocks, as XML."""

    def __init__(self, draw: st.DrawFn, *, wild: bool) -> None:
        self.draw = draw
        self.wild = wild
        self.numbers = itertools.count()

    def pick(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def new(self, letter: str) -> str:
        return f"{letter}{next(self.numbers)}"

    def flow(self, source: str, target: str) -> str:
        return f'<sequenceFlow id="{self.new("f")}" sourceRef="{source}" targetRef="{target}"/>'

    def scope(self, depth: int) -> str:
        """What is in a process or subprocess."""
        start = self.new("s")
        entry, leave, body = self.block(depth)
        body += f'<startEvent id="{start}"/>' + self.flow(start, entry)
        return body + self.end(leave) if self.draw(st.booleans()) else body  # or an implicit end

    def end(self, source: str, kind: str = "") -> str:
        end = self.new("e")
        inside = f"<{kind}EventDefinition/>" if kind else ""
        return f'<endEvent id="{end}">{inside}</endEvent>' + self.flow(source, end)

    def block(self, depth: int) -> tuple[str, str, str]:
        """Where a block is entered, from where it is left, and its elements."""
        kinds = ["task"] * 2 + (["seq", "xor", "and", "loop", "sub", "early"] if depth else [])
        match self.pick(*kinds):
            case "seq":
                first, left, body = self.block(depth - 1)
                second, last, more = self.block(depth - 1)
                return first, last, body + more + self.flow(left, second)
            case "xor" | "and" as kind:
                name = "exclusiveGateway" if kind == "xor" else "parallelGateway"
                split, join = self.new("g"), self.new("g")
                body = f'<{name} id="{split}"/><{name} id="{join}"/>'
                for _ in range(2):
                    entry, left, more = self.block(depth - 1)
                    body += more + self.flow(split, entry) + self.flow(left, join)
                return split, join, body
            case "loop":
                merge, split = self.new("g"), self.new("g")
                entry, left, body = self.block(depth - 1)
                body += f'<exclusiveGateway id="{merge}"/><exclusiveGateway id="{split}"/>'
                return merge, split, body + self.flow(merge, entry) + self.flow(left, split) + self.flow(split, merge)
            case "early":  # one way ends at once, or stops what runs
                split = self.new("g")
                entry, left, body = self.block(depth - 1)
                body += f'<exclusiveGateway id="{split}"/>' + self.flow(split, entry)
                return split, left, body + self.end(split, self.pick("", "terminate", "error"))
            case "sub":
                name = self.new("p")
                loop = self.pick("", "", "<standardLoopCharacteristics/>")
                inside = f'<subProcess id="{name}">{loop}{self.scope(depth - 1)}</subProcess>'
                return name, *self.bordered(name, inside, depth)
        name = self.new("a")
        loop = self.pick("", "", "", "<standardLoopCharacteristics/>", '<standardLoopCharacteristics testBefore="true"/>')
        return name, *self.bordered(name, f'<task id="{name}">{loop}</task>', depth)

    def bordered(self, name: str, body: str, depth: int) -> tuple[str, str]:
        """An element, perhaps with an event at its border: from where the block is left, and all that is in it."""
        kind = self.pick("", "", "message", "error", "beside") if depth else ""
        if not kind:
            return name, body
        event = self.new("x")
        definition = "errorEventDefinition" if kind == "error" else "messageEventDefinition"
        interrupting = "false" if kind == "beside" else "true"
        body += (f'<boundaryEvent id="{event}" attachedToRef="{name}" cancelActivity="{interrupting}">'
                 f"<{definition}/></boundaryEvent>")  # fmt: skip
        entry, left, more = self.block(depth - 1)
        body += more + self.flow(event, entry)
        if self.draw(st.booleans()) or (kind == "beside" and not self.wild):
            return name, body + self.end(left)
        merge = self.new("g")
        return merge, body + f'<exclusiveGateway id="{merge}"/>' + self.flow(name, merge) + self.flow(left, merge)

    def spoil(self, text: str) -> str:
        """Change the kind of a gateway, or the target of a flow."""
        if not self.wild:
            return text
        gates = re.findall(r'<\w+Gateway id="\w+"', text)
        if gates and self.draw(st.booleans()):
            gate = self.pick(*gates)
            other = gate.replace("parallel", "X").replace("exclusive", "parallel").replace("X", "exclusive")
            return text.replace(gate, other)
        flow = self.pick(*re.findall(r'sourceRef="\w+" targetRef="\w+"', text))
        target = self.pick(*re.findall(r'targetRef="(\w+)"', text))
        return text.replace(flow, re.sub(r'targetRef="\w+"', f'targetRef="{target}"', flow))


@st.composite
def models(draw: st.DrawFn, *, wild: bool) -> str:
    modeller = Modeller(draw, wild=wild)
    return bpmn(modeller.spoil(modeller.scope(3)), "")


@given(models(wild=False) | models(wild=True))
@examples(300)
def test_what_is_accepted_has_the_plans_that_tokens_play(text: str) -> None:
    with catch_warnings(record=True, action="always") as caught:
        try:
            chart = Flowchart.from_bpmn(text)
        except NotationError:
            return
    read, played = set(words(chart.pda(decisions=False), 4)), TokenGame(text).words(4)
    assert read <= played
    assert read == played or any("only where nothing runs side by side" in str(one.message) for one in caught)
