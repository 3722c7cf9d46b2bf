"""The modular agent: a planner picks a tool and describes its task in words; another model writes its arguments.

So planning and calling are apart, each with a model of its own, as Krasser (2024) has it: a small model that was
trained on nothing but planning can plan, and never sees a signature. Three things hold whatever the models write:

- The order of the tools is a word of the rules. The planner chooses among those that the monitor allows, and where one
  alone is allowed it is not asked. Calls inside of calls count.
- Arguments keep the signature of the tool. They are data; nothing that a model writes is executed.
- What cannot be used is asked for once more with what is wrong, on record, and is then an error. Nothing is replaced.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TypeAlias

from formal_llm.agents.many import RunnableAgent
from formal_llm.agents.modular.binding import Binder
from formal_llm.agents.modular.journal import RunJournal
from formal_llm.agents.modular.modules import Module, standard_modules
from formal_llm.agents.modular.role_llms import RoleLLMs
from formal_llm.agents.modular.run import ModularRun, Progress, ProgressEvent, RunBudget
from formal_llm.agents.modular.running import ModularRunner
from formal_llm.agents.modular.scratchpad import Memory
from formal_llm.agents.modular.setup import Setup, Sizes, build_monitor, index_modules
from formal_llm.agents.monitor import Monitor
from formal_llm.automata import Limits, Source
from formal_llm.errors import NoValidPlan, WritesNoText
from formal_llm.llms.doubles import FunctionLLM, RandomLLM
from formal_llm.llms.llm import LLM
from formal_llm.llms.providers import resolve
from formal_llm.llms.text_request import TextRequest
from formal_llm.planning.json_data import JSON
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.tool import Tool

#: A provider string, a model that writes, or a function of the chat and the schema.
#: The words of random objects.
_WORDS = ("so", "then", "42", "1 + 2", "Rhine")
#: A provider string, a model, or a function of the request: it has ``messages`` and a ``schema``.
WriterLike: TypeAlias = "str | LLM | Callable[[TextRequest], Mapping[str, object] | str]"


class ModularAgent(RunnableAgent):
    """An agent of modules.

    Args:
        planner_llm: the model that plans.
        tool_llm: the model that writes the arguments of tools; that of the planner where left out.
        summary_llm: the model that summarises; that of the tools where left out.
        modules: what it may use: modules, or tools of ours; one at least is final. Search, calculate and respond where
            left out.
        rules: in which order tools may be used: any rules, or several that all have to hold. Whatever they allow, the
            last tool is a final one, and no other is. Any order where left out.
        limits: how often each may be used, and other limits.
        budget: what a run may take.
        nesting: how deep calls may be in calls.
        sizes: how long texts may grow before they are summarised.
        calls: what calls of tools may take.

    Attributes:
        setup: what it is made of.
        budget: what a run may take.

    Raises:
        ToolkitError: two tools have one name, none is final, an argument is of a kind that nothing can provide; the
            rules name what is no tool, or do not name a final one.
        NoValidPlan: no order of tools keeps the rules, or none within the budget of steps.
        WritesNoText: a model that only chooses.
    """

    def __init__(
        self,
        planner_llm: WriterLike,
        tool_llm: WriterLike | None = None,
        *,
        summary_llm: WriterLike | None = None,
        modules: Iterable[Module | Tool] | None = None,
        rules: Source | Sequence[Source] | None = None,
        limits: Limits | None = None,
        budget: RunBudget | None = None,
        nesting: int = 1,
        sizes: Sizes | None = None,
        calls: CallLimits | None = None,
    ) -> None:
        planner = resolve_writer(planner_llm)
        caller = planner if tool_llm is None else resolve_writer(tool_llm)
        summarizer = caller if summary_llm is None else resolve_writer(summary_llm)
        found = index_modules(standard_modules() if modules is None else modules)
        nests = [module.name for module in found.values() if module.nests and not module.final]
        self.setup = Setup(
            {"planner": planner, "caller": caller, "summarizer": summarizer},
            found,
            Binder([module.tool for module in found.values()], nests, nesting),
            build_monitor(found, rules, limits),
            Caller(calls or CallLimits()),
            sizes or Sizes(),
        )
        self.llm = RoleLLMs(self.setup.llms)
        self.budget = budget or RunBudget()
        _check_possible(self.setup, self.budget)

    def __repr__(self) -> str:
        return f"<ModularAgent: {', '.join(self.setup.modules)}>"

    @property
    def monitor(self) -> Monitor:
        """The rules, where a run begins."""
        return self.setup.monitor

    def run(
        self,
        request: str,
        *,
        memory: Memory | None = None,
        journal: str | os.PathLike[str] | None = None,
        budget: RunBudget | None = None,
        progress: Progress | None = None,
    ) -> ModularRun:
        """Answer a request.

        Args:
            request: what is asked.
            memory: the conversation before it: ``memory`` of the last run.
            journal: a file with all that came from outside. A run that is begun again with it continues where it broke
                off: answers of models and results of tools are taken from there.
            budget: what this run may take; that of the agent where left out.
            progress: called with each event as it happens.

        Raises:
            InvalidAnswer: what a model wrote cannot be used, twice in a row.
            AgentStopped: requests or tokens are used up; with its journal the run can continue.
            RecordError: the journal is another run's, or damaged, or cannot be written.
            NoValidPlan: as of the agent, for this budget.
            ProviderError: a model could not be asked.
        """
        with self._open_run(request, memory, journal, budget, progress) as running:
            return running.run_to_end()

    async def arun(
        self,
        request: str,
        *,
        memory: Memory | None = None,
        journal: str | os.PathLike[str] | None = None,
        budget: RunBudget | None = None,
        progress: Progress | None = None,
    ) -> ModularRun:
        """As :meth:`run`, without blocking the event loop; tools are called in threads."""
        with self._open_run(request, memory, journal, budget, progress) as running:
            return await running.arun_to_end()

    def start(self, question: str, *, name: str = "") -> ModularRunner:  # noqa: ARG002  # its events have no name
        """A run before its beginning, one among many: without a journal and an earlier conversation."""
        return ModularRunner(
            self.setup, question, Memory(), self.budget, RunJournal(None, None, question), _ignore_event
        )

    @contextmanager
    def _open_run(
        self,
        request: str,
        memory: Memory | None,
        journal: str | os.PathLike[str] | None,
        budget: RunBudget | None,
        progress: Progress | None,
    ) -> Iterator[ModularRunner]:
        memory = memory or Memory()
        if budget is not None:
            _check_possible(self.setup, budget)
        budget = budget or self.budget
        with RunJournal(
            journal, self._build_journal_key(request, memory, budget) if journal is not None else None, request
        ) as file:
            yield ModularRunner(self.setup, request, memory, budget, file, progress or _ignore_event)

    @property
    def variant(self) -> object:
        """What its runs depend on besides the question and the models: tools and their data, rules, sizes."""
        versions = [(module.name, module.tool.version) for module in self.setup.modules.values()]
        return [
            self._build_journal_key("", Memory(), self.budget),
            versions,
            asdict(self.budget),
            asdict(self.setup.sizes),
        ]

    def _build_journal_key(self, request: str, memory: Memory, budget: RunBudget) -> JSON:
        """What a journal is known by."""
        return {
            "request": request, "memory": asdict(memory), "rules": self.monitor.fingerprint, "steps": budget.steps,
            "tools": [[str(module.tool), module.guidance] for module in self.setup.modules.values()],
        }  # fmt: skip


def resolve_writer(llm: WriterLike) -> LLM:
    """The model that a provider string, a function or an object stands for, as one that writes objects or text.

    Chance (``test:random``) writes random objects.

    Raises:
        UnknownProvider: the string names no provider.
        WritesNoText: it writes nothing.
    """
    if callable(llm) and not isinstance(llm, LLM) and not hasattr(llm, "answer"):
        return FunctionLLM(llm, can={"object"}, name="function")
    found = resolve(llm)
    if isinstance(found, RandomLLM) and found.can == LLM.can:
        return RandomLLM(found.draw_seed(), can={"object"}, words=_WORDS)
    if {"object", "write"} & {*found.can}:
        return found
    raise WritesNoText(found, "plan or call tools")


def _check_possible(setup: Setup, budget: RunBudget) -> None:
    if setup.legal(setup.monitor, budget.steps):
        return
    if setup.monitor.allowed():
        raise NoValidPlan(f"no order of tools comes to an end within {budget.steps} steps; see RunBudget(steps=...)")
    why = setup.monitor.why()
    assert why is not None
    raise NoValidPlan(why.reason, limits=why.limits, constraints=why.constraints)


def _ignore_event(_: ProgressEvent) -> None:
    """Ignore events."""
