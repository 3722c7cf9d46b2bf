"""Tool names forced one by one: each question offers all tools, and to stop, whatever was chosen before.

So what comes out is always a list of tools, and nothing sees to it that they fit together: the paper's baseline of
constrained generation without an automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import islice

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.llm import BatchLLM, attempts
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.packs.openagi.benchmark.attempts import Assignment, Attempt, PlanKey
from formal_llm.packs.openagi.benchmark.conditions import CHOICE, STOP, Conditions
from formal_llm.packs.openagi.benchmark.reading import ToolText


class _Chain:
    """A chain of tools on its way: a question at a time."""

    def __init__(self, key: PlanKey, conditions: Conditions) -> None:
        self.key = key
        self.outcome: Attempt | Exception | None = None
        self.question: Question | None = None
        self._conditions = conditions
        self._steps = self._walk()
        self._advance(lambda: next(self._steps))

    def give(self, given: Answer | Exception) -> None:
        """Take the answer to the question, or what was raised instead of one."""
        if isinstance(given, Exception):
            self._advance(lambda: self._steps.throw(given))
        else:
            self._advance(lambda: self._steps.send(given))

    def _advance(self, move: Callable[[], Question]) -> None:
        try:
            self.question = move()
        except StopIteration as end:
            self.question, self.outcome = None, end.value
        except Exception as error:
            self.question, self.outcome = None, error

    def _walk(self) -> Generator[Question, Answer, Attempt]:
        conditions = self._conditions
        chain: list[ToolText] = []
        usage, questions = TokenUsage(), 0
        while len(chain) < conditions.max_chain:
            try:
                answer = yield from attempts(self._asked(chain), conditions.tries)
            except InvalidAnswer as error:
                usage += error.usage or TokenUsage()
                return Attempt((), _labels(chain), questions, usage, error=f"no legal answer: {error.problem}")
            usage, questions = usage + answer.usage, questions + 1
            if answer.number > len(conditions.tools):
                break
            chain.append(conditions.tools[answer.number - 1])
        return Attempt(conditions.word([tool.name for tool in chain]), _labels(chain), questions, usage)

    def _asked(self, chain: Sequence[ToolText]) -> Question:
        conditions = self._conditions
        task = conditions.pack.tasks[self.key.task].description
        texts = [*(tool.label for tool in conditions.tools), STOP]
        steps = "\n".join(f"Step {place}: {label}" for place, label in enumerate(_labels(chain), 1)) or "none"
        options = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
        prompt = CHOICE.format(task=task, steps=steps, options=options)
        return Question(prompt, texts, task=task, walk=f"{self.key.task}:{self.key.repeat}")


def _labels(chain: Sequence[ToolText]) -> tuple[str, ...]:
    return tuple(f"Use {tool.label}" for tool in chain)


def force(assigned: Assignment) -> None:
    """Make a chain for each key."""
    llm = assigned.llm
    if isinstance(llm, BatchLLM):
        _together(llm, assigned)
        return

    def finish(key: PlanKey) -> Attempt:
        chain = _Chain(key, assigned.conditions)
        while chain.question is not None:
            try:
                given: Answer | Exception = llm.choose(chain.question)
            except Exception as error:  # the chain asks again, or ends with it
                given = error
            chain.give(given)
        if isinstance(chain.outcome, Exception):
            raise chain.outcome
        assert chain.outcome is not None
        return chain.outcome

    for key, outcome in assigned.each(finish):
        assigned.note(key, outcome)


def _together(llm: BatchLLM, assigned: Assignment) -> None:
    """Ask the questions of many chains together, round after round."""
    waiting, many = iter(assigned.jobs), assigned.concurrency or 64
    under_way: list[_Chain] = []
    while under_way := under_way + [_Chain(key, assigned.conditions) for key in islice(waiting, many - len(under_way))]:
        answers: Sequence[Answer | Exception]
        try:
            answers = llm.choose_many([chain.question for chain in under_way if chain.question is not None])
        except Exception as error:  # each chain asks again, or ends with it
            answers = [error] * len(under_way)
        for chain, answer in zip(under_way, answers, strict=True):
            chain.give(answer)
            if chain.outcome is not None:
                assigned.note(chain.key, chain.outcome)
        under_way = [chain for chain in under_way if chain.outcome is None]
