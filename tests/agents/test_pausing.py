"""Runs that pause and are resumed elsewhere: the same transcript, no question and no call twice."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Limits
from formal_llm.agents import Agent, Transcript
from formal_llm.agents.pausing import PausedRun
from formal_llm.agents.run_events import Called, Ended, Received, Wrote
from formal_llm.agents.running import Run
from formal_llm.agents.tools import agent_toolkit
from formal_llm.errors import AgentPaused, LLMError, Pending, RecordError, ToolkitError, WritingError
from formal_llm.llms.doubles import TURNS, RandomLLM, ScriptedLLM
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.tools import tool
from tests.agents.chats import CHATS, Chats, words
from tests.strategies import examples

done: list[str] = []


@tool("search")
def search(query: str) -> str:
    """Searches."""
    done.append(f"search {query}")
    return f"found {query}"


@tool("add", pure=True)
def add(a: int, b: int = 1) -> int:
    """Adds."""
    done.append(f"add {a} {b}")
    return a + b


@tool("pay")
def pay(amount: int) -> str:
    """Pays."""
    done.append(f"pay {amount}")
    return f"paid {amount}"


@tool("ask_user")
def ask_user(question: str) -> str:
    """Asks the user."""
    raise Pending(question)


TOOLS = [search, add, pay]


class Remembered(LLM):
    """A model whose answer depends on what it reads alone, and that counts what it is asked."""

    def __init__(self, make: Callable[[int], LLM], seed: int) -> None:
        self._make, self._seed = make, seed
        self.can = make(0).can
        self.asked: list[str] = []
        self.fails, self._failed = False, False

    def answer(self, question: Question) -> Answer:
        if self.fails and not self._failed:
            self._failed = True
            raise LLMError("the provider gave no answer")
        self._failed = False
        content = json.dumps(question.content)
        self.asked.append(content)
        return self._make(crc32(f"{self._seed} {content}".encode())).ask(question)


NATIVE = ["react", "rewoo", "pass", "reflexion-2-3"]
MARKED = words(["[Thought]", "[Action]", "[Action Input]", "[Final Thought]", "[Answer]", "[Plan]"], ["search", "add"])


_made: dict[tuple[str, bool], Agent] = {}


def make_agent(name: str, native: bool, seed: int) -> tuple[Agent, Remembered]:
    """An agent, whose rules are compiled once, and a model for one run."""
    llm = Remembered(partial(RandomLLM, can=TURNS) if native else partial(RandomLLM, can=CHATS, words=MARKED), seed)
    if (name, native) not in _made:
        _made[name, native] = Agent(name, llm, TOOLS, limits=Limits({"search": 3, "add": 3, "pay": 1}))
    return _made[name, native], llm


def run_through(run: Run) -> Transcript | str:
    try:
        return run.run_to_end()
    except WritingError as error:
        return str(error)


@given(st.sampled_from(NATIVE), st.booleans(), st.integers(0, 10**6))
@examples(40)
def test_a_run_that_pauses_at_every_step_is_the_same(name: str, native: bool, seed: int) -> None:
    """At each place where it may, the run pauses, and another model with the same memory goes on."""
    done.clear()
    agent, llm = make_agent(name, native, seed)
    expected, acted, asked = run_through(agent.start("q", llm=llm)), [*done], [*llm.asked]
    done.clear()
    agent, llm = make_agent(name, native, seed)
    run, pauses = agent.start("q", llm=llm), 0
    run.pause()
    while True:
        try:
            made = run_through(run)
        except AgentPaused as paused:
            pauses += 1
            state = PausedRun.from_json(paused.state, agent.monitor.fingerprint)
            assert state.to_json() == paused.state
            before, (_, llm) = llm, make_agent(name, native, seed)
            llm.asked = before.asked
            run = agent.resume(paused.state, llm=llm)
            pause_after(run, 1)
        else:
            break
    # Calls of one turn are carried out at once, in any order.
    assert made == expected and sorted(done) == sorted(acted) and llm.asked == asked
    assert pauses >= 1


def pause_after(run: Any, steps: int) -> None:
    """Have a run pause after so many requests or calls."""
    seen = 0
    before = run._on_event

    def count(event: object) -> None:
        nonlocal seen
        seen += isinstance(event, Received) or (isinstance(event, Called) and event.call.tool != "LLM")
        if seen >= steps:
            run._pausing = True
        if before is not None:
            before(event)

    run._on_event = count


@given(st.sampled_from(NATIVE), st.booleans(), st.integers(0, 10**6))
@examples(25)
def test_a_run_that_fails_at_every_request_is_continued_where_it_failed(name: str, native: bool, seed: int) -> None:
    """The provider gives no answer to each second request: no tool is called twice, and the run keeps the rules."""
    done.clear()
    agent, llm = make_agent(name, native, seed)
    llm.fails = True
    run = agent.start("q", llm=llm)
    while True:
        try:
            made = run.run_to_end()
            break
        except LLMError:
            run = agent.resume(run.pause(), llm=llm)
        except WritingError:
            made = run.transcript
            break
    agent.monitor.after_all(agent.rules.list_events(made.segments))
    carried = [call for call in run.calls if call.ok and call.tool != "LLM"]
    assert len(done) == len(carried)


def turns(*script: Any, **how: Any) -> Agent:
    return Agent("react", ScriptedLLM(texts=script, can=TURNS), [*TOOLS, ask_user], **how)


def resume_elsewhere(state: str, queue: Any) -> None:
    agent = turns("It is done.")
    queue.put(agent.resume(state).run_to_end().to_jsonl())


def test_another_process_resumes_it() -> None:
    done.clear()
    run = turns(("", [("pay", {"amount": 3})])).start("q")
    pause_after(run, 2)
    with pytest.raises(AgentPaused) as paused:
        run.run_to_end()
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=resume_elsewhere, args=(paused.value.state, queue))
    process.start()
    made = Transcript.from_jsonl(queue.get(timeout=60))
    process.join()
    assert made.answer == "It is done." and made.text_of("Obs") == "paid 3" and done == ["pay 3"]
    assert made.usage.requests == 2


def test_a_person_approves_a_call_or_declines_it() -> None:
    done.clear()
    both = ("", [("add", {"a": 1, "b": 1}), ("pay", {"amount": 3})])
    agent = turns(both, "done", approve=["pay"])
    with pytest.raises(AgentPaused, match=r"pay \(8.0\) waits for an approval") as paused:
        agent.run("q")
    (waiting,) = paused.value.waiting
    assert (waiting.kind, waiting.tool, waiting.input) == ("approval", "pay", '{"amount": 3}')
    assert done == ["add 1 1"]  # what came before was carried out
    with pytest.raises(AgentPaused):  # nobody has decided
        agent.resume(paused.value.state).run_to_end()
    assert agent.resume(paused.value.state, approved={waiting.id: True}).run_to_end().answer == "done"
    assert done == ["add 1 1", "pay 3"]
    declined = turns("ok", approve=["pay"]).resume(paused.value.state, approved={waiting.id: "too much"})
    made = declined.run_to_end()
    assert made.text_of("Obs") == "Error: a person declined this call: too much" and made.answer == "ok"
    assert done == ["add 1 1", "pay 3"] and [call.ok for call in declined.calls] == [True, False]
    with pytest.raises(RecordError, match=r"does not wait for the approval of '9.9'; it waits for 8.0 \(approval\)"):
        agent.resume(paused.value.state, approved={"9.9": True})
    with pytest.raises(RecordError, match="does not wait for the result of"):
        agent.resume(paused.value.state, results={waiting.id: "x"})
    with pytest.raises(ToolkitError, match=r"unknown tool whose calls are to be approved: pai \(did you mean pay\?\)"):
        turns(approve=["pai"])


def test_a_question_to_the_user_and_a_tool_that_takes_hours() -> None:
    done.clear()
    agent = turns(("", [("ask_user", {"question": "Which river?"})]), "The Danube.")
    with pytest.raises(AgentPaused, match=r"ask_user \(4.0\) waits for Which river\?") as paused:
        asyncio.run(agent.arun("q"))
    made = agent.resume(paused.value.state, results={"4.0": "the Danube"}).run_to_end()
    assert made.text_of("Obs") == "the Danube" and made.answer == "The Danube."
    # In a plan of several calls those beside it are carried out, and not again.
    plan = ("", [("add", {"a": 1, "b": 2}), ("ask_user", {"question": "?"}), ("add", {"a": 2, "b": 2})])
    rewoo = Agent("rewoo", ScriptedLLM(texts=[plan, "solved"], can=TURNS), [*TOOLS, ask_user])
    with pytest.raises(AgentPaused) as paused:
        rewoo.run("q")
    assert sorted(done) == ["add 1 2", "add 2 2"]
    run = rewoo.resume(paused.value.state, results={paused.value.waiting[0].id: "yes"})
    assert run.run_to_end().answer == "solved" and [call.output for call in run.calls] == ["3", "yes", "4"]
    assert sorted(done) == ["add 1 2", "add 2 2"]


def test_what_tools_keep_is_kept() -> None:
    script = [("", [("search", {"query": "Danube"})]), ("", [("lookup", {"keyword": "river"})]),
              ("", [("lookup", {"keyword": "river"})]), "done"]  # fmt: skip
    whole = Agent("react", ScriptedLLM(texts=script, can=TURNS), agent_toolkit).run("q")
    run = Agent("react", ScriptedLLM(texts=script[:2], can=TURNS), agent_toolkit).start("q")
    pause_after(run, 4)
    with pytest.raises(AgentPaused) as paused:
        run.run_to_end()
    other = Agent("react", ScriptedLLM(texts=script[2:], can=TURNS), agent_toolkit)
    assert other.resume(paused.value.state).run_to_end().segments == whole.segments
    bare = Agent("react", ScriptedLLM(texts=script[2:], can=TURNS), lambda: agent_toolkit().without())
    damaged = json.loads(paused.value.state)
    damaged["tools"]["page"] = "No such page"
    with pytest.raises(RecordError, match="has no page 'No such page' any more"):
        bare.resume(json.dumps(damaged))


def test_a_state_of_other_rules_or_a_damaged_one_is_refused() -> None:
    agent = turns("x")
    state = agent.start("q").pause()
    with pytest.raises(RecordError, match="paused under rules with the fingerprint"):
        turns(rules=["(eventually add)"]).resume(state)
    with pytest.raises(RecordError, match="is damaged"):
        agent.resume("{")
    data = json.loads(state)
    for name in data:
        with pytest.raises(RecordError):
            agent.resume(json.dumps({key: value for key, value in data.items() if key != name}))
    other = {"waiting": [["1", "add"]], "notes": []}
    with pytest.raises(RecordError):
        agent.resume(json.dumps({**data, "writer": other, "carried": {"x": {}}}))
    assert agent.resume(state).run_to_end().answer == "x"


def test_a_run_in_another_thread_pauses() -> None:
    begun, go = threading.Event(), threading.Event()

    @tool("wait")
    def wait() -> str:
        """Waits."""
        begun.set()
        go.wait(10)
        return "waited"

    run = Agent("react", ScriptedLLM(texts=[("", [("wait", {})]), "done"], can=TURNS), [wait]).start("q")
    errors: list[BaseException] = []

    def drive() -> None:
        try:
            run.run_to_end()
        except AgentPaused as paused:
            errors.append(paused)

    thread = threading.Thread(target=drive)
    thread.start()
    begun.wait(10)
    run.pause()
    go.set()
    thread.join(10)
    (paused,) = errors
    assert isinstance(paused, AgentPaused) and paused.transcript.text_of("Obs") == "waited"


def test_events_come_as_they_happen() -> None:
    agent = turns(("I add.", [("add", {"a": 1, "b": 2})]), "It is three.")

    async def follow() -> list[object]:
        return [event async for event in agent.stream("q")]

    events = asyncio.run(follow())
    assert isinstance(events[-1], Ended) and events[-1].transcript.answer == "It is three."
    kinds = [type(event).__name__ for event in events]
    assert (
        kinds.count("Requested") == kinds.count("Received") == 2
        and kinds.count("Calling") == kinds.count("Called") == 1
    )
    assert len([event for event in events if isinstance(event, Wrote) and event.state == "Ans"]) > 3

    async def stop_early() -> object:
        stream = turns("x").stream("q")
        first = await anext(stream)
        await stream.aclose()
        return first

    assert type(asyncio.run(stop_early())).__name__ == "Began"

    async def fail() -> None:
        async for _ in turns(("", [("rm", {})]), rules=[]).stream("q"):
            pass

    with pytest.raises(Exception, match="the script ended"):
        asyncio.run(fail())


def test_usage_of_runs_that_fail_is_whole() -> None:
    class Empty(ScriptedLLM):
        def answer(self, question: Question) -> Answer:
            return Answer((), text="", usage=TokenUsage(1, 10, 1))

    run = Agent("react", Empty(can=TURNS), TOOLS).start("q")
    with pytest.raises(WritingError):
        run.run_to_end()
    assert run.transcript.usage.requests == 5 and run.transcript.usage.input_tokens == 50


def test_chats_pause_too() -> None:
    run = Agent("react", Chats(3, ["x "]), [search]).start("q")
    run.pause()
    with pytest.raises(AgentPaused):
        run.run_to_end()
