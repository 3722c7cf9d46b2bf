"""Many runs: driven as plans are, on record, gone on with after any end."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from formal_llm.agents import Agent, Segment
from formal_llm.agents.decoding import steps
from formal_llm.agents.decoding.writer import Writer
from formal_llm.agents.many import AgentRun, AgentRunBatch, outcome_from_data, outcome_to_data
from formal_llm.agents.tools import Corpus, agent_toolkit, build_corpus
from formal_llm.agents.tools.articles import JsonArticles
from formal_llm.authored import find
from formal_llm.errors import AgentStopped, Cancelled, LLMError, RecordError
from formal_llm.llms.doubles import TEXTS, FunctionLLM, RandomLLM
from formal_llm.llms.question import Answer
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning import Budget
from tests.agents.chats import Chats

QUESTIONS = [f"question {number}" for number in range(8)]


def echo(asked: TextRequest) -> str:
    """The last line of the question."""
    return " so"


def test_each_question_has_its_outcome_whatever_drives_them() -> None:
    for concurrency in (1, 3):
        agent = Agent("react", RandomLLM(1, can=TEXTS), agent_toolkit)
        found = agent.run_all(QUESTIONS, concurrency=concurrency)
        assert [one.index for one in found] == list(range(8))
        assert all(one.unwrap().verify(agent.behaviour).valid for one in found)
        assert [one.transcript.segments[0].text for one in found] == QUESTIONS


class Together(Chats):
    """Answers many questions together."""

    at_once = 64

    def __init__(self) -> None:
        super().__init__(1, ["x "])
        self.most = 0

    def answer_all(self, questions):  # type: ignore[no-untyped-def]
        self.most = max(self.most, len(questions))
        return super().answer_all(questions)


def test_a_model_that_answers_together_is_asked_together() -> None:
    llm = Together()
    Agent("react", llm, agent_toolkit).run_all(QUESTIONS)
    assert llm.most == len(QUESTIONS)


class Awaited(Chats):
    """A model that is awaited."""

    def __init__(self) -> None:
        super().__init__(1, ["x "])
        self.now = self.most = 0

    async def answer(self, question):  # type: ignore[no-untyped-def]
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return Chats.answer(self, question)


def test_a_model_that_is_awaited_is_awaited() -> None:
    llm = Awaited()
    found = Agent("react", llm, agent_toolkit).run_all(QUESTIONS)
    assert llm.most > 1 and all(one.error is None for one in found)


def test_what_goes_wrong_in_one_run_is_its_own() -> None:
    def text(asked: TextRequest) -> str:
        if "question 3" in asked.prompt:
            raise LLMError("the line is dead")
        return " so"

    found = Agent("direct", FunctionLLM(text, can=TEXTS, choose=lambda _: 1)).run_all(QUESTIONS)
    assert [one.index for one in found if one.error is not None] == [3]
    with pytest.raises(LLMError, match="the line is dead"):
        found[3].unwrap()
    assert [one.state for one in found[3].transcript.segments] == ["Ques"]


def test_a_budget_for_all() -> None:
    found = Agent("direct", FunctionLLM(echo, can=TEXTS, choose=lambda _: 1)).run_all(
        QUESTIONS, budget=Budget(requests=3)
    )
    errors = [one.error for one in found]
    assert [error is None for error in errors] == [True] * 3 + [False] * 5
    assert isinstance(errors[-1], AgentStopped) and errors[-1].shared
    with pytest.raises(ValueError, match="prices"):
        Agent("direct", FunctionLLM(echo, can=TEXTS, choose=lambda _: 1)).run_all(QUESTIONS, budget=Budget(cost=1))


def test_no_thread_is_left_where_the_run_is_ended() -> None:
    before = threading.active_count()
    runs = AgentRunBatch(Agent("direct", FunctionLLM(echo, can=TEXTS, choose=lambda _: 1)), QUESTIONS)
    under_way = [one for one, _ in zip(runs, range(4), strict=False)]
    assert all(one.question is not None for one in under_way)
    runs.close()
    assert all(isinstance(one.outcome.error, Cancelled) for one in under_way if one.outcome is not None)
    for thread in threading.enumerate():
        if thread.name.startswith("formal-llm-run"):
            thread.join(5)
    assert threading.active_count() <= before


def test_an_error_that_is_given_in_place_of_an_answer_ends_the_run() -> None:
    run = AgentRun(Agent("direct", FunctionLLM(echo, can=TEXTS, choose=lambda _: 1)), 0, "q")
    assert isinstance(run.question, TextRequest)
    run.take_answer(LLMError("no"))
    assert run.question is None and run.outcome is not None and str(run.outcome.error) == "no"
    whole = AgentRun(Agent("direct", Chats(1, ["x"])), 0, "q")
    whole.take_answer(Answer((), text="yes", usage=TokenUsage(1, 2, 3), ended=""))
    assert whole.outcome is not None and whole.outcome.unwrap().answer == "yes"


def test_a_text_that_is_wanted_piece_by_piece_comes_in_one_piece_or_as_an_error() -> None:
    seen: list[object] = []

    class Telling(Writer):
        """Asks for pieces, and again after an error."""

        def steps(self, *_, **__):  # type: ignore[no-untyped-def]
            asked = TextRequest("say")
            try:
                seen.append((yield steps.Telling(asked)))
            except LLMError as error:
                seen.append(error)
            seen.append((yield steps.Telling(asked)))
            seen.append((yield steps.MORE))
            yield Segment("Ans", "yes")

    run = AgentRun(
        Agent("direct", FunctionLLM(echo, can=TEXTS, choose=lambda _: 1), writer=lambda *_: Telling()), 0, "q"
    )
    error = LLMError("no")
    run.take_answer(error)
    assert seen == [error]
    run.take_answer(Answer((), text="yes", usage=TokenUsage(1, 2, 3), ended=""))
    assert seen[1] == "yes" and isinstance(seen[2], Answer) and seen[2].usage == TokenUsage(1, 2, 3)
    assert run.outcome is not None and run.outcome.unwrap().answer == "yes"


def test_a_results_file_belongs_to_one_agent_and_its_questions(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "r.jsonl"
    asked: list[str] = []

    def text(request: TextRequest) -> str:
        asked.append(request.prompt)
        return " so"

    agent = Agent("direct", FunctionLLM(text, can=TEXTS, choose=lambda _: 1))
    first = agent.run_all(QUESTIONS[:3], results=file)
    again = agent.run_all(QUESTIONS, results=file)
    assert [one.transcript for one in again][:3] == [one.transcript for one in first]
    assert len(asked) == len(QUESTIONS)
    with pytest.raises(RecordError, match="another task 0"):
        agent.run_all(["other"], results=file)
    with pytest.raises(RecordError, match="belongs to another run"):
        Agent("chain-of-thought", FunctionLLM(text, can=TEXTS, choose=lambda _: 1)).run_all(QUESTIONS, results=file)
    with pytest.raises(RecordError, match="belongs to another run"):
        Agent("direct", FunctionLLM(text, can=TEXTS, choose=lambda _: 1), examples=()).run_all(QUESTIONS, results=file)


def test_another_corpus_or_another_tool_is_another_run(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "r.jsonl"
    corpora = []
    for name, text in (("one", "The Rhine is a river."), ("two", "The Rhine is a long river.")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"title": "Rhine", "text": text}) + "\n")
        build_corpus(JsonArticles(tmp_path / f"{name}.jsonl"), tmp_path / f"{name}.sqlite")
        corpora.append(Corpus(tmp_path / f"{name}.sqlite"))

    def agent(place: int, spec: str | Path = "react") -> Agent:
        return Agent(spec, RandomLLM(1, can=TEXTS), lambda: agent_toolkit(corpora[place]))

    agent(0).run_all(QUESTIONS[:2], results=file)
    agent(0).run_all(QUESTIONS[:2], results=file)
    with pytest.raises(RecordError, match="belongs to another run"):
        agent(1).run_all(QUESTIONS[:2], results=file)
    shipped = find("agents", "react", (".agent",)).read_text()
    (tmp_path / "react.agent").write_text(shipped.replace("[Thought]", "[Idea]"))
    with pytest.raises(RecordError, match="belongs to another run"):
        agent(0, tmp_path / "react.agent").run_all(QUESTIONS[:2], results=file)


KILLED = """
import os, signal, sys
from formal_llm.agents import Agent
from formal_llm.llms.doubles import TEXTS, FunctionLLM

