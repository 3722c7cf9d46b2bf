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

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, Literal

from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan
from formal_llm.llms.doubles import FunctionLLM, RandomLLM
from formal_llm.llms.driven import resumed
from formal_llm.llms.llm import LLM, attempts
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage
from formal_llm.packs.openagi.benchmark.conditions import CHOICE, STOP, Assignment, Attempt, Conditions, Method, PlanKey
from formal_llm.packs.openagi.benchmark.reading import ToolText, read_steps
from formal_llm.planning.drivers.batch import Outcome
from formal_llm.planning.drivers.planner import Search
from formal_llm.planning.drivers.streams import stream_outcomes
from formal_llm.planning.walks.budget import QUESTIONS, Budget


def why_not(method: Method, llm: LLM) -> str:
    """Return why a method does not apply to an LLM; empty if it does."""
    if method == "draft":
        writes = "write" in llm.can
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


def get_writer(llm: LLM, tools: Sequence[ToolText]) -> LLM | None:
    """Return the writer of free text for an LLM: itself, chance for ``test:random``, or None if it writes none."""
    if "write" in llm.can:
        return llm
    inner = getattr(llm, "llm", llm)  # without the wrapper that records its answers
    if not isinstance(inner, RandomLLM):
        return None
    labels = [tool.label for tool in tools]

    def write_steps(_: TextRequest) -> str:
        """Write a random list of at most five different tools, as steps: free text written by chance."""
        remaining = list(labels)
        count = inner.ask(Question("", remaining[:5])).number
        chosen = [remaining.pop(inner.ask(Question("", remaining)).number - 1) for _ in range(count)]
        return "\n".join(f"Step {place}: Use {label}" for place, label in enumerate(chosen, 1))

    return FunctionLLM(write_steps, can={"write"})


class _Job:
    """A plan under construction, as a driver sees it: a question comes out, an answer goes in."""

    def __init__(self, key: PlanKey, steps: Generator[Question, Answer, Any]) -> None:
        self.key = key
        self.question: Question | None = None
        self.outcome: Any = None
        self._steps = steps
        self._advance(None)

    def take_answer(self, given: Answer | Exception) -> None:
        """Take the answer to the question, or the exception that was raised instead."""
        self._advance(given)

    def _advance(self, given: Answer | Exception | None) -> None:
        try:
            self.question = resumed(self._steps, given)
        except StopIteration as end:
            self.question, self.outcome = None, end.value
        except Exception as error:  # passed on, and raised at the end of the run
            self.question, self.outcome = None, error


class _Jobs:
    """The jobs of an assignment, one by one; see :class:`~formal_llm.planning.drivers.batch.RunBatch`."""

    def __init__(self, llm: LLM, jobs: Iterable[_Job]) -> None:
        self.llm, self._jobs = llm, jobs

    def __iter__(self) -> Iterator[_Job]:
        return iter(self._jobs)

    def record_outcome(self, ended: _Job, /) -> _Job:
        """The job itself."""
        return ended


def _write_attempts(method: Literal["zero", "few"], assigned: Assignment) -> None:
    conditions = assigned.conditions
    text_writer = get_writer(assigned.llm, conditions.tools)
    if text_writer is None:
        raise TypeError("this LLM writes no free text")

    def write_text(key: PlanKey) -> Generator[Question, Answer, Answer]:
        return (yield TextRequest(
            conditions.build_prompt(method, key.task),
            max_tokens=conditions.max_tokens,
            stop=("Problem:",),
            temperature=conditions.temperature,
            walk=f"{key.task}:{key.repeat}",
        ))  # fmt: skip

    jobs = _Jobs(text_writer, (_Job(key, write_text(key)) for key in assigned.jobs))
    for job in stream_outcomes(jobs, assigned.concurrency):
        if isinstance(job.outcome, Exception):
            assigned.note(job.key, job.outcome)
            continue
        text: Answer = job.outcome
        steps = read_steps(text.text)
        # Matched here, in one thread: an encoder is not thread-safe.
        chain = [name for name in conditions.matcher.match(steps) if name is not None]
        assigned.note(job.key, Attempt(conditions.build_word(chain), tuple(steps), 1, text.usage, text.text))


# -- names forced one by one -------------------------------------------------------------------------------------------


class _Chain:
    """A chain of tools under construction."""

    def __init__(self, key: PlanKey, conditions: Conditions) -> None:
        self.key = key
        self._conditions = conditions

    def build_chain(self) -> Generator[Question, Answer, Attempt]:
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
    chains = (_Job(key, _Chain(key, assigned.conditions).build_chain()) for key in assigned.jobs)
    for job in stream_outcomes(_Jobs(assigned.llm, chains), assigned.concurrency):
        assigned.note(job.key, job.outcome)


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
