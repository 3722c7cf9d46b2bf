"""What all methods of the benchmark share: the tasks, the tools, the prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from formal_llm.packs.openagi.benchmark.reading import Matcher, ToolText, chain_word
from formal_llm.planning import Task, TaskPack

#: The ways of planning; :mod:`~formal_llm.packs.openagi.benchmark.methods` says what they are.
Method: TypeAlias = Literal["zero", "few", "constrained", "formal"]
METHODS: tuple[Method, ...] = get_args(Method)
#: The paper's prompts (Li et al. 2024, appendix A.3; there "Setp" in place of "Step").
ZERO = "Problem: {task}.\nWhat is its solution? Use 'Step' to mark."
FEW = "{examples}Problem: {task}.\nSolution:"
#: What stands before them where some of the grammar's tools are not there, which nobody could know otherwise.
TOOLS = "The tools are: {tools}.\n\n"
CHOICE = "Problem: {task}\n\nSteps so far:\n{steps}\n\nWhat is the next step?\n\n{options}\n\nAnswer with one number."
STOP = "Stop: the plan is finished"


@dataclass(frozen=True)
class Conditions:
    """What all methods share.

    Attributes:
        pack: the pack.
        tasks: the tasks by number, with limits of 0 for tools that are not there.
        tools: the tools that are there; of these the constrained method offers names.
        every: all tools of the grammar; of these a step in free text may mean any.
        matcher: tells which tool a step means.
        examples: worked examples: the number of a task, and the tools in the order in which they are carried out.
        temperature, max_tokens: for free text.
        tries: how often one question is asked until its answer is legal.
        max_chain: where a chain of forced names ends.
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

    @property
    def identity(self) -> dict[str, object]:
        """What the attempts depend on besides the model, the tasks and the tools, as JSON data."""
        return {
            "matcher": self.matcher.identity,
            "examples": {str(number): list(tools) for number, tools in self.examples.items()},
            "prompts": [ZERO, FEW, TOOLS, CHOICE, STOP],
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "tries": self.tries,
            "max_chain": self.max_chain,
        }

    def word(self, chain: Sequence[str]) -> tuple[str, ...]:
        """The word of a chain of tools."""
        terminals = {name: entry["terminal"] for name, entry in self.pack.data["inputs"].items()}
        return chain_word(chain, self.every, {self.pack.data["kinds"][t]: t for t in terminals.values()})

    def prompt(self, method: Literal["zero", "few"], number: int) -> str:
        """The prompt of a task. An example is never the task itself."""
        task = self.pack.tasks[number].description.rstrip(".")
        missing = len(self.tools) < len(self.every)
        told = TOOLS.format(tools=", ".join(tool.label for tool in self.tools)) if missing else ""
        if method == "zero":
            return told + ZERO.format(task=task)
        shown = "".join(self._example(place, tools) for place, tools in self.examples.items() if place != number)
        return told + FEW.format(examples=shown, task=task)

    def _example(self, number: int, tools: Sequence[str]) -> str:
        steps = "\n".join(f"Step {place}: Use {self.pack.cfg.label(name)};" for place, name in enumerate(tools, 1))
        return f"Problem: {self.pack.tasks[number].description.rstrip('.')}.\nSolution:\n{steps}\n\n"
