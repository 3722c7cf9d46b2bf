"""Procedures that are drawn: what is derived holds where walking the diagram leads to the step, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm.errors import InputError, NotationError
from formal_llm.guard.rules.expressions import BinaryOperation, Constant, FunctionCall
from formal_llm.procedures import (
    ConditionNeed,
    FactNeed,
    NeedGroup,
    NotNeed,
    Procedure,
    check_evidence,
    run_procedure,
    write_evidence,
)
from formal_llm.procedures.diagrams import declares_tools
from formal_llm.procedures.procedure import Need
from formal_llm.procedures.terms import CallValue

CHECKS, VALUES, ACTIONS = ("c0", "c1", "c2"), ("v0", "v1"), ("a0", "a1", "a2")
LABELS = ("red", "blue", "else")


@dataclass
class Drawing:
    """A diagram: for each node its text and what it does, for each arrow the answer; and what checks return."""

    nodes: list[str] = field(default_factory=list)
    arrows: list[tuple[int, int, str]] = field(default_factory=list)
    results: dict[str, bool | str] = field(default_factory=dict)
    changes: str = "nothing"

    def __str__(self) -> str:
        tools = [*(f"check {name}(x)" for name in (*CHECKS, *VALUES)), "goal action goal(x)", "goal check seen(x)"]
        lines = ["flowchart TD", *(f"    %% {tool}" for tool in tools)]
        for name in {text.partition("(")[0] for text in self.nodes} - {*CHECKS, *VALUES, "goal", "seen", "Start"}:
            lines += [f"    %% action {name}(x)"] + ["    %%     changes nothing"] * (self.changes == "nothing")
        if self.changes == "nothing":
            lines.insert(1 + lines.index("    %% goal action goal(x)"), "    %%     changes nothing")
        labelled = {source for source, _, answer in self.arrows if answer}
        for number, text in enumerate(self.nodes):
            before, behind = ("{", "}") if number in labelled else ("([", "])") if text in ("Start", "End") else "[]"
            lines.append(f'    n{number}{before}"{text}"{behind}')
        lines += [f"    n{one} -->{f'|{answer}|' if answer else ''} n{two}" for one, two, answer in self.arrows]
        return "\n".join(lines)

    def walk(self) -> set[str]:
        """The steps that can be reached, whoever chooses between arrows that have no answer."""
        reached = {0}
        for source, target, answer in sorted(self.arrows):
            if source in reached and self._is_followed(source, answer):
                reached.add(target)
        return {self.nodes[number].partition("(")[0] for number in reached}

    def _is_followed(self, source: int, answer: str) -> bool:
        if not answer:
            return True
        result = self.results[self.nodes[source].partition("(")[0]]
        if isinstance(result, bool):
            return result == (answer == "yes")
        others = {label for one, _, label in self.arrows if one == source}
        return answer == result if answer != "else" else result not in others


@st.composite
def drawings(draw: st.DrawFn, *, apart: bool = False) -> Drawing:
    """An acyclic diagram; if ``apart`` each action is drawn once, and makes all results obsolete."""
    size = draw(st.integers(3, 10))
    parents = [
        draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=3)) for number in range(1, size)
    ]  # twice the same: several answers lead to one place
    targets: dict[int, list[int]] = {number: [] for number in range(size)}
    for number, above in enumerate(parents, 1):
        for parent in above:
            targets[parent].append(number)
    drawing = Drawing(changes="all" if apart else "nothing")
    for number in range(size):
        kind = draw(st.sampled_from(["decision", "value", "check", "action"]))
        if number == 0:
            text = "Start"
        elif not targets[number] or number == size - 1:
            text = draw(st.sampled_from(["End", "goal(x)", "goal(x)", "seen(x)"]))
        elif kind == "decision" and len(targets[number]) < 3:
            text = f"{draw(st.sampled_from(CHECKS))}(x)"
        elif kind == "value" and len(targets[number]) < 4:
            text = f"{draw(st.sampled_from(VALUES))}(x)"
        else:
            text = f"{draw(st.sampled_from(CHECKS)) if kind == 'check' else draw(st.sampled_from(ACTIONS))}(x)"
            text = text.replace("(", f"_{number}(") if apart and kind != "check" else text
            kind = "step"
        drawing.nodes.append(text)
        labels = {"decision": ["yes", "no"], "value": [*LABELS]}.get(kind, []) if number else []
        if text in ("End", "goal(x)", "seen(x)"):
            labels = []
        labels = draw(st.permutations(labels))
        for at, target in enumerate(targets[number]):
            drawing.arrows.append((number, target, labels[at] if labels else ""))
    if "goal(x)" not in drawing.nodes:
        drawing.nodes[-1] = "goal(x)"
    if "seen(x)" not in drawing.nodes:
        drawing.nodes.append("seen(x)")
        drawing.arrows.append((0, size, ""))
    drawing.results = {name: draw(st.booleans()) for name in CHECKS}
    drawing.results |= {name: draw(st.sampled_from(["red", "blue", "green"])) for name in VALUES}
    return drawing


def read(text: str, name: str = "drawn.mmd") -> Procedure:
    with TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_text(text, encoding="utf-8")
        return Procedure.from_file(file)


def read_drawing(drawing: Drawing) -> Procedure:
    try:
        return read(str(drawing))
    except NotationError as error:
        assume("no way leads to" not in str(error))  # the same is decided twice, and contradicts itself
        raise


def holds(need: Need, results: Mapping[str, bool | str]) -> bool:
    """Two-valued logic: all that an action on the way would establish is established."""
    match need:
        case NeedGroup("any of", items):
            return any(holds(item, results) for item in items)
        case NeedGroup("none of", items):
            return not any(holds(item, results) for item in items)
        case NeedGroup(_, items):
            return all(holds(item, results) for item in items)
        case NotNeed(inner):
            return not holds(inner, results)
        case FactNeed() | ConditionNeed(FunctionCall("has")):
            return True
        case ConditionNeed(CallValue(tool)):
            return results[tool] is True
        case ConditionNeed(BinaryOperation("==", CallValue(tool), Constant(value))):
            return results[tool] == value
    raise AssertionError(need)


@given(drawings())
def test_a_need_holds_where_walking_leads_to_the_step(drawing: Drawing) -> None:
    procedure = read_drawing(drawing)
    reached = drawing.walk()
    for name in {"goal", "seen", *ACTIONS} & procedure.tools.keys():
        assert holds(procedure.tools[name].need, drawing.results) == (name in reached)
    again = Procedure.from_string(str(procedure))
    assert (again.tools, again.facts) == (procedure.tools, procedure.facts)


@given(drawings(apart=True))
def test_a_run_does_what_walking_does(drawing: Drawing) -> None:
    """Here each action makes all results obsolete, and what it asked for is not asked for again."""
    procedure = read_drawing(drawing)
    made: list[str] = []

    def answer(name: str) -> object:
        def call(x: str) -> object:
            made.append(name)
            return drawing.results.get(name, True)

        return call

    tools = {name: answer(name) for name in procedure.tools}
    for goal in ("goal", "seen"):
        made.clear()
        outcome = run_procedure(procedure, "", None, tools, goal=goal, known={"x": "1"})  # type: ignore[arg-type]
        assert outcome.ending == ("done" if goal in drawing.walk() else "declined"), str(outcome)
        assert {name for name in made if procedure.tools[name].acts} <= drawing.walk()


DECLARED = """
    %% check find_order(order_id: text) "Looks an order up."
    %% check find_balance(email: text)
    %% action verify_customer(email: text, code: text)
    %%     changes nothing
    %% action log_out(email: text)
    %% action take_stock(order_id: text)
    %%     changes find_order
    %% goal action refund(order_id: text, email: text, amount: number)
    %% goal action explain(order_id: text, reason: text = "late")
    %% fact verified(email): verify_customer(email, code) is ok until log_out(email)
    %% fact sent(order_id): find_order(order_id).state == "sent"
    %% check the order first: this line declares nothing
