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
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.notation.files import read_rules
from formal_llm.errors import NotationError
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


def sub(name: str, *steps: str, inside: str = "", kind: str = "subProcess", attributes: str = "") -> str:
    """A subprocess whose tasks follow each other, with more elements in it."""
    keys = [f"{name}s", *steps]
    flows = "".join(
        f'<sequenceFlow id="{one}-{other}" sourceRef="{one}" targetRef="{other}"/>'
        for one, other in itertools.pairwise(keys)
    )
    start = f'<startEvent id="{name}s" name="Begin here"/>'
    return f'<{kind} id="{name}"{attributes}>{start}{tasks(*steps)}{flows}{inside}</{kind}>'


def border(host: str, event: str, definition: str = "message", attributes: str = "") -> str:
    return (f'<boundaryEvent id="{event}" attachedToRef="{host}"{attributes}>'
            f"<{definition}EventDefinition/></boundaryEvent>")  # fmt: skip


BESIDE = ' cancelActivity="false"'
ONCE = "may happen once at most here; the standard lets it happen again"
UNDO = '<serviceTask id="undo" name="Cancel booking" isForCompensation="true"/>'
LINKS = (
    '<intermediateThrowEvent id="t" name="T"><linkEventDefinition name="L"/></intermediateThrowEvent>'
    '<intermediateCatchEvent id="c" name="C"><linkEventDefinition name="L"/></intermediateCatchEvent>'
)