def text(asked):
    open(sys.argv[2], "a").write("x")
    if os.path.getsize(sys.argv[2]) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return " so"

agent = Agent("direct", FunctionLLM(text, can=TEXTS))
for one in agent.run_all([f"question {n}" for n in range(8)], results=sys.argv[1]):
    assert one.unwrap().answer == "so"
"""


def test_a_run_that_was_killed_goes_on(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file, count = tmp_path / "r.jsonl", tmp_path / "count"
    command = [sys.executable, "-c", KILLED, file, count]
    codes = [subprocess.run(command, check=False, timeout=60).returncode for _ in range(2)]
    assert codes == [-signal.SIGKILL, 0]
    assert count.stat().st_size == 9  # eight questions, and the one that was under way once more
    assert len(file.read_text().splitlines()) == 8


KILLED_WITHIN = """
import os, signal, sys
from formal_llm.agents import Agent
from formal_llm.agents.tools import Corpus, agent_toolkit, build_corpus
from formal_llm.agents.tools.articles import JsonArticles
from formal_llm.authored import find
from formal_llm.llms.doubles import TEXTS, FunctionLLM

count = open(sys.argv[2], "a")

def asked(what):
    count.write("x")
    count.flush()
    if os.path.getsize(sys.argv[2]) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    return what

def choose(question):
    texts = [option.text for option in question.options]
    return asked(texts.index("search") + 1 if "search" in texts else 1)

