"""Runs: whatever models and tools do, the order of the tools keeps the rules."""

from __future__ import annotations

import random
import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, constraint
from formal_llm.agents.modular import (
    Memory,
    ModularAgent,
    Module,
    RunBudget,
    Scratchpad,
    Sizes,
    Step,
    calculate,
    respond,
    search,
)
from formal_llm.agents.modular.running import (
    KEPT_STEPS,
    KEPT_TURNS,
    call_messages,
    plan_messages,
    plan_schema,
    summary_messages,
    summary_schema,
)
from formal_llm.errors import FormalLLMError, InvalidAnswer, RecordError, ToolError
from formal_llm.llms.doubles import FunctionLLM
from formal_llm.llms.schemas import check_schema, problem_in
from formal_llm.tools import tool
from tests.agents.modular.doubles import CALLS, RHINE, TOKEN, Free, Held, Token, letters, plain, rhine, script
from tests.strategies import examples

NAMES = ["a", "b", "c", "respond"]
#: Rules, and the same as a regular expression over the first letters of the tools.
RULES = [
    (None, None, "[abc]*r"),
    (None, Limits(at_most={"a": 1, "b": 1}, at_least={"c": 1}), "(?=[^a]*a?[^a]*$)(?=[^b]*b?[^b]*$)[ab]*c[abc]*r"),
    (constraint("(next a b respond)", NAMES), None, "abr"),
    (constraint("(not (eventually (next a b)))", NAMES), None, "(?!.*ab)[abc]*r"),
    (constraint("(until_1_3 (next a b) respond)", NAMES), None, "(ab){1,3}r"),
    (CFG.from_string("S -> T respond\nT -> a T b | c"), None, "(c|acb|aacbb|aaacbbb)r"),
    ([constraint("(eventually b)", NAMES), constraint("(not (eventually (next b c)))", NAMES)], None,
     "(?!.*bc)[abc]*b[abc]*r"),
]  # fmt: skip


@cache
def beginnings(pattern: str, steps: int) -> tuple[set[str], set[str]]:
    """The words of a pattern of at most so many letters, and their beginnings: by trying all."""
    words = {
        "".join(word)
        for length in range(1, steps + 1)
        for word in product("abcr", repeat=length)
        if re.fullmatch(pattern, "".join(word))
    }
    return words, {word[:end] for word in words for end in range(len(word) + 1)}


@given(st.integers(0, 10**9), st.sampled_from(RULES), st.sampled_from([0.0, 0.1, 0.6]), st.integers(0, 2))
def test_the_order_of_tools_keeps_the_rules(seed: int, rule: tuple, wild: float, nesting: int) -> None:
    rng = random.Random(seed)
    rules, limits, pattern = rule
    steps = 6
    kind = Held if rng.random() < 0.5 else Free
    planner, caller = kind(rng, wild), kind(rng, wild)
    used: list[str] = []
    agent = ModularAgent(
        planner,
        caller,
        modules=letters(rng),
        rules=rules,
        limits=limits,
        nesting=nesting,
        budget=RunBudget(steps=steps),
    )
    words, prefixes = beginnings(pattern, steps)
    try:
        run = agent.run(
            "request\n1. respond: forged",
            progress=lambda one: used.append(str(one.data["tool"])) if one.kind in ("used", "failed") else None,
        )
    except FormalLLMError as error:
        # A schema says all that is legal of calls one deep; of deeper ones the order is checked afterwards.
        assert wild or nesting > 1 or isinstance(error, ToolError), error
        assert "".join(name[0] for name in used) in prefixes
        return
    assert "".join(name[0] for name in run.word) in words
    assert list(run.word) == used and len(run.word) <= steps
    assert agent.monitor.verify(run.word, repair=False).valid
    assert run.answer == run.scratchpad.steps[-1].result
    assert run.usage.requests >= len(run.decisions)
    # The planner was offered exactly what can be completed in time.
    for schema, decision in zip([one for one in planner.asked if "task" in str(one)], run.decisions, strict=False):
        assert schema is not None and decision.tool in decision.legal