@pytest.mark.parametrize(
    ("body", "flows", "read", "warnings"),
    [
        # Compensation undoes what is done; it is no part of a plan.
        (sub("p", "book", inside=UNDO + border("book", "x", "compensate")) + tasks("charge"), "s p;p charge;charge e",
         {"book charge"}, ["<serviceTask> Cancel booking is left out: compensation", "<boundaryEvent> x is left out"]),
        (tasks("a", "b") + '<intermediateThrowEvent id="t" name="Undo"><compensateEventDefinition/>'
         "</intermediateThrowEvent>", "s a;a t;t b;b e", {"a b"}, ["Undo is passed over: compensation is left out"]),
        # Events at the border of a task or subprocess.
        (tasks("a", "b", "h") + border("a", "x", attributes=BESIDE), "s a;a b;b e;x h",
         {"a b", "a b h", "a h b"}, [f"x {ONCE}"]),
        (tasks("a", "b", "h", "i") + border("a", "x", attributes=BESIDE) + border("a", "y"),
         "s a;a b;b e;x h;h e;y i;i e", {"a b", "a b h", "a h b", "a i", "a i h", "a h i"}, [f"x {ONCE}"]),
        (sub("p", "a", "b") + tasks("h") + border("p", "x", attributes=BESIDE), "s p;p e;x h",
         {"a b", "h a b", "a h b", "a b h"}, [f"x {ONCE}"]),
        (sub("p", "a", "b") + tasks("c", "h") + border("p", "x"), "s p;p c;c e;x h;h e",
         {"a b c", "h", "a h", "a b h"}, []),
        (sub("p", "a", inside='<endEvent id="o" name="Out"><errorEventDefinition/></endEvent>'
             '<sequenceFlow id="o1" sourceRef="a" targetRef="o"/>') + tasks("c", "h") + border("p", "x", "error"),
         "s p;p c;c e;x h;h e", {"a o h"}, ["no flow leads from the start to c: left out"]),
        (sub("p", "a", inside='<endEvent id="o"><errorEventDefinition/></endEvent>'
             '<sequenceFlow id="o1" sourceRef="a" targetRef="o"/>') + tasks("c"), "s p;p c;c e",
         {"a"}, ["o is caught at no border: it ends the process here", "no flow leads from the start to e, c"]),
        (sub("p", "a", kind="transaction", inside='<endEvent id="o"><cancelEventDefinition/></endEvent>'
             '<sequenceFlow id="o1" sourceRef="a" targetRef="o"/>') + tasks("h") + border("p", "x", "cancel"),
         "s p;p e;x h", {"a h"}, ["no flow leads from the start to e"]),
        (sub("p", "a", inside='<endEvent id="o"><escalationEventDefinition/></endEvent>'
             '<sequenceFlow id="o1" sourceRef="a" targetRef="o"/>') + tasks("c", "h")
         + border("p", "x", "escalation", BESIDE), "s p;p c;c e;x h", {"a c h", "a h c"}, []),
        (sub("p", "a", "b") + tasks("h") + border("p", "x", "timer"), "s p;p e;x h", {"a b", "h", "a h", "a b h"},
         ["the timer x is an event that may happen at any time"]),
        (tasks("a") + border("a", "x"), "s a;x e", {"a"}, []),
        (sub("p", "a", inside=sub("w", "b", attributes=' triggeredByEvent="1"')), "s p;p e", {"a"},
         ["<subProcess> w is left out: it begins by an event of its own"]),
        # What is done several times.
        ('<task id="a"><standardLoopCharacteristics/></task>', "s a;a e", {"a", "a a", "a a a"}, []),
        ('<task id="a"><standardLoopCharacteristics testBefore="true" loopMaximum="2"/></task>', "s a;a e",
         {"", "a", "a a", "a a a"}, ["the loopMaximum of a is left out"]),
        (sub("p", "a", "b", inside='<multiInstanceLoopCharacteristics isSequential="true"/>'), "s p;p e", {"", "a b"},
         ["p is done for each of several things: here it is done any number of times"]),
        ('<adHocSubProcess id="p">' + tasks("a", "b") + "</adHocSubProcess>", "s p;p e",
         {" ".join(word) for length in range(4) for word in itertools.product("ab", repeat=length)}, []),
        ('<adHocSubProcess id="p">' + tasks("a", "b")
         + '<sequenceFlow id="x" sourceRef="a" targetRef="b"/></adHocSubProcess>', "s p;p e", {"", "a b"},
         ["what p holds is done one after the other here"]),
        # Where ways begin, jump and end.
        (LINKS + tasks("a", "b"), "s a;a t;c b;b e", {"a b"}, []),
        (tasks("a", "b"), "s a;a e", {"a"}, ["no flow leads from the start to b: left out"]),
        ('<startEvent id="q" name="Other"/>' + tasks("a", "b"), "s a;q b;b e", {"a", "b"}, []),
        (sub("p", inside=tasks("a", "b")).replace('<startEvent id="ps" name="Begin here"/>', ""), "s p;p e",
         {"a b", "b a"}, []),
        (tasks("a", "b") + '<endEvent id="t"><terminateEventDefinition/></endEvent><exclusiveGateway id="g"/>',
         "s a;a g;g t no;g b yes;b e", {"a", "a b"}, []),
        ('<endEvent id="n" name="Sent"/>' + tasks("a", "b") + '<parallelGateway id="g"/>', "s g;g a;g b;a n;b n",
         {"a b n", "b a n"}, ["start to e: left out", "Sent is passed once, when all branches since g have"]),
        # A task with one condition and a default is a decision, and stays a step.
        ('<task id="a" default="f2"/>' + tasks("b", "c"), "s a;a b if;a c else;b e;c e", {"a b", "a c"}, []),
        (tasks("a", "b", "c"), "s a;a b one;a c other;b e;c e", {"a b c", "a c b"}, []),
    ],
)  # fmt: skip
def test_what_the_parts_mean(body: str, flows: str, read: set[str], warnings: list[str]) -> None:
    text = bpmn(ENDS + body, flows)
    text = re.sub('(id="f1"[^>]*name="if")/>', r"\1><conditionExpression>x</conditionExpression></sequenceFlow>", text)
    with catch_warnings(record=True, action="always") as caught:
        assert plans(text, 3) == read
    messages = [str(one.message) for one in caught]
    assert len(messages) == len(warnings)
    assert all(any(part in message for message in messages) for part in warnings)


def test_names_of_inner_starts_are_no_steps(tmp_path: Path) -> None:
    (tmp_path / "work.bpmn").write_text(bpmn(ENDS + sub("p", "a"), "s p;p e"))
    chart = read_rules(tmp_path / "work.bpmn")
    assert isinstance(chart, Flowchart)
    assert chart.terminals == ("a",)