"""
REFUND = 'R["refund(order_id, email, amount)"]'


def needs_of(*lines: str, goal: str = "refund") -> list[str]:
    """The lines of a goal's need in a diagram; the other goal is drawn beside it."""
    other = "Start --> O[explain]" if goal == "refund" else 'Start --> O["refund(order_id, email, amount)"]'
    other = other.replace("[explain]", '["explain(order_id, reason)"]')
    procedure = read("flowchart TD" + DECLARED + "\n".join(["Start([Start])", *lines, other]))
    again = Procedure.from_string(str(procedure))
    assert (again.tools, again.facts) == (procedure.tools, procedure.facts)
    text = str(Procedure({goal: procedure.tools[goal]}))
    return [line[4:] for line in text.splitlines()[1:]]


@pytest.mark.parametrize(
    ("lines", "need"),
    [
        pytest.param([f"Start --> {REFUND}"], [], id="nothing is asked for"),
        pytest.param(
            ['Start --> A{"sent(order_id)?"} -->|no| ' + REFUND], ["not sent(order_id)"], id="a question with no alone"
        ),
        pytest.param(
            ['Start --> A{"find_order(order_id).state"} -->|in transit| ' + REFUND,
             "A -->|5| R", "A -->|else| E([End])"],
            ["any of", '    find_order(order_id).state == "in transit"', "    find_order(order_id).state == 5"],
            id="values",
        ),
        pytest.param(
            ['Start --> A{"find_balance(email)"} -->|"> 10"| E([Poor])', "A -->|otherwise| " + REFUND],
            ["not find_balance(email) > 10"],
            id="a comparison, and what it leaves",
        ),
        pytest.param(
            ["Start --> A{\"find_order(order_id).state == 'lost' or amount < 5\"} -->|false| " + REFUND],
            ["none of", "    any of", '        find_order(order_id).state == "lost"', "        amount < 5"],
            id="a group that does not hold, with single quotes",
        ),
        pytest.param(
            ['Start --> A["find_order(order_id)"] --> B{"find_order(order_id).state"} -->|lost| ' + REFUND],
            ['find_order(order_id).state == "lost"'],
            id="a check that is asked about",
        ),
        pytest.param(
            ['Start --> A["find_order(order_id)"] --> ' + REFUND],
            ["has(find_order(order_id))"],
            id="a check that is made"
        ),
        pytest.param(
            ['Start --> A{"verified(email)"} -->|yes| ' + REFUND,
             'A -->|no| V["verify_customer(email, code)"] --> R'],
            ["verified(email)"],
            id="what an action establishes is a fact that is declared",
        ),
        pytest.param(
            ['Start --> A{"find_order(order_id).state"} -->|lost| T["take_stock(order_id)"]',
             'T --> B{"find_balance(email) == 0"} -->|yes| ' + REFUND],
            ["in order", "    take_stock_done(order_id)", "    find_balance(email) == 0"],
            id="an action makes obsolete what was asked before it",
        ),
        pytest.param(
            ["Start --> V[verify_customer] --> L[log_out] --> " + REFUND],
            ["log_out_done(email)"],
            id="an action ends what was established before it",
        ),
        pytest.param(
            ["Start --> V[verify_customer] --> T[take_stock] --> " + REFUND],
            ["in order", "    verified(email)", "    take_stock_done(order_id)"],
            id="nodes with the names of tools",
        ),
        pytest.param(
            ['Start --> R["refund(order_id, email, find_balance(email))"]'],
            ["amount == find_balance(email)"],
            id="an argument that is drawn",
        ),
        pytest.param(
            ['Start --> A{"? #quot;Is the customer honest?#quot;"} -->|yes| ' + REFUND],
            ['? "Is the customer honest?"'],
            id="what nobody has translated",
        ),
        pytest.param(
            ['Start --> A{"? #quot;Is it a lie?#quot;"} -->|no| ' + REFUND],
            ["none of", '    ? "Is it a lie?"'],
            id="the opposite of what nobody has translated",
        ),
        pytest.param(
            ["Start --> V[verify_customer]", 'Start --> A{"verified(email)"} -->|no| ' + REFUND],
            ["not verified(email)"],
            id="an action on another way",
        ),
        pytest.param(
            ['Start --> A{"sent(order_id)"}', 'A -->|yes| B{"amount < 5"}', 'A -->|no| C{"find_balance(email) < 5"}',
             "B -->|yes| V[verify_customer]", "C -->|yes| V", "V --> " + REFUND],
            ["in order", "    any of", "        in order", "            sent(order_id)", "            amount < 5",
             "        in order", "            not sent(order_id)", "            find_balance(email) < 5",
             "    verified(email)"],
            id="ways with an end in common",
        ),
    ],
)  # fmt: skip
def test_what_is_drawn_before_a_goal_is_its_need(lines: list[str], need: list[str]) -> None:
    assert needs_of(*lines) == need


