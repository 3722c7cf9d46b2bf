"""What a method of the benchmark is asked to do, under conditions that all methods share, and what it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias, TypeVar, get_args

from formal_llm.llms.llm import LLM, AsyncLLM
from formal_llm.llms.usage import TokenUsage
from formal_llm.packs.openagi.benchmark.reading import Matcher, ToolText, chain_word
from formal_llm.planning import Task, TaskPack

#: The ways of planning; :mod:`~formal_llm.packs.openagi.benchmark.methods` says what they are.
Method: TypeAlias = Literal["zero", "few", "names", "typed", "formal", "rltf", "draft"]
METHODS: tuple[Method, ...] = get_args(Method)
#: The paper's prompts (Li et al. 2024, appendix A.3; there "Setp" in place of "Step").
ZERO = "Problem: {task}.\nWhat is its solution? Use 'Step' to mark."
FEW = "{examples}Problem: {task}.\nSolution:"
#: What stands before them where some of the grammar's tools are not there, which nobody could know otherwise.
TOOLS = "The tools are: {tools}.\n\n"
CHOICE = "Problem: {task}\n\nSteps so far:\n{steps}\n\nWhat is the next step?\n\n{options}\n\nAnswer with one number."
STOP = "Stop: the plan is finished"
T = TypeVar("T")


@dataclass(frozen=True)
class Conditions:
    """What all methods share.

    Attributes:
        pack: the pack.
        tasks: the tasks by number, with limits of 0 for tools that are not there.
        tools: the tools that are there; of these the methods "names" and "typed" offer names.
        every: all tools of the grammar; of these a step in free text may mean any.
        matcher: tells which tool a step means.
        examples: worked examples: by the number of the task, the tools in the order in which they are carried out.
        temperature, max_tokens: for free text.
        tries: how often one question is asked until its answer is legal.
        max_chain: where a chain of names ends.
        max_typed: where a chain of typed names ends; OpenAGI's scripts say 10.
    """

    pack: TaskPack
    tasks: Mapping[int, Task]
    tools: tuple[ToolText, ...]
    every: tuple[ToolText, ...]
    matcher: Matcher
    examples: Mapping[int, tuple[str, ...]]
    temperature: float = 0.0
    max_tokens: int = 1024
    tries: int = 3
    max_chain: int = 15
    max_typed: int = 10

    @property
    def identity(self) -> dict[str, object]:
        """What the attempts depend on besides the model, the tasks and the tools, as JSON data."""
        return {
            "matcher": self.matcher.identity,
            "examples": {str(number): list(tools) for number, tools in self.examples.items()},
            "prompts": [ZERO, FEW, TOOLS, CHOICE, STOP],
            **{name: getattr(self, name) for name in ("temperature", "max_tokens", "tries", "max_chain", "max_typed")},
        }

    def task(self, number: int) -> Task:
        """The task of a number; that of the pack where the conditions have none."""
        return self.tasks[number] if number in self.tasks else self.pack.tasks[number]

    def word(self, chain: Sequence[str]) -> tuple[str, ...]:
        """The word of a chain of tools."""
        terminals = {name: entry["terminal"] for name, entry in self.pack.data["inputs"].items()}
        return chain_word(chain, self.every, {self.pack.data["kinds"][t]: t for t in terminals.values()})

    def prompt(self, method: Literal["zero", "few"], number: int) -> str:
        """The prompt of a task. An example is never the task itself."""
        about = self.task(number)
        task = about.description.rstrip(".")
        missing = len(self.tools) < len(self.every)
        told = TOOLS.format(tools=", ".join(tool.label for tool in self.tools)) if missing else ""
        if method == "zero":
            return told + ZERO.format(task=task)
        sentence = about.original or about.description
        shown = "".join(
            self._example(place, tools)
            for place, tools in self.examples.items()
            if self.pack.tasks[place].description != sentence
        )
        return told + FEW.format(examples=shown, task=task)

    def _example(self, number: int, tools: Sequence[str]) -> str:
        steps = "\n".join(f"Step {place}: Use {self.pack.cfg.label(name)};" for place, name in enumerate(tools, 1))
        return f"Problem: {self.pack.tasks[number].description.rstrip('.')}.\nSolution:\n{steps}\n\n"


class PlanKey(NamedTuple):
    """Which plan it is: whose, by which method, for the task of which number, and which of the repeats, from 0."""

    llm: str
    method: Method
    task: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """A plan as a method made it, valid or not.

    Attributes:
        word: its word; empty where there is none.
        steps: its steps in the order in which they are carried out, as they were written.
        questions: how many questions were answered for it.
        usage: what they cost.
        text: what the model wrote, of free text.
        error: why there is no word, where the method itself failed.
    """

    word: tuple[str, ...]
    steps: tuple[str, ...] = ()
    questions: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a method has to do.

    Attributes:
        llm: who answers.
        jobs: the plans to be made; all of this LLM and one method.
        conditions: what all methods share.
        note: called in this thread with what became of each job, as it comes: an attempt, or what went wrong and may
            pass (the provider could not be reached); what it raises ends the run.
        concurrency: how many jobs are under way at most; as suits the LLM where left out.
    """

    llm: LLM
    jobs: Sequence[PlanKey]
    conditions: Conditions
    note: Callable[[PlanKey, Attempt | Exception], None]
    concurrency: int | None = None

    def each(self, work: Callable[[PlanKey], T]) -> Iterator[tuple[PlanKey, T | Exception]]:
        """What the work gives for each job, or what it raises, as it comes.

        Several jobs are under way at once, in threads, for an LLM that waits for others; one for any other.
        """

        def done(key: PlanKey) -> T | Exception:
            try:
                return work(key)
            except Exception as error:  # handed on, and raised at the end of the run
                return error

        many = self.concurrency or (8 if isinstance(getattr(self.llm, "llm", self.llm), AsyncLLM) else 1)
        if many <= 1:
            for key in self.jobs:
                yield key, done(key)
            return
        pool = ThreadPoolExecutor(many, thread_name_prefix="formal-llm-bench")
        waiting = iter(self.jobs)
        try:
            under_way: dict[Future[T | Exception], PlanKey] = {}
            while under_way := under_way | {
                pool.submit(done, key): key for key in islice(waiting, many - len(under_way))
            }:
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    yield under_way.pop(future), future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