POOLS = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><collaboration id="c">'
    '<participant id="1" name="Shop" processRef="p"/><participant id="2" name="Buyer" processRef="q"/></collaboration>'
    '<process id="p" name="Selling"><task id="sell"/></process><process id="q"><task id="buy"/></process>'
    '<process id="empty"/></definitions>'
)


@pytest.mark.parametrize(("process", "read"), [("p", "sell"), ("Selling", "sell"), ("Shop", "sell"), ("Buyer", "buy")])
def test_a_process_is_chosen(process: str, read: str) -> None:
    assert Flowchart.from_bpmn(POOLS, process=process).terminals == (read,)


@pytest.mark.parametrize(
    ("process", "message"),
    [
        (None, r"several processes in this: Shop, Buyer\n(.|\n)*choose one: --process p"),
        ("Seller", "unknown process: Seller"),
        ("empty", "the process empty is empty: it has no tasks"),
    ],
)
def test_a_process_is_not_guessed(process: str | None, message: str) -> None:
    with pytest.raises(NotationError, match=message):
        Flowchart.from_bpmn(POOLS, process=process)


def test_processes_without_names_are_counted() -> None:
    with pytest.raises(NotationError, match=r"several processes in this: Shop, \(no name\)"):
        Flowchart.from_bpmn(POOLS.replace('<process id="q">', "<process>"))


