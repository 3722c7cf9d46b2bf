"""The counts of requests in the book: each row of the table is run with scripted models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from formal_llm.agents import Agent, Conversation, Transcript
from formal_llm.agents.run_events import Requested, RunEvent, RunEventCallback
from formal_llm.llms.doubles import TURNS, ScriptedLLM
from formal_llm.tools import tool

PAGE = Path(__file__).parents[2] / "docs/howto/published-agents.md"
ROW = re.compile(r"^\| (`[^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


@tool
def search(query: str) -> str:
    """Searches."""
    return f"found {query}"


CALL = ("search", {"query": "x"})
#: For each agent the turns of a round, and those behind the last one.
ROUNDS: dict[str, tuple[Sequence[object], Sequence[object]]] = {
    "react": ([("", [CALL])], ["a"]),
    "react-5": ([("", [CALL])], ["a"]),
    "reflexion": ([("", [CALL])], ["a", "Right.", "a"]),
    "reflexion-2-3": ([("", [CALL])], ["a", "Right.", "a"]),
    "pass": ([("", [CALL, CALL]), "a summary"], ["a"]),
    "pass-5": ([("", [CALL, CALL]), "a summary"], ["a"]),
    "pass-no-summarizer": ([("", [CALL, CALL])], ["a"]),
    "chat-bot": ([("", [CALL])], ["a"]),
}
ACT = "[Action] search [Action Input] x"
ROUND, END = f"[Thought] t {ACT}\n", "[Final Thought] f [Answer] a"
TRIED = ["[Final Thought] f [Proposed Answer] a", "Right.", "[Reflection] r [Answer] a"]
TEXTS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "direct": ([], ["[Answer] a"]),
    "chain-of-thought": ([], ["[Thought] t [Answer] a"]),
    "react": ([ROUND], [END]),
    "react-5": ([ROUND], [END]),
    "react-ablated": ([ROUND], ["[Final Thought] [Answer] a"]),
    "reflexion": ([ROUND], TRIED),
    "reflexion-2-3": ([ROUND], TRIED),
    "pass": ([f"[Thought] t {ACT} {ACT}\n", "a summary"], [END]),
    "pass-5": ([f"[Thought] t {ACT} {ACT}\n", "a summary"], [END]),
    "pass-no-summarizer": ([f"[Thought] t {ACT} {ACT}\n"], [END]),
    "chat-bot": ([ROUND], ["[Final Response] a"]),
    "chat-bot-endless": ([" hello"], [" hello"]),
}


def read_table() -> dict[str, tuple[str, str]]:
    """The counts in the book, with native calls and with texts, by the names of agents."""
    return {
        name: (native.strip(), text.strip())
        for names, _, native, text in ROW.findall(PAGE.read_text(encoding="utf-8"))
        for name in re.findall(r"`([^`]+)`", names)
    }


def evaluate(cell: str, rounds: int) -> int | None:
    """The number of requests that a cell states; None where there is none."""
    if cell == "–":
        return None
    found = re.fullmatch(r"(?:(\d*)k(?: \+ )?)?(\d*)", cell)
    assert found is not None, cell
    return (int(found[1] or 1) * rounds if "k" in cell else 0) + int(found[2] or 0)


def run_native(name: str, rounds: int, watch: RunEventCallback) -> Transcript:
    each, end = ROUNDS.get(name, ([], [("", [CALL] * rounds), "a"]))
    llm = ScriptedLLM([1] * rounds, [*each] * rounds + [*end], can=TURNS)
    return Agent(name, llm, [search], on_event=watch).run("q")


def run_texts(name: str, rounds: int, watch: RunEventCallback) -> Transcript:
    plan = "".join(f"[Plan] p [Action Label] #E{number} {ACT}\n" for number in range(1, rounds + 1))
    each, end = TEXTS.get(name, ([], [plan, "a"]))
    llm = ScriptedLLM([1] * rounds, [*each] * rounds + [*end], can={"choose", "write"})
    agent = Agent(name, llm, [search], on_event=watch)
    if not agent.behaviour.endless:
        return agent.run("q")
    talk = Conversation(agent)
    talk.start()
    made = [talk.say("more") for _ in range(rounds)][-1]
    talk.close()
    return made


def test_each_agent_of_the_book_is_tried() -> None:
    table = read_table()
    assert {name for name, (native, _) in table.items() if native != "–"} == {*ROUNDS, "rewoo"}
    assert {*table} == {*TEXTS, "rewoo"}


@pytest.mark.parametrize("rounds", [1, 2, 3])
@pytest.mark.parametrize("name", sorted([*TEXTS, "rewoo"]))
def test_the_counts_of_the_book_are_those_of_runs(name: str, rounds: int) -> None:
    for cell, run in zip(read_table()[name], (run_native, run_texts), strict=True):
        if (expected := evaluate(cell, rounds)) is not None:
            events: list[RunEvent] = []
            made = run(name, rounds, events.append)
            assert made.corrections == () and sum(isinstance(event, Requested) for event in events) == expected