def test_an_optional_argument_that_is_not_drawn_has_its_default() -> None:
    assert needs_of('Start --> E["explain(order_id)"]', goal="explain") == ['reason == "late"']


def test_a_need_below_a_declaration_counts_as_well() -> None:
    text = """flowchart TD
        %% check fits(x)
        %% goal action act(x: number)
        %%     x > 5
        A{"fits(x)"} -->|yes| B["act(x)"]"""
    assert "all of\n        x > 5\n        fits(x)" in str(read(text))


@pytest.mark.parametrize(
    ("lines", "problem", "place"),
    [
        (['A{"sent(order_id)"} -->|no| F["find_order(order_id)"] --> A', "A -->|yes| E([E])"], "round in a circle", 14),
        (["A[take_stock] --> B[verify_customer] & C[take_stock]"], "nothing side by side", 14),
        (['A["find_balance(email)"] -->|yes| E([E])'], "an arrow out of a step has an answer", 14),
        (["A[Think hard] --> E([E])"], "no call of a tool: Think hard", 14),
        (['A["take_stok(order_id)"]'], "did you mean take_stock?", 14),
        (['A["sent(order_id)"]'], "no call of a tool: sent(order_id)", 14),
        (['A{"find_order(order_id).state =="} -->|yes| E([E])'], "14:51", 14),
        (['A{"sent(order_id)"} -->|perhaps| E([E])'], "holds or does not: perhaps", 14),
        (['A{"sent(order_id)"} --> E([E])'], "has no answer", 14),
        (['A{{"find_balance(email)"}} -->|1| E([E])', "A -->|2| E"], "chosen together", 14),
        (["A[verify_customer]", 'A --> B{"verified(email)"} -->|no| X'], "leave that step out", 15),
        (['A{"sent(order_id)"} -->|yes| B{"sent(order_id)"} -->|no| take_stock'], "contradicts itself", 14),
        (['A{"sent(order_id)"} -->|yes| B["take_stock(order_id)"] --> verify_customer',
          'A -->|no| C["take_stock(order_id)"] --> verify_customer'], "drawn several times", 14),
        (['A{"sent(email)"} -->|yes| B["verify_customer(order_id, email)"]'], "is not the email of", 14),
        (["%% %limit 1 A", "A[take_stock]"], "no limits", None),
    ],
)  # fmt: skip
def test_what_cannot_be_expressed_has_its_place(lines: list[str], problem: str, place: int | None) -> None:
    goals = ['Start --> R["refund(order_id, email, amount)"]', 'Start --> X["explain(order_id)"]']
    with pytest.raises(NotationError) as caught:
        read("flowchart TD" + DECLARED + "\n".join([*lines, "Start([Start]) --> A", *goals]))
    assert problem in str(caught.value)
    assert caught.value.line == place


