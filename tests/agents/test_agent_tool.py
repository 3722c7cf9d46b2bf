"""Agents as tools of others: whatever both models call, the rules of both are kept, and no call is made twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Limits
from formal_llm.agents import Agent
from formal_llm.agents.acting import NO_TOOL
from formal_llm.agents.happenings import Called, Ended, Happening, Received
from formal_llm.errors import AgentPaused, AgentStopped, AutomatonError, LLMError, Pending, WritingError
from formal_llm.llms.text_doubles import RandomTextLLM, RandomTurnLLM, ScriptedTurnLLM
from formal_llm.planning import Budget
from formal_llm.planning.plans.usage import Usage
from formal_llm.tools import tool
from tests.agents.chats import words
from tests.strategies import examples

done: list[str] = []


@tool("search", deterministic=False)
def search(query: str) -> str:
    """Searches."""
    done.append("search")
    return f"found {query}"


@tool("pay", deterministic=False)
def pay(amount: str) -> str:
    """Pays."""
    done.append("pay")
    return f"paid {amount}"


@tool("ask_user", deterministic=False)
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
        llm = RandomTurnLLM() if native else RandomTextLLM(0, MARKED)
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


def list_calls(seen: list[Happening]) -> list[str]:
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
        one.llm = RandomTurnLLM(number, LIES, lies=lies) if native else RandomTextLLM(number, MARKED)
    seen: list[Happening] = []
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