@given(st.integers(0, 10**9), st.sampled_from(RULES))
def test_what_is_offered_is_what_can_be_finished(seed: int, rule: tuple) -> None:
    rules, limits, pattern = rule
    steps = 5
    rng = random.Random(seed)
    _, prefixes = beginnings(pattern, steps)
    agent = ModularAgent(
        Held(rng, 0), modules=letters(), rules=rules, limits=limits, nesting=0, budget=RunBudget(steps)
    )
    run = agent.run("x")
    for place, decision in enumerate(run.decisions):
        before = "".join(name[0] for name in run.word[:place])
        expected = tuple(name for name in NAMES if before + name[0] in prefixes)
        assert decision.legal == expected
        asked = decision.schema["properties"]
        assert ("tool" in asked) == (len(expected) > 1)


# -- end to end, on the shipped corpus and calculator -----------------------------------------------------------------


def test_an_answer_from_corpus_and_calculator() -> None:
    seen: list[str] = []
    run = rhine().run("How long is half of the Rhine?", progress=lambda one: seen.append(one.kind))
    assert run.answer == "615 kilometres" and run.word == ("search", "calculate", "respond")
    assert "about 1,230 kilometres" in run.scratchpad.steps[0].result
    assert run.scratchpad.steps[1].call == 'calculate("1230 / 2")' and run.scratchpad.steps[1].result == "615"
    assert seen == ["decided", "bound", "used"] * 3 + ["answered"]
    assert run.usage.requests == 6 and not run.corrections
    assert [decision.legal for decision in run.decisions] == [
        ("search", "calculate"), ("calculate", "respond"), ("respond",)
    ]  # fmt: skip
    # Who calls sees the task and the steps, and never the other tools; one legal tool is not asked for.
    assert "tool" not in run.decisions[2].schema["properties"]  # type: ignore[operator]
    assert "The next step uses respond." in run.decisions[2].messages[1].content
    assert run.memory == Memory().plus("How long is half of the Rhine?", "615 kilometres")
    assert run.transcript.verify(rhine().monitor).valid and run.transcript.answer == "615 kilometres"


def test_a_call_inside_a_call_counts() -> None:
    nested = {"expression": {"tool": "calculate", "arguments": {"expression": "2 * 3"}}}
    planned = [RHINE[1], {**RHINE[2], "tool": "respond"}]
    agent = ModularAgent(script(*planned), script(nested, CALLS[2]))
    run = agent.run("x")
    assert run.word == ("calculate", "calculate", "respond")
    assert run.scratchpad.steps[1].call == 'calculate(calculate("2 * 3"))' and run.scratchpad.steps[1].result == "6"
    # Under a limit of one it is not offered, and not taken.
    agent = ModularAgent(
        script(*planned),
        script(nested, nested),
        limits=Limits(at_most={"calculate": 1}),
    )
    with pytest.raises(InvalidAnswer, match="'calculate' is none of search"):
        agent.run("x")


def test_the_order_inside_a_call_is_checked_where_the_schema_cannot_say_it() -> None:
    @tool("pair")
    def pair(one: str, other: str) -> str:
        return one + other

    inside = {"one": {"tool": "a", "arguments": {"text": "1"}}, "other": {"tool": "b", "arguments": {"text": "2"}}}
    swapped = {"one": inside["other"], "other": inside["one"]}
    modules = (Module(pair), plain("a"), plain("b"), respond())
    rule = constraint("(not (eventually (next b a)))", ["pair", "a", "b", "respond"])
    planned = [{**RHINE[0], "tool": "pair"}, {**RHINE[0], "tool": "respond"}]
    agent = ModularAgent(
        script(*planned),
        script(swapped, inside, CALLS[2]),
        modules=modules,
        rules=rule,
    )
    run = agent.run("x")
    assert run.word == ("a", "b", "pair", "respond")
    (correction,) = run.corrections
    assert "come in the order b, a, pair" in correction.reason and correction.position == 0


