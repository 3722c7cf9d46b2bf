"""The planning methods that the benchmark compares.

- ``zero``, ``few``: the paper's prompts. The model writes steps in free text, which are parsed into a chain of tools.
- ``typed``: OpenAGI's constrained decoding (Ge et al. 2023; the prefix trie of its scripts), the baseline without
    automaton. The first tool is any with one input; each further one takes the last output, and none occurs twice.
    Tools with two inputs are not in that trie, and it ignores the inputs and the goal of the task. In packs of other
    rules: the planner without lookahead, as what decodes by a grammar or looks one step ahead; a dead end ends it.
  - ``formal``: the planner, which offers only what can still become a valid plan.
  - ``rltf``: the same with the model with trained adapters.
  - ``draft``: the planner with ``search="draft"``: the model writes the whole plan; questions correct invalid parts.
  - ``look``: the planner with ``search="exact"``: one question for all steps, and the best plan by its answer.

A method makes an attempt for each requested plan; its validity is verified afterwards, in the same way for all.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Sequence
from itertools import islice
from typing import Any, Literal

from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan
from formal_llm.llms.doubles import RandomLLM
from formal_llm.llms.driven import driven, resumed
from formal_llm.llms.generation import Generated, Messages, TextLLM, Writing
from formal_llm.llms.llm import LLM, BatchLLM, answered, attempts
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.packs.openagi.benchmark.conditions import CHOICE, STOP, Assignment, Attempt, Conditions, Method, PlanKey
from formal_llm.packs.openagi.benchmark.reading import ToolText, read_steps
from formal_llm.planning.drivers.batch import Outcome
from formal_llm.planning.drivers.planner import Search
from formal_llm.planning.walks.budget import QUESTIONS, Budget


def why_not(method: Method, llm: LLM) -> str:
    """Return why a method does not apply to an LLM; empty if it does."""
    if method == "draft":
        writes = isinstance(llm, TextLLM)
    else:
        writes = method not in ("zero", "few") or get_writer(llm, ()) is not None
    return "" if writes else "it writes no free text"


def make_attempts(method: Method, assigned: Assignment) -> None:
    """Make an attempt for each key."""
    if method == "zero" or method == "few":
        _write_attempts(method, assigned)
    elif method == "typed" and assigned.conditions.tools:
        _force_names(assigned)
    else:
        _plan_formally(method, assigned)


# -- free text ---------------------------------------------------------------------------------------------------------


class ChanceWriter:
    """Writes a random list of at most five different tools: the baseline of free text written by chance."""

    def __init__(self, llm: RandomLLM, tools: Sequence[ToolText]) -> None:
        self._llm = llm
        self._labels = [tool.label for tool in tools]
        self._lock = threading.Lock()

    def generate(
        self,
        messages: Messages,  # noqa: ARG002  # chance reads nothing
        *,
        max_tokens: int = 512,  # noqa: ARG002
        stop: Sequence[str] = (),  # noqa: ARG002
        temperature: float = 0.0,  # noqa: ARG002
    ) -> Generated:
        """Write a random list of tools, as steps."""
        remaining = list(self._labels)
        with self._lock:
            chosen = [remaining.pop(self._draw_number(remaining) - 1) for _ in range(self._draw_number(remaining[:5]))]
        return Generated("\n".join(f"Step {place}: Use {label}" for place, label in enumerate(chosen, 1)))

    def _draw_number(self, options: Sequence[str]) -> int:
        return self._llm.choose(Question("", options)).number


def get_writer(llm: LLM, tools: Sequence[ToolText]) -> TextLLM | None:
    """Return the writer of free text for an LLM: itself, chance for ``test:random``, or None if it writes none."""
    inner: Any = getattr(llm, "llm", llm)  # without the wrapper that records its answers
    if isinstance(inner, TextLLM):
        return inner
    return ChanceWriter(inner, tools) if isinstance(inner, RandomLLM) else None


def _write_attempts(method: Literal["zero", "few"], assigned: Assignment) -> None:
    conditions = assigned.conditions
    text_writer = get_writer(assigned.llm, conditions.tools)
    if text_writer is None:
        raise TypeError("this LLM writes no free text")

    def make_request(key: PlanKey) -> Writing:
        return Writing(
            conditions.build_prompt(method, key.task),
            max_tokens=conditions.max_tokens,
            stop=("Problem:",),
            temperature=conditions.temperature,
            walk=f"{key.task}:{key.repeat}",
        )

    def generate_text(key: PlanKey) -> Answer:
        return answered(text_writer, make_request(key))  # type: ignore[arg-type]  # it need not choose

    if isinstance(text_writer, BatchLLM) and getattr(text_writer, "takes_text", False):
        texts = text_writer.choose_many([make_request(key) for key in assigned.jobs])
        written: Iterable[tuple[PlanKey, Answer | Exception]] = zip(assigned.jobs, texts, strict=True)
    else:
        written = assigned.run_jobs(generate_text)
    for key, text in written:
        if isinstance(text, Exception):
            assigned.note(key, text)
            continue
        steps = read_steps(text.text)
        # Matched here, in one thread: an encoder is not thread-safe.
        chain = [name for name in conditions.matcher.match(steps) if name is not None]
        assigned.note(key, Attempt(conditions.build_word(chain), tuple(steps), 1, text.usage, text.text))


# -- names forced one by one -------------------------------------------------------------------------------------------


class _Chain:
    """A chain of tools under construction: one question at a time by :meth:`receive_answer`, or all of them driven."""

    def __init__(self, key: PlanKey, conditions: Conditions) -> None:
        self.key = key
        self.outcome: Attempt | Exception | None = None
        self.question: Question | None = None
        self._conditions = conditions
        self.steps = self._build_chain()

    def receive_answer(self, given: Answer | Exception | None) -> None:
        """Receive the answer to the question, or the exception raised instead; None to begin."""
        try:
            self.question = resumed(self.steps, given)
        except StopIteration as end:
            self.question, self.outcome = None, end.value
        except Exception as error:
            self.question, self.outcome = None, error

    def _build_chain(self) -> Generator[Question, Answer, Attempt]:
        conditions = self._conditions
        chain: list[ToolText] = []
        usage, questions = TokenUsage(), 0
        while len(chain) < conditions.max_typed and (offered := self._list_options(chain)):
            try:
                answer = yield from attempts(self._make_question(chain, offered), conditions.tries)
            except InvalidAnswer as error:
                usage += error.usage or TokenUsage()
                return Attempt((), _format_labels(chain), questions, usage, error=f"no legal answer: {error.problem}")
            usage, questions = usage + answer.usage, questions + 1
            if answer.number > len(offered):
                break
            chain.append(offered[answer.number - 1])
        return Attempt(conditions.build_word([tool.name for tool in chain]), _format_labels(chain), questions, usage)

    def _list_options(self, chain: Sequence[ToolText]) -> Sequence[ToolText]:
        single = [tool for tool in self._conditions.tools if len(tool.kinds) == 1]
        return [tool for tool in single if tool.kinds == (chain[-1].gives,) and tool not in chain] if chain else single

    def _make_question(self, chain: Sequence[ToolText], offered: Sequence[ToolText]) -> Question:
        conditions = self._conditions
        task = conditions.get_task(self.key.task).description
        texts = [*(tool.label for tool in offered), *([STOP] if chain else [])]
        steps = "\n".join(f"Step {place}: {label}" for place, label in enumerate(_format_labels(chain), 1)) or "none"
        options = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
        prompt = CHOICE.format(task=task, steps=steps, options=options)
        return Question(prompt, texts, task=task, walk=f"{self.key.task}:{self.key.repeat}")


def _format_labels(chain: Sequence[ToolText]) -> tuple[str, ...]:
    return tuple(f"Use {tool.label}" for tool in chain)


def _force_names(assigned: Assignment) -> None:
    llm = assigned.llm
    if isinstance(llm, BatchLLM):
        _ask_together(llm, assigned)
        return

    def finish_chain(key: PlanKey) -> Attempt:
        return driven(_Chain(key, assigned.conditions).steps, llm.choose)

    for key, outcome in assigned.run_jobs(finish_chain):
        assigned.note(key, outcome)


def _ask_together(llm: BatchLLM, assigned: Assignment) -> None:
    """Ask the questions of many chains together, round by round."""
    waiting = iter(assigned.jobs)
    many = assigned.concurrency or getattr(llm, "together", None) or 64
    under_way: list[_Chain] = []

    def start_chains() -> list[_Chain]:
        started = [_Chain(key, assigned.conditions) for key in islice(waiting, many - len(under_way))]
        for chain in started:
            chain.receive_answer(None)
        return started

    while under_way := under_way + start_chains():
        open_ = [(chain, chain.question) for chain in under_way if chain.question is not None]
        answers: Sequence[Answer | Exception]
        try:
            answers = llm.choose_many([question for _, question in open_]) if open_ else ()
        except Exception as error:  # each chain asks again, or ends with the error
            answers = [error] * len(open_)
        for (chain, _), answer in zip(open_, answers, strict=True):
            chain.receive_answer(answer)
        for chain in under_way:
            if chain.outcome is not None:
                assigned.note(chain.key, chain.outcome)
        under_way = [chain for chain in under_way if chain.outcome is None]


def _plan_formally(method: Method, assigned: Assignment) -> None:
    conditions = assigned.conditions
    searches: dict[Method, Search] = {"draft": "draft", "look": "exact"}
    planner = conditions.pack.planner(
        assigned.llm, tries=conditions.tries, search=searches.get(method, "greedy"),
        lookahead="off" if method == "typed" else "on",
        budget=Budget(QUESTIONS, backtracks=0 if method == "typed" else None),
    )  # fmt: skip

    def on_outcome(outcome: Outcome) -> None:
        used = outcome.usage
        if outcome.plan is not None:
            steps = tuple(map(str, outcome.plan.steps))
            asked = used.questions + used.drafts
            attempt: Attempt | Exception = Attempt(outcome.plan.word, steps, asked, used.token_usage)
        elif isinstance(outcome.error, (NoValidPlan, InvalidAnswer, BudgetExceeded)):
            dead_end = isinstance(outcome.error, BudgetExceeded) and outcome.error.kind == "backtracks"
            error = "a dead end: no plan can be finished from there" if dead_end else str(outcome.error)
            attempt = Attempt((), (), used.questions, used.token_usage, error=error)
        else:
            assert outcome.error is not None
            attempt = outcome.error
        assigned.note(assigned.jobs[outcome.index], attempt)

    tasks = [conditions.tasks[key.task] for key in assigned.jobs]
    planner.plan_all(tasks, concurrency=assigned.concurrency, on_outcome=on_outcome)