def both(*, join: str = "parallelGateway") -> str:
    """Two tasks to be done side by side."""
    return f'<parallelGateway id="g"/><{join} id="j"/>' + tasks("a", "b")


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("<definitions/>", "no process", 1),
        ("<definitions><choreography/></definitions>", "no process in this, only <choreography>", 1),
        (bpmn("", ""), "the process Work is empty: it has no tasks", 2),
        (bpmn('<inclusiveGateway id="g"/>' + tasks("a"), "g a"), "inclusiveGateway> g is not covered: it follows", 3),
        (bpmn(tasks("a", "b"), "a c"), "unknown end of a flow: c", 4),
        (bpmn(ENDS + tasks("a"), "s a;a e;e a"), "a flow leads out of no end event", 6),
        (bpmn(ENDS + tasks("a"), "s a;a s"), "and into no start event", 5),
        (bpmn(tasks("a") + sub("p", "b"), "a b"), r"unknown end of a flow: b\n(.|\n)*flows lead over no border", 4),
        (bpmn(tasks("a", "a"), "a a"), "a second element with the id a", 3),
        (bpmn(tasks("a", "b"), "a b;b a"), "nothing begins in Work", 2),
        (bpmn(ENDS + tasks("a", "b"), "s a;a b;b a"), "no end can be reached from s", 3),
        (bpmn("<task/>", "a a"), "has no id", 3),
        (bpmn('<task id="a" startQuantity="2"/>', ""), "startQuantity of a is not covered: several tokens", 3),
        (bpmn(border("z", "x") + tasks("a"), ""), "unknown task with an event at its border: z", 3),
        (bpmn(ENDS + LINKS.replace("name=\"L\"", "name=\"K\"", 1), "s t;c e"), "the link K leads nowhere", 3),
        (bpmn(ENDS + '<eventBasedGateway id="g" eventGatewayType="Parallel"/>', "s g;g e"), "several events at", 3),
        (bpmn(ENDS + tasks("a", "b"), "s a;a b;a b;b e"), "cannot show a: two of its flows lead to one place", 3),
        (bpmn(sub("p", "a", inside='<startEvent id="q"/>'), ""), "p has several start events", 3),
        (bpmn(ENDS + '<task id="a" default="f1"/>' + tasks("b", "c"), "s a;a b;a c"), "flows out of a any", 5),
        (bpmn(sub("p", "a", attributes=' triggeredByEvent="true"').replace('name="Begin here"/>',
              "><errorEventDefinition/></startEvent>")
              + ENDS.replace('"e"/>', '"e"><errorEventDefinition/></endEvent>'), "s e"),
         "throws what an event subprocess catches", 3),
        # Tokens would not do what a chart with these forks shows.
        (bpmn(ENDS + both(join="exclusiveGateway") + tasks("c"), "s g;g a;g b;a j;b j;j c;c e"),
         "cannot show j: the branches since g meet at it without a parallel gateway", 3),
        (bpmn(ENDS + both().replace("parallel", "exclusive", 1), "s g;g a;g b;a j;b j;j e"),
         "cannot show j: it waits for all of its flows, and they do not all come from one fork", 3),
        (bpmn(ENDS + both() + '<endEvent id="t"><terminateEventDefinition/></endEvent>', "s g;g a;g b;a t;b e"),
         "cannot show t: it stops what runs side by side since g", 3),
        (bpmn(ENDS + both() + '<exclusiveGateway id="o"/>', "s g;g a;g b;a o;o j;o e;b j;j e"),
         "the branches a and b run side by side, but arrows lead from one into another", 3),
        (bpmn(ENDS + both() + '<exclusiveGateway id="o"/>', "s o;o g;o a;g a;g b;a j;b j;j e"),
         "cannot show j: it waits for 2 flows, and not each of them comes from one of the 2 branches since g", 3),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str, line: int) -> None:
    with catch_warnings(action="ignore"), pytest.raises(NotationError, match=message) as caught:
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
        loop = self.pick(
            "", "", "", "<standardLoopCharacteristics/>", '<standardLoopCharacteristics testBefore="true"/>'
        )
        return name, *self.bordered(name, f'<task id="{name}">{loop}</task>', depth)

    def bordered(self, name: str, body: str, depth: int) -> tuple[str, str]:
        """An element, perhaps with events at its border: from where the block is left, and all that is in it."""
        left, body = self.with_event(name, name, body, depth)
        return self.with_event(name, left, body, depth) if self.draw(st.booleans()) else (left, body)

    def with_event(self, name: str, last: str, body: str, depth: int) -> tuple[str, str]:
        """The same with one event, of a block that is left at ``last``."""
        kind = self.pick("", "", "message", "error", "beside") if depth else ""
        if not kind or (kind == "error" and "errorEventDefinition" in body):
            return last, body
        event = self.new("x")
        definition = "errorEventDefinition" if kind == "error" else "messageEventDefinition"
        interrupting = "false" if kind == "beside" else "true"
        body += (f'<boundaryEvent id="{event}" attachedToRef="{name}" cancelActivity="{interrupting}">'
                 f"<{definition}/></boundaryEvent>")  # fmt: skip
        entry, left, more = self.block(depth - 1)
        body += more + self.flow(event, entry)
        if self.draw(st.booleans()) or (kind == "beside" and not self.wild):
            return last, body + self.end(left)
        merge = self.new("g")
        return merge, body + f'<exclusiveGateway id="{merge}"/>' + self.flow(last, merge) + self.flow(left, merge)

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
@examples(150)
def test_what_is_accepted_has_the_plans_that_tokens_play(text: str) -> None:
    with catch_warnings(record=True, action="always") as caught:
        try:
            chart = Flowchart.from_bpmn(text)
        except NotationError:
            return
    read, played = set(words(chart.pda(decisions=False), 4)), TokenGame(text).words(4)
    assert read <= played
    assert read == played or any("only where nothing runs side by side" in str(one.message) for one in caught)


def test_the_world_decides_after_service_tasks_if_asked() -> None:
    gateways = '<exclusiveGateway id="g" name="Paid?"/><exclusiveGateway id="h" name="Gift?"/>'
    body = ENDS + '<serviceTask id="charge"/>' + tasks("a", "b") + gateways
    text = bpmn(body, "s charge;charge g;g a yes;g e no;a h;h b yes;h e no;b e")
    assert Flowchart.from_bpmn(text).world == frozenset()
    assert Flowchart.from_bpmn(text, world_after_service_tasks=True).world == {"g"}
    both = bpmn(body, "s charge;charge g;g a yes;g e no;a h;h b yes;h e no;b g")  # a task leads there, too
    assert Flowchart.from_bpmn(both, world_after_service_tasks=True).world == frozenset()