def text(request):
    return asked("Danube" if "Input" in request.prompt[-30:] else "so")

llm = FunctionLLM(text, can=TEXTS, choose=choose)
kind, agents = sys.argv[4], {}
agent = Agent("react", llm, agent_toolkit, times=2)
if kind == "votes":
    from formal_llm.agents.voting import SelfConsistency
    found = SelfConsistency(agent, 2).run_all(["a?", "b?"], results=__import__("pathlib").Path(sys.argv[1]))
    assert [one.error for one in found] == [None] * 2
else:
    found = agent.run_all(["a?", "b?", "c?"], results=sys.argv[1])
    assert [one.error for one in found] == [None] * 3
"""


@pytest.mark.parametrize("kind", ["runs", "votes"])
def test_what_was_answered_before_the_kill_is_not_asked_again(tmp_path: Path, kind: str) -> None:
    def asked(name: str, *kills: int) -> int:
        count = tmp_path / f"{name}.count"
        codes = []
        for at in (*kills, 10_000):
            command = [sys.executable, "-c", KILLED_WITHIN, tmp_path / name, count, str(at), kind]
            codes.append(subprocess.run(command, check=False, timeout=60).returncode)
        assert codes == [-signal.SIGKILL] * len(kills) + [0]
        return count.stat().st_size

    whole = asked("whole")
    assert whole > 20
    # Only what was under way at each kill is asked once more.
    assert asked("killed", 8, 15) == whole + 2
    assert not list(tmp_path.glob("*.journal"))
    lines = [path.read_text().splitlines() for path in sorted(tmp_path.glob("*")) if path.suffix != ".count"]
    assert len({len(one) for one in lines}) == 1


def test_lines_of_a_results_file_are_read_back() -> None:
    agent = Agent("react", RandomLLM(5, can=TEXTS), agent_toolkit)
    for outcome in agent.run_all(["a?", "b?", "c?"]):
        line = outcome_to_data(outcome)
        assert line is not None
        back = outcome_from_data(json.loads(json.dumps(line)))
        assert (back.transcript, back.calls, back.index) == (outcome.transcript, outcome.calls, outcome.index)