def test_diagrams_that_are_no_procedures() -> None:
    for text, problem in [
        ("flowchart TD\nA[Do it]", "declares no tools"),
        ("stateDiagram-v2\n%% goal action act(x)\n[*] --> s\ns --> [*] : act", "a state diagram is no procedure"),
        ("flowchart TD\n%% goal action act(x)\nA([End])", "no step of the diagram is the goal act"),
        ("flowchart TD\n%% goal action act(x)\n%% gaol action do(x)\nA[act] --> B[do]", "no call of a tool: do"),
    ]:
        with pytest.raises(NotationError, match=problem):
            read(text)
    assert not declares_tools("flowchart TD\n%% check it\nA[Do it]")
    assert declares_tools("flowchart TD\n%% check it(x)\nA[Do it]")


def test_many_ways_that_do_not_agree_are_refused() -> None:
    lines = ["flowchart TD", *(f"%% check c{n}(x)" for n in range(40)), "%% goal action act(x)"]
    for n in range(20):
        lines += [f'a{n}{{"c{2 * n}(x)"}} -->|yes| b{n}', f'a{n} -->|no| d{n}{{"c{2 * n + 1}(x)"}}']
        lines += [f"d{n} -->|yes| b{n}", f"b{n}([ ]) --> a{n + 1}"]
    with pytest.raises(NotationError, match="more than 100 ways lead here"):
        read("\n".join([*lines, "a20[act]"]))


