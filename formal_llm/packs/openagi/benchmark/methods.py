"""The ways of planning that the benchmark compares.

- ``zero``, ``few``: the paper's prompts. The model writes steps in free text, which are read into a chain of tools.
- ``constrained``: tool names forced one by one, each question offering all tools and to stop. So the text is always a
  list of tools, and nothing sees to it that they fit together: the paper's baseline of forced names without automaton.
- ``formal``: the planner, which asks only for what can still become a valid plan.

A method makes an attempt for each plan that is asked for; whether it is valid is verified afterwards, alike for all.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Literal

from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan
from formal_llm.llms.doubles import RandomLLM
from formal_llm.llms.generation import Generated, Messages, TextLLM
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Question
from formal_llm.packs.openagi.benchmark.attempts import Assignment, Attempt, PlanKey
from formal_llm.packs.openagi.benchmark.conditions import Method
from formal_llm.packs.openagi.benchmark.forced import force
from formal_llm.packs.openagi.benchmark.reading import ToolText, read_steps
from formal_llm.planning.drivers.batch import Outcome


def why_not(method: Method, llm: LLM) -> str:
    """Why a method does not apply to an LLM; empty where it does."""
    if method in ("zero", "few") and writer(llm, ()) is None:
        return "it writes no free text"
    return ""


def make(method: Method, assigned: Assignment) -> None:
    """Make an attempt for each key."""
    if method == "formal":
        _formal(assigned)
    elif method == "constrained":
        force(assigned)
    else:
        _written(method, assigned)


# -- free text ---------------------------------------------------------------------------------------------------------


#: The most steps that chance writes.
_MOST = 5


class ChanceWriter:
    """Writes a random list of different tools in random order: what chance alone would plan in free text.

    Args:
        llm: draws.
        tools: the tools.
    """

    def __init__(self, llm: RandomLLM, tools: Sequence[ToolText]) -> None:
        self._llm = llm
        self._tools = tuple(tools)
        self._lock = threading.Lock()

    def generate(
        self,
        messages: Messages,  # noqa: ARG002  # chance reads nothing
        *,
        max_tokens: int = 512,  # noqa: ARG002
        stop: Sequence[str] = (),  # noqa: ARG002
        temperature: float = 0.0,  # noqa: ARG002
    ) -> Generated:
        """A random list of tools, as steps."""
        left = [tool.label for tool in self._tools]
        with self._lock:
            chosen = [left.pop(self._drawn(left) - 1) for _ in range(self._drawn(left[:_MOST]))]
        return Generated("\n".join(f"Step {place}: Use {label}" for place, label in enumerate(chosen, 1)))

    def _drawn(self, options: Sequence[str]) -> int:
        return self._llm.choose(Question("", options)).number


def writer(llm: LLM, tools: Sequence[ToolText]) -> TextLLM | None:
    """Who writes free text for an LLM: itself; chance for ``test:random``; None for one that writes none."""
    inner: Any = getattr(llm, "llm", llm)  # behind what records its answers
    if isinstance(inner, TextLLM):
        return inner
    return ChanceWriter(inner, tools) if isinstance(inner, RandomLLM) else None


def _written(method: Literal["zero", "few"], assigned: Assignment) -> None:
    conditions = assigned.conditions
    who = writer(assigned.llm, conditions.tools)
    if who is None:
        raise TypeError("this LLM writes no free text")

    def write(key: PlanKey) -> Generated:
        return who.generate(
            conditions.prompt(method, key.task),
            max_tokens=conditions.max_tokens,
            stop=("Problem:",),
            temperature=conditions.temperature,
        )

    for key, written in assigned.each(write):
        if isinstance(written, Exception):
            assigned.note(key, written)
            continue
        steps = read_steps(written.text)
        # Matched here, in one thread: an encoder is not for many.
        chain = [name for name in conditions.matcher.match(steps) if name is not None]
        assigned.note(key, Attempt(conditions.word(chain), tuple(steps), 1, written.usage, written.text))


# -- ours --------------------------------------------------------------------------------------------------------------


def _formal(assigned: Assignment) -> None:
    conditions = assigned.conditions
    planner = conditions.pack.planner(assigned.llm, tries=conditions.tries)

    def on_outcome(outcome: Outcome) -> None:
        used = outcome.usage
        if outcome.plan is not None:
            steps = tuple(str(step) for step in outcome.plan.steps)
            made: Attempt | Exception = Attempt(outcome.plan.word, steps, used.questions, used.token_usage)
        elif isinstance(outcome.error, (NoValidPlan, InvalidAnswer, BudgetExceeded)):
            made = Attempt((), (), used.questions, used.token_usage, error=str(outcome.error))
        else:
            assert outcome.error is not None
            made = outcome.error
        assigned.note(assigned.jobs[outcome.index], made)

    tasks = [conditions.tasks[key.task] for key in assigned.jobs]
    planner.plan_all(tasks, concurrency=assigned.concurrency, on_outcome=on_outcome)
