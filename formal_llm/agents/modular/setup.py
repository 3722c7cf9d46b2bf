"""What a modular agent is made of, and which of its tools are legal at a place of its rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from formal_llm.agents.modular.binding import Binder
from formal_llm.agents.modular.modules import Module
from formal_llm.agents.modular.run import Role
from formal_llm.agents.monitor import Monitor
from formal_llm.automata import PDA, Limits, Source, constraint
from formal_llm.automata.models.formula import quote_name
from formal_llm.errors import ToolkitError, did_you_mean
from formal_llm.llms.llm import LLM
from formal_llm.tools.calling import Caller
from formal_llm.tools.tool import Tool


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long texts may grow, in characters, before they are summarised; and how much is written at once.

    Attributes:
        summary: results of modules that are summarised, and the memory of a conversation, are so from here on, to at
            most as many.
        scratchpad: from here on the first steps are shown in short.
        turns: the number of turns from which on the first turns of a conversation are kept in short.
        read: how much of a text the summarizer is shown.
        planned: how long each text of the planner may be.
        max_tokens: the most tokens of one request: enough for what may be written at once.
    """

    summary: int = 800
    scratchpad: int = 12_000
    turns: int = 6
    read: int = 20_000
    planned: int = 1_000
    max_tokens: int = 2048


@dataclass(frozen=True)
class Setup:
    """What a modular agent is made of.

    Attributes:
        llms: who plans, calls and summarises.
        modules: what it may use, by name.
        binder: what their arguments may be.
        monitor: the rules, where a run begins.
        caller: calls tools.
        sizes: how long texts may grow.
    """

    llms: Mapping[Role, LLM]
    modules: Mapping[str, Module]
    binder: Binder
    monitor: Monitor
    caller: Caller
    sizes: Sizes

    def legal(self, monitor: Monitor, left: int) -> tuple[str, ...]:
        """The tools that may be chosen at a place, in the order of the modules.

        Args:
            monitor: where the run stands.
            left: how many steps are left. A tool after which the end is farther is none of them.
        """
        return tuple(name for name, module in self.modules.items() if self._may_choose(monitor, module, left))

    def _may_choose(self, monitor: Monitor, module: Module, left: int) -> bool:
        feeders = self.binder.find_feeders(module.tool)
        if feeders is None:
            return _can_finish_within(monitor, module.name, left)
        # An argument has to be a call: that comes first.
        return any(
            _can_finish_within(monitor, name, left) and _can_finish_within(monitor.after(name), module.name, left - 1)
            for name in feeders
        )

    def inner(self, monitor: Monitor, tool: str, left: int) -> tuple[str, ...]:
        """The tools whose calls may stand as arguments of one: exact for one argument, and else checked afterwards."""
        nests = [module.name for module in self.modules.values() if module.nests]
        if self.binder.depth > 1 or len(self.modules[tool].tool.signature.parameters) > 1:
            return tuple(nests)
        return tuple(
            name
            for name in nests
            if _can_finish_within(monitor, name, left) and _can_finish_within(monitor.after(name), tool, left - 1)
        )


def index_modules(modules: Iterable[Module | Tool]) -> dict[str, Module]:
    """Modules by name; a tool alone is a module without words of its own.

    Raises:
        ToolkitError: two have one name.
    """
    found: dict[str, Module] = {}
    for one in modules:
        module = one if isinstance(one, Module) else Module(one)
        if module.name in found:
            raise ToolkitError([f"two tools are called {module.name}"])
        found[module.name] = module
    return found


def build_monitor(
    modules: Mapping[str, Module], rules: Source | Sequence[Source] | None, limits: Limits | None
) -> Monitor:
    """The rules for these modules: those that are given, and that a run ends with a final module and not before.

    Raises:
        ToolkitError: no module is final; the rules name what is no tool, or do not name a final one.
    """
    final = [module.name for module in modules.values() if module.final]
    if not final:
        raise ToolkitError(["no module is final, so no run could end; add respond()"])
    given = [] if rules is None else list(rules) if isinstance(rules, Sequence) else [rules]
    problems = []
    for rule in given:
        names = Monitor(rule).names
        for name in names:
            if name not in modules:
                near = did_you_mean(name, modules)
                hint = f" (did you mean {near}?)" if near else ""
                problems.append(f"the rules name {name}, which is no tool{hint}")
        if not set(names) & set(final):
            problems.append(f"the rules do not name {' or '.join(final)}, so no run could end")
    if problems:
        raise ToolkitError(list(dict.fromkeys(problems)))
    return Monitor([*given, _require_final_end(list(modules), final)], limits=limits)


def _require_final_end(names: Sequence[str], final: Sequence[str]) -> PDA:
    """Any tools that are not final, and then a final one."""
    ends = f"(or {' '.join(map(quote_name, final))})"
    others = [quote_name(name) for name in names if name not in final]
    text = f"(until (or {' '.join(others)}) {ends})" if others else ends
    return constraint(text, names, name="the answer comes last")


def _can_finish_within(monitor: Monitor, name: str, left: int) -> bool:
    """Whether a tool may come next, and the end within the steps that are left."""
    found = monitor.allowed().get(name)
    return found is not None and left >= 1 and (found.shortest is None or found.shortest < left)