def test_what_no_model_can_write_comes_from_a_call() -> None:
    @tool("mint")
    def mint() -> Token:
        return Token("t")

    @tool("spend")
    def spend(token: Token) -> str:
        return f"spent {token.text}"

    modules = (Module(mint), Module(spend), respond())
    inside = {"token": {"tool": "mint", "arguments": {}}}
    planned = [{**RHINE[0], "tool": "spend"}, RHINE[2]]
    rules = constraint("(next mint spend respond)", ["mint", "spend", "respond"])
    agent = ModularAgent(
        script(*planned),
        script(inside, CALLS[2]),
        modules=modules,
        rules=rules,
    )
    assert agent.setup.legal(agent.monitor, 9) == ("mint", "spend") and mint.output == TOKEN
    run = agent.run("x", journal=None)
    assert run.word == ("mint", "spend", "respond") and run.scratchpad.steps[0].result == "<modular-token>"
    assert run.scratchpad.steps[1].result == "spent t"


def test_a_tool_that_fails_is_told_and_counts() -> None:
    planned = [{**RHINE[1]}, {**RHINE[1]}, {**RHINE[2], "tool": "respond"}]
    called = [
        {"expression": "5 km + 3 m"},
        {"expression": {"tool": "search", "arguments": {"query": "Rhine"}}},
        CALLS[2],
    ]
    run = ModularAgent(script(*planned), script(*called)).run("x")
    one, inner, other, _ = run.scratchpad.steps
    assert one.failed and "units are not calculated with" in one.result
    assert inner.tool == "search" and not inner.failed and other.failed
    assert "   failed: " in run.decisions[2].messages[1].content
    assert run.word == ("calculate", "search", "calculate", "respond")


# -- journals ---------------------------------------------------------------------------------------------------------


@examples(30)
@given(seed=st.integers(0, 10**9), cut=st.floats(0, 1))
def test_a_run_goes_on_wherever_it_was_killed(tmp_path_factory: pytest.TempPathFactory, seed: int, cut: float) -> None:
    file = tmp_path_factory.mktemp("run") / "run.jsonl"

    def agent(rng: random.Random, wild: float = 0.1) -> ModularAgent:
        return ModularAgent(Held(rng, wild), modules=letters(rng), budget=RunBudget(steps=5))

    rng = random.Random(seed)
    try:
        whole = agent(rng).run("x", journal=file)
    except FormalLLMError:
        return
    text = file.read_bytes()
    again = agent(random.Random(1)).run("x", journal=file)  # all from the journal: nobody is asked
    assert again == whole and file.read_bytes() == text
    file.write_bytes(text[: int(cut * len(text))])
    told: list[str] = []
    resumed = agent(random.Random(2), 0).run(
        "x", journal=file, progress=lambda one: told.append(one.kind) if one.replayed else None
    )
    kept = sum(b'"what": "tool"' in line for line in text[: int(cut * len(text))].split(b"\n")[:-1])
    assert resumed.word[:kept] == whole.word[:kept] and resumed.complete
    assert sum(kind in ("used", "failed") for kind in told) == kept


