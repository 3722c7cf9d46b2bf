"""The assignments of the benchmark's methods, the conditions that all methods share, and their attempts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, TypeVar, get_args

from formal_llm.llms.llm import LLM
from formal_llm.llms.usage import TokenUsage
from formal_llm.packs.openagi.benchmark.reading import Matcher, ToolText, chain_word
from formal_llm.planning import Task, TaskPack

#: The planning methods; :mod:`~formal_llm.packs.openagi.benchmark.methods` describes them.
Method: TypeAlias = Literal["zero", "few", "typed", "formal", "rltf", "draft", "look"]
METHODS: tuple[Method, ...] = get_args(Method)
#: The paper's prompts (Li et al. 2024, appendix A.3; there "Setp" in place of "Step").
ZERO = "Problem: {task}.\nWhat is its solution? Use 'Step' to mark."
FEW = "{examples}Problem: {task}.\nSolution:"
#: The text before the prompts if some of the grammar's tools are missing, which the model could not know otherwise.
TOOLS = "The tools are: {tools}.\n\n"
CHOICE = "Problem: {task}\n\nSteps so far:\n{steps}\n\nWhat is the next step?\n\n{options}\n\nAnswer with one number."
STOP = "Stop: the plan is finished"
T = TypeVar("T")


@dataclass(frozen=True)
class Conditions:
    """The conditions that all methods share.

    Attributes:
        tasks: the tasks by number, with limits of 0 for missing tools.
        tools: the available tools, whose names the method "typed" offers; none in packs of other rules.
        every: all tools of the grammar, any of which a step in free text may mean.
        matcher: determines which tool a step means.
        examples: worked examples: by task number, the tools in the order of their execution.
        temperature, max_tokens: the settings for free text.
        tries: how often to ask one question until its answer is legal.
        max_typed: the maximum length of a chain of typed names; 10 in OpenAGI's scripts.
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
    max_typed: int = 10

    @property
    def identity(self) -> dict[str, object]:
        """The factors besides the model, the tasks and the tools that determine the attempts, as JSON data."""
        return {
            "matcher": self.matcher.identity,
            "examples": {str(number): list(tools) for number, tools in self.examples.items()},
            "prompts": [ZERO, FEW, TOOLS, CHOICE, STOP],
            **{name: getattr(self, name) for name in ("temperature", "max_tokens", "tries", "max_typed")},
        }

    def get_task(self, number: int) -> Task:
        """Return the task with a number; that of the pack if the conditions have none."""
        return self.tasks[number] if number in self.tasks else self.pack.tasks[number]

    def build_word(self, chain: Sequence[str]) -> tuple[str, ...]:
        """Build the word of a chain of tools."""
        terminals = {name: entry["terminal"] for name, entry in self.pack.data["inputs"].items()}
        return chain_word(chain, self.every, {self.pack.data["kinds"][one]: one for one in terminals.values()})

    def build_prompt(self, method: Literal["zero", "few"], number: int) -> str:
        """Build the prompt of a task. An example is never the task itself."""
        about = self.get_task(number)
        task = about.description.rstrip(".")
        missing = len(self.tools) < len(self.every)
        tools_note = TOOLS.format(tools=", ".join(tool.label for tool in self.tools)) if missing else ""
        if method == "zero":
            return tools_note + ZERO.format(task=task)
        sentence = about.original or about.description
        examples = "".join(
            self._format_example(place, tools)
            for place, tools in self.examples.items()
            if self.pack.tasks[place].description != sentence
        )
        return tools_note + FEW.format(examples=examples, task=task)

    def _format_example(self, number: int, tools: Sequence[str]) -> str:
        steps = "\n".join(f"Step {place}: Use {self.pack.cfg.label(name)};" for place, name in enumerate(tools, 1))
        return f"Problem: {self.pack.tasks[number].description.rstrip('.')}.\nSolution:\n{steps}\n\n"


class PlanKey(NamedTuple):
    """The key of a plan: its LLM, its method, the number of its task, and its repeat, from 0."""

    llm: str
    method: Method
    task: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """A plan that a method produced, valid or not.

    Attributes:
        word: its word; empty if there is none.
        steps: its steps as written, in the order of their execution.
        questions: the number of questions answered for it.
        usage: the tokens used for them.
        text: the free text that the model wrote.
        error: why there is no word, if the method itself failed.
    """

    word: tuple[str, ...]
    steps: tuple[str, ...] = ()
    questions: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The work of a method.

    Attributes:
        jobs: the plans to make, all by this LLM and one method.
        conditions: the conditions that all methods share.
        note: called in this thread with the outcome of each job as it completes: an attempt, or an error that may be
            temporary (the provider could not be reached); an exception that it raises ends the run.
        concurrency: the maximum number of concurrent jobs; by default as suits the LLM.
    """

    llm: LLM
    jobs: Sequence[PlanKey]
    conditions: Conditions
    note: Callable[[PlanKey, Attempt | Exception], None]
    concurrency: int | None = None
