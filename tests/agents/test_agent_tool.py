"""Agents as tools of others: whatever both models call, the rules of both are kept, and no call is made twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Limits
from formal_llm.agents import Agent
from formal_llm.agents.acting import NO_TOOL
from formal_llm.agents.run_events import Called, Ended, Received, RunEvent
from formal_llm.errors import AgentPaused, AgentStopped, AutomatonError, LLMError, Pending, WritingError
from formal_llm.llms.doubles import TEXTS, TURNS, RandomLLM, ScriptedLLM
from formal_llm.planning import Budget
from formal_llm.planning.plans.usage import Usage
from formal_llm.tools import tool
from tests.agents.chats import words
from tests.strategies import examples

done: list[str] = []


@tool("search")
def search(query: str) -> str:
    """Searches."""
    done.append("search")
    return f"found {query}"


@tool("pay")
def pay(amount: str) -> str:
    """Pays."""
    done.append("pay")
    return f"paid {amount}"


@tool("ask_user")
def ask_user(question: str) -> str:
    """Asks the user."""
    raise Pending(question)


#: Rules of tools, and whether calls that are all there were keep them.
MEANINGS: dict[str, Callable[[list[str]], bool]] = {
    "(eventually search)": lambda calls: "search" in calls,
    "(eventually pay)": lambda calls: "pay" in calls,
    "(next search (until pay pay))": lambda calls: calls[:1] == ["search"] and {*calls[1:]} == {"pay"},
    "(eventually (next search (eventually pay)))": lambda calls: "pay" in calls[(*calls, "search").index("search") :],
    "(not (eventually (next pay (eventually search))))": lambda calls: (
        "search" not in calls[(*calls, "pay").index("pay") :]
    ),
}
Rules = dict[str, Any]
INNER: list[Rules] = [
    {}, {"rules": ["(eventually search)"]}, {"limits": Limits({"pay": 1})}, {"rules": ["(next search (until pay pay))"]}
]  # fmt: skip
OUTER: list[Rules] = [
    {}, {"limits": Limits({"pay": 1, "search": 2})}, {"limits": Limits({"pay": 0, "agent": 2})},
    {"rules": ["(eventually pay)"], "limits": Limits({"agent": 2})},
    {"rules": ["(eventually (next search (eventually pay)))"], "limits": Limits({"search": 2, "pay": 3, "agent": 2})},
    {"rules": ["(not (eventually (next pay (eventually search))))"]},
    {"limits": Limits({"agent": 1}, {"pay": 2, "search": 1})},
]  # fmt: skip
LIES = ("so", "pay", "search", "agent", "rm", "[Answer]", "")
MARKED = words(["[Thought]", "[Action]", "[Action Input]", "[Final Thought]", "[Answer]"], ["search", "pay", "agent"])
_made: dict[object, list[Agent]] = {}


def make_agents(inner: int, outer: int, levels: int, native: bool) -> list[Agent]:
    """Agents one in the other, the outermost last; their rules are compiled once."""
    key = inner, outer, levels, native
    if key not in _made:
        llm = RandomLLM(can=TURNS) if native else RandomLLM(0, can=TEXTS, words=MARKED)
        made = [Agent("react", llm, [search, pay], times=4, **INNER[inner])]
        for level in range(levels):
            is_last = level == levels - 1
            tools = [made[-1].as_tool("agent", "Does it."), pay if is_last else search]
            made.append(Agent("react", llm, tools, times=4, **(OUTER[outer] if is_last else {})))
        _made[key] = made
    return _made[key]


def keeps_rules(how: Rules, calls: list[str], *, is_whole: bool) -> bool:
    """Whether calls keep rules, by what these mean; of calls that others may follow, what no call can mend."""
    limits = how.get("limits", Limits())
    if any(calls.count(name) > most for name, most in limits.at_most.items() if name != "agent"):
        return False
    if is_whole and any(calls.count(name) < least for name, least in limits.at_least.items()):
        return False
    return all(MEANINGS[rule](calls) for rule in how.get("rules", ()) if is_whole or rule.startswith("(not"))


def list_calls(seen: list[RunEvent]) -> list[str]:
    """The calls of search and pay in all runs, in order, those with wrong arguments among them."""
    called = [event.call for event in seen if isinstance(event, Called)]
    named = [call.tool for call in called if call.ok or "may not be called" not in call.output]
    return [name for name in named if name in ("search", "pay")]


@given(
    st.integers(0, len(INNER) - 1), st.integers(0, len(OUTER) - 1), st.integers(1, 2), st.booleans(),
    st.sampled_from([0.0, 0.3]), st.integers(0, 10**6),
)  # fmt: skip
@examples(100)
def test_whatever_the_models_call_the_rules_of_both_are_kept(
    inner: int, outer: int, levels: int, native: bool, lies: float, seed: int
) -> None:
    agents = make_agents(inner, outer, levels, native)
    for number, one in enumerate(agents, seed):
        one.llm = (
            RandomLLM(number, can=TURNS, words=LIES, lies=lies)
            if native
            else RandomLLM(number, can=TEXTS, words=MARKED)
        )
    seen: list[RunEvent] = []
    run = agents[-1].start("q", on_event=seen.append)
    try:
        run.run_to_end()
    except WritingError:
        pass
    else:
        assert keeps_rules(OUTER[outer], list_calls(seen), is_whole=True)
        assert run.transcript.verify(agents[-1].behaviour).valid
        events = agents[-1].rules.list_events(run.segments, run.inner)
        # The call of an agent that came to nothing is no event of a transcript.
        assert NO_TOOL in run.monitor.word or agents[-1].monitor.verify(events, repair=False).valid
    assert keeps_rules(OUTER[outer], list_calls(seen), is_whole=False)
    for event in seen:
        if isinstance(event, Ended) and event.run and event.error is None:
            assert event.transcript.verify(agents[0].behaviour).valid
            if event.run.count("agent") == levels:
                calls = [one.text for one in event.transcript.segments if one.state == "Act"]
                assert keeps_rules(INNER[inner], calls, is_whole=True)
    # Each request of each run is counted in the outermost one.
    spent = sum((event.usage for event in seen if isinstance(event, Received)), Usage())
    assert not native or run.transcript.usage == spent


def turns(*script: Any, tools: Any = (search, pay), **how: Any) -> Agent:
    return Agent("react", ScriptedLLM(texts=script, can=TURNS), [*tools], **how)


def list_offered(agent: Agent) -> list[list[str]]:
    return [[one.name for one in turn.tools] for turn in agent.llm.requests]  # type: ignore[attr-defined]


def call(name: str, **arguments: object) -> tuple[str, list[tuple[str, dict[str, object]]]]:
    return "", [(name, arguments)]


FIND, PAY, ASK = call("search", query="x"), call("pay", amount="1"), call("agent", request="Find it.")


def test_an_agent_is_a_tool_with_a_request_and_an_answer() -> None:
    inner = turns(FIND, "It is x.")
    made = inner.as_tool("researcher", "Finds facts.")
    assert [*made.schema["properties"]] == ["request"] and made.description == "Finds facts."  # type: ignore[call-overload]
    assert made("Find it.") == "It is x."
    counting = turns('{"answer": 4}', output_type=int)
    answers = counting.as_tool("count", "Counts.")
    assert answers("How many?") == 4
    outer = turns(call("count", request="How many?"), "Four.", tools=[answers])
    counting.llm = ScriptedLLM(texts=['{"answer": 4}'], can=TURNS)
    assert outer.run("q").text_of("Obs") == "4"
    with pytest.raises(AutomatonError, match="chat-bot-endless never ends by itself, so it cannot be a tool"):
        Agent("chat-bot-endless", RandomLLM(can=TEXTS)).as_tool("chat", "Chats.")


def test_what_the_outer_rules_owe_the_inner_run_owes_and_what_they_forbid_is_not_offered() -> None:
    inner = turns(FIND, PAY, "done", "again")
    outer = turns(
        ASK, ASK, "All done.", tools=[inner.as_tool("agent", "Does it.")], rules=["(eventually pay)"],
        limits=Limits({"pay": 1, "agent": 2}),
    )  # fmt: skip
    seen: list[RunEvent] = []
    run = outer.start("q", name="0", on_event=seen.append)
    assert run.run_to_end().answer == "All done."
    assert list_offered(inner) == [["search", "pay"], ["search", "pay"], ["search"], ["search"]]
    assert [one.calls for one in run.inner] == [("search", "pay"), ()]
    assert [one.transcript.answer for one in run.inner] == ["done", "again"]
    assert {event.run for event in seen} == {"0", "0/agent"}
    assert run.transcript.usage.requests == 7 and run.transcript.took["Obs"].requests == 4
    # With one call of the agent left, its run may not end before it has paid.
    inner = turns("No.", PAY, "done")
    outer = turns(
        ASK,
        "Done.",
        tools=[inner.as_tool("agent", "Does it.")],
        rules=["(eventually pay)"],
        limits=Limits({"agent": 1}),
    )
    run = outer.start("q")
    run.run_to_end()
    assert run.inner[0].transcript.corrections[0].reason == "a tool has to be called first: search or pay"
    assert [turn.must_call for turn in inner.llm.requests] == [True, True, False]  # type: ignore[attr-defined]


def test_an_agent_that_cannot_keep_the_rules_is_not_offered() -> None:
    inner = turns(rules=["(eventually search)"])
    tools = [inner.as_tool("agent", "Does it."), pay]
    outer = turns("Nothing.", tools=tools, limits=Limits({"search": 0}))
    assert outer.run("q").answer == "Nothing." and list_offered(outer) == [["pay"]]
    outer = turns(PAY, "Nothing.", tools=tools, rules=["(not (eventually (next pay (eventually search))))"])
    assert outer.run("q").answer == "Nothing." and list_offered(outer) == [["agent", "pay"], ["pay"]]


def test_rules_hold_two_levels_deep() -> None:
    innermost = turns(FIND, PAY, "paid")
    inner = turns(ASK, "done", tools=[innermost.as_tool("agent", "Does it."), search], limits=Limits({"agent": 1}))
    outer = turns(
        call("boss", request="Do it."), "Done.", tools=[inner.as_tool("boss", "Does it.")],
        rules=["(next boss search pay)"],
    )  # fmt: skip
    run = outer.start("q")
    assert run.run_to_end().answer == "Done."
    assert list_offered(inner) == [["agent", "search"], []] and list_offered(innermost) == [["search"], ["pay"], []]
    assert run.inner[0].calls == ("agent", "search", "pay") and run.transcript.usage.requests == 7
    assert [one.tool for one in run.inner] == ["boss"]


def test_a_plan_with_agents() -> None:
    first, second = turns(FIND, "found"), turns(PAY, "paid")
    plan = ("", [("first", {"request": "a"}), ("second", {"request": "b"})])
    tools = [first.as_tool("first", "Finds."), second.as_tool("second", "Pays.")]
    rules = ["(eventually (next search pay))"]
    run = Agent(
        "rewoo", ScriptedLLM(texts=[plan, "solved"], can=TURNS), tools, rules=rules, limits=Limits({"search": 1})
    ).start("q")
    assert run.run_to_end().answer == "solved" and [one.calls for one in run.inner] == [("search",), ("pay",)]
    assert list_offered(first) == [["search", "pay"], ["pay"]] and list_offered(second) == [["pay"], ["pay"]]


def test_failures_of_inner_runs_are_results_and_budgets_are_those_of_all() -> None:
    inner = turns(*[""] * 5)
    run = turns(ASK, "So be it.", tools=[inner.as_tool("agent", "Does it.")]).start("q")
    assert (
        run.run_to_end().text_of("Obs")
        == "Error: agent came to no end: 5 turns could not be used: an answer is not empty"
    )
    assert run.transcript.usage.requests == 7 and not run.calls[0].ok
    inner = turns(FIND, FIND, "x", budget=Budget(requests=1))
    run = turns(ASK, "So be it.", tools=[inner.as_tool("agent", "Does it.")]).start("q")
    assert "budget of 1 requests is used up" in (run.run_to_end().text_of("Obs") or "")
    inner = turns(FIND, FIND, FIND, "x")
    run = turns(ASK, "x", tools=[inner.as_tool("agent", "Does it.")], budget=Budget(requests=3)).start("q")
    with pytest.raises(AgentStopped) as stopped:
        run.run_to_end()
    assert stopped.value.transcript is run.transcript and run.transcript.usage.requests == 3
    run = turns(ASK, "x", tools=[turns(FIND).as_tool("agent", "Does it.")]).start("q")
    with pytest.raises(LLMError, match="the script ended"):
        run.run_to_end()
    bad = turns(call("agent", wrong="x"), "ok", tools=[inner.as_tool("agent", "Does it.")])
    assert (bad.run("q").text_of("Obs") or "").startswith("Error: agent was not called: agent was given no argument")


def pause_after(run: Any, steps: int) -> None:
    """Have a run pause after so many requests or calls of its own and of inner runs."""
    seen = 0

    def count(event: RunEvent) -> None:
        nonlocal seen
        seen += isinstance(event, Received | Called)
        if seen >= steps:
            run._pausing = True

    run._on_event = count


def make_nest(*scripts: Any, **how: Any) -> Agent:
    """Three agents, one in the other."""
    first, second, third = (ScriptedLLM(texts=script, can=TURNS) for script in scripts)
    inner = Agent("react", first, [search, pay, ask_user], **how)
    middle = Agent("react", second, [inner.as_tool("agent", "Does it."), search])
    tools = [middle.as_tool("agent", "Does it.")]
    return Agent("react", third, tools, rules=["(eventually pay)"], limits=Limits({"pay": 1, "agent": 4}))


@pytest.mark.parametrize("step", range(1, 18))
def test_a_run_that_pauses_within_an_inner_run_is_the_same(step: int) -> None:
    scripts = [[FIND, PAY, "paid", "again"], [ASK, FIND, "done", ASK, "so"], [ASK, ASK, "Done."]]
    whole = make_nest(*scripts).start("q")
    expected = whole.run_to_end()
    done.clear()
    iterators = [iter(script) for script in scripts]
    run = make_nest(*iterators).start("q")
    pause_after(run, step)
    try:
        made = asyncio.run(run.arun_to_end()) if step % 2 else run.run_to_end()
    except AgentPaused as paused:
        run = make_nest(*iterators).resume(paused.state)
        made = run.run_to_end()
    assert made == expected and run.inner == whole.inner and done == ["search", "pay", "search"]
    assert run.monitor.word == whole.monitor.word


def test_approvals_and_questions_within_inner_runs() -> None:
    done.clear()
    both = ("", [("search", {"query": "x"}), ("pay", {"amount": "1"})])
    scripts = [iter([both, call("ask_user", question="Which?"), "paid"]), iter([ASK, "done"]), iter([ASK, "Done."])]
    agent = make_nest(*scripts, approve=["pay"])
    with pytest.raises(AgentPaused, match=r"pay \(4.0/4.0/8.0\) waits for an approval") as paused:
        agent.run("q")
    (waiting,) = paused.value.waiting
    assert done == ["search"] and (waiting.tool, waiting.kind) == ("pay", "approval")
    run = make_nest(*scripts, approve=["pay"]).resume(paused.value.state, approved={waiting.id: True})
    with pytest.raises(AgentPaused, match=r"ask_user \(4.0/4.0/12.0\) waits for Which\?") as asked:
        run.run_to_end()
    run = make_nest(*scripts).resume(asked.value.state, results={"4.0/4.0/12.0": "This one."})
    assert run.run_to_end().answer == "Done." and done == ["search", "pay"]
    assert run.inner[0].calls == ("agent", "search", "pay", "ask_user") and run.transcript.usage.requests == 7


# -- handing over ------------------------------------------------------------------------------------------------------

OVER = call("hand_over_to_billing", request="He wants his money.")


def test_another_agent_takes_a_run_over_and_its_answer_is_the_answer() -> None:
    billing = turns(FIND, PAY, "You are paid.")
    agent = turns(
        FIND, OVER, tools=[search], hand_over={"billing": billing}, rules=["(eventually pay)"],
        limits=Limits({"search": 2}),
    )  # fmt: skip
    run = agent.start("Where is my money?")
    made = run.run_to_end()
    assert made.answer == "You are paid." and made.verify(agent.behaviour).valid
    assert [one.source for one in made.segments[-3:]] == ["environment", "forced", "forced"]
    (inner,) = run.inner
    assert inner.transcript.segments[0].text == "Where is my money?" and inner.transcript.answer == made.answer
    first = billing.llm.requests[0].messages[0].content  # type: ignore[attr-defined]
    assert "found x" in first and "He wants his money." in first
    assert list_offered(billing) == [["search", "pay"], ["pay"], ["pay"]]  # the limits of the first agent still hold
    assert made.usage.requests == 5 and len(agent.llm.requests) == 2  # type: ignore[attr-defined]


def test_a_run_is_handed_over_only_where_nothing_else_is_owed() -> None:
    alone = Agent("react", ScriptedLLM(texts=["Fine."], can=TURNS), [pay])
    agent = turns(OVER, FIND, OVER, tools=[search], hand_over={"billing": alone}, rules=["(eventually search)"])
    made = agent.run("q")
    assert list_offered(agent) == [["search"], ["search"], ["search", "hand_over_to_billing"]]
    assert made.answer == "Fine." and made.corrections[0].written == "hand_over_to_billing"