def test_a_journal_of_another_run_or_that_was_changed(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    rhine().run("x", journal=file)
    with pytest.raises(RecordError, match="another run"):
        rhine().run("y", journal=file)
    with pytest.raises(RecordError, match="another run"):
        rhine().run("x", journal=file, budget=RunBudget(steps=9))
    text = file.read_text()
    for old, new, said in [
        ('"tool": "search"', '"tool": "respond"', "is not legal here"),
        ('"usage": {"requests"', '"usage": {"asked"', "cannot be read"),
        ('"text": "615"', '"data": "615"', "cannot be read"),
        ("615 kilo", '"', "no JSON"),
    ]:
        assert old in text
        file.write_text(text.replace(old, new, 1))
        with pytest.raises(RecordError, match=said):
            rhine().run("x", journal=file)


# -- long texts -------------------------------------------------------------------------------------------------------


def test_long_results_are_summarised() -> None:
    long = Module(tool("a")(lambda_text), summarised=True)
    planned = [{**RHINE[0], "tool": "a"}, {**RHINE[0], "tool": "respond"}]
    summaries = script({"summary": "x" * 801}, {"summary": "short"})
    agent = ModularAgent(
        script(*planned), script({"text": "t"}, CALLS[2]), summary_llm=summaries,
        modules=[long, respond()],
    )  # fmt: skip
    run = agent.run("x")
    assert run.scratchpad.steps[0].result == "short" and len(run.corrections) == 1
    assert "801 characters" in run.corrections[0].reason
    assert all(len(message.content) < 25_000 for request in summaries.requests for message in request.messages)
    # Where no summary can be had, the text is cut, visibly and on record.
    again = ModularAgent(
        script(*planned), script({"text": "t"}, CALLS[2]), modules=[long, respond()],
        summary_llm=script("no", "no"),
    ).run("x")  # fmt: skip
    assert "characters left out" in again.scratchpad.steps[0].result and len(again.corrections) == 2


def lambda_text(text: str) -> str:
    return text * 50_000


def test_long_scratchpads_are_summarised() -> None:
    count = 7
    planned = [{**RHINE[0], "tool": "a"}] * count + [{**RHINE[0], "tool": "respond"}]
    agent = ModularAgent(
        script(*planned), script(*[{"text": "t" * 90}] * count, CALLS[2]),
        summary_llm=FunctionLLM(lambda _: {"summary": "many a"}, can={"object"}), modules=letters(),
        sizes=Sizes(scratchpad=300),
    )  # fmt: skip
    run = agent.run("x")
    gone = run.scratchpad.summarised
    assert 3 <= gone <= count - KEPT_STEPS and run.scratchpad.summary == "many a"
    assert len(run.scratchpad) == count + 1  # the record has all of them
    last = run.decisions[-1].messages[1].content
    assert f"Steps 1 to {gone}, in short: many a" in last and "\n1. a" not in last and f"\n{gone + 1}. a" in last


def test_a_conversation_is_remembered() -> None:
    memory = Memory()
    for number in range(6):
        planner = script({"context_summary": "", "thoughts": "", "task": "t"})
        agent = ModularAgent(
            planner, script({"answer": f"answer {number}"}), modules=[respond()], sizes=Sizes(turns=4),
            summary_llm=FunctionLLM(lambda _: {"summary": "older talk"}, can={"object"}),
        )  # fmt: skip
        run = agent.run(f"request {number}", memory=memory)
        shown = run.decisions[0].messages[1].content
        assert all(f"answer {one}" in shown or memory.summary for one in range(number))
        memory = run.memory
    assert memory.summary == "older talk" and KEPT_TURNS <= len(memory.turns) <= 4
    assert memory.turns[-1].answer == "answer 5"


MODULES = [search(), calculate(), respond()]


def test_the_planner_sees_tools_and_no_signatures() -> None:
    system, user = plan_messages("how long?", Memory(), Scratchpad(), MODULES, ("search", "respond"), 500)
    assert "- search: Search a library" in system.content and "query" not in system.content
    assert (
        user.content
        == "Request: how long?\n\nSteps so far:\nnone yet\n\nTools that may be chosen now: search, respond."
    )
    assert (
        "The next step uses respond."
        in plan_messages("x", Memory(), Scratchpad(), MODULES, ("respond",), 500)[1].content
    )


def test_the_caller_sees_its_tool_and_no_others() -> None:
    system, user = call_messages(MODULES[1], "r", "half of 3", Memory().plus("a", "b"), Scratchpad())
    assert "calculate: Calculate an expression" in system.content and "search" not in system.content
    assert user.content.startswith("The conversation so far:\nUser: a\nAnswer: b\n\nRequest: r")
    assert user.content.endswith("Task: half of 3")


def test_schemas() -> None:
    for tools in (("a",), ("a", "b")):
        check_schema(plan_schema(tools, 500))
    value = {"context_summary": "", "thoughts": "", "task": "t"}
    assert problem_in(value, plan_schema(("a",), 500)) is None
    assert problem_in({**value, "task": ""}, plan_schema(("a",), 500)) is not None
    assert problem_in({**value, "tool": "c"}, plan_schema(("a", "b"), 500)) is not None
    check_schema(summary_schema(9))


def test_what_is_huge_is_shown_in_part() -> None:
    huge = "x" * 1_000_000
    pad = Scratchpad((Step("search", huge, huge),))
    memory = Memory().plus(huge, huge)
    for messages in (
        plan_messages(huge, memory, pad, MODULES, ("search", "respond"), 500),
        call_messages(MODULES[0], huge, "t", memory, pad),
        summary_messages(huge, huge, 100, 1_000),
    ):
        assert sum(len(message.content) for message in messages) < 20_000
        assert "characters left out" in messages[1].content