PROCESS = """<?xml version="1.0"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">
  <process id="refunds">
    <documentation>
      check find_order(order_id: text)
      action verify_customer(email: text, code: text)
          changes nothing
      goal action refund(order_id: text, amount: number)
    </documentation>
    <startEvent id="start"/>
    <serviceTask id="verify_customer" name="Verify the customer"/>
    <serviceTask id="look" name="find_order(order_id)"><documentation>In the shop.</documentation></serviceTask>
    <exclusiveGateway id="state" name="find_order(order_id).state" default="other"/>
    <serviceTask id="pay" name="refund(order_id, amount)"/>
    <endEvent id="paid"/>
    <endEvent id="kept" name="Nothing to pay"/>
    <sequenceFlow id="f1" sourceRef="start" targetRef="verify_customer"/>
    <sequenceFlow id="f2" sourceRef="verify_customer" targetRef="look"/>
    <sequenceFlow id="f3" sourceRef="look" targetRef="state"/>
    <sequenceFlow id="f4" sourceRef="state" targetRef="pay" name="lost"/>
    <sequenceFlow id="other" sourceRef="state" targetRef="kept"/>
    <sequenceFlow id="f5" sourceRef="pay" targetRef="paid"/>
  </process>
</definitions>
"""


def test_a_process_in_bpmn() -> None:
    procedure = read(PROCESS, "refunds.bpmn")
    assert str(procedure.tools["refund"].need) == str(
        Procedure.from_string(
            "check find_order(order_id)\naction verify_customer(email, code)\n"
            "goal action refund(order_id, amount)\n    in order\n        verify_customer_done(email, code)\n"
            '        find_order(order_id).state == "lost"\n'
            "fact verify_customer_done(email, code): verify_customer(email, code) is ok"
        )
        .tools["refund"]
        .need
    )
    assert read(PROCESS, "refunds.xml") == procedure
    with pytest.raises(NotationError, match="unknown tool, fact or function: find_ordr") as caught:
        read(PROCESS.replace('name="find_order(', 'name="find_ordr('), "refunds.bpmn")
    assert (caught.value.line, caught.value.column) == (12, 34)


def test_one_of_several_processes_is_chosen(tmp_path: Path) -> None:
    other = PROCESS[PROCESS.index("  <process") : PROCESS.index("</definitions>")].replace("refunds", "others")
    other = other.replace('id="', 'id="other_').replace('Ref="', 'Ref="other_').replace('default="', 'default="other_')
    file = tmp_path / "two.bpmn"
    file.write_text(PROCESS.replace("</definitions>", f"{other}</definitions>"))
    with pytest.raises(NotationError, match="several processes"):
        Procedure.from_file(file)
    assert [tool.name for tool in Procedure.from_file(file, process="refunds").goals] == ["refund"]
    (tmp_path / "my.procedure").write_text("goal action act(x)")
    with pytest.raises(InputError, match="is for a process in BPMN"):
        Procedure.from_file(tmp_path / "my.procedure", process="refunds")


def test_what_an_action_has_changed_is_not_asked_for_again() -> None:
    procedure = read("""flowchart TD
        %% check balance(account)
        %% action withdraw(account)
        %% goal action send(account)
        A{"balance(account) >= 10"} -->|yes| B["withdraw(account)"] --> C["send(account)"]""")
    accounts = {"a": 10, "b": 9}

    def withdraw(account: str) -> bool:
        accounts[account] -= 10
        return True

    tools = {"balance": lambda account: accounts[account], "withdraw": withdraw, "send": lambda account: True}
    ends = {name: run_procedure(procedure, "", None, tools, goal="send", known={"account": name}) for name in accounts}
    assert {name: outcome.ending for name, outcome in ends.items()} == {"a": "done", "b": "declined"}
    assert accounts == {"a": 0, "b": 9}
    assert [check_evidence(write_evidence(procedure, outcome)) for outcome in ends.values()] == [[], []]
