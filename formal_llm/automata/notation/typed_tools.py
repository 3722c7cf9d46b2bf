"""The grammar of all well-typed plans, from the signatures of tools.

A tool that converts an image into a text gives the production ``text -> captioning image``: as in OpenAGI's grammar
(Formal-LLM, arXiv 2402.00798, Eq. 3), the tool comes first and its inputs after it, so a plan's word
runs from its last step to its first. Tools with the same signature form a class.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.symbols import Production, Symbol
from formal_llm.errors import GrammarError, GrammarWarning


class TypedTool(Protocol):
    """An object with a name, input kinds and an output kind, such as :class:`formal_llm.tools.Tool`."""

    @property
    def name(self) -> str:
        """The terminal that represents it."""
        ...

    @property
    def inputs(self) -> Sequence[object]:
        """The kinds of its inputs, in order; their ``str`` is their name."""
        ...

    @property
    def output(self) -> object:
        """The kind of its output."""
        ...


def grammar_of_tools(
    tools: Iterable[TypedTool], inputs: Mapping[str, object] | None = None, *, uses: int | None = 1
) -> CFG:
    """Build the grammar of tools; see :meth:`formal_llm.automata.CFG.from_tools`."""
    listed = list(tools)
    names = [tool.name for tool in listed]
    if not listed:
        raise GrammarError("there is no tool", suggestion="give tools with at least one in it")
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise GrammarError(f"two tools are called {duplicate}")
    kinds = list(dict.fromkeys(str(kind) for tool in listed for kind in (*tool.inputs, tool.output)))
    own = {name: str(kind) for name, kind in (getattr(tools, "inputs", None) or {}).items()}
    if inputs is not None:
        own = {name: str(kind) for name, kind in inputs.items()}
    elif not own:
        wanted = {str(kind) for tool in listed for kind in tool.inputs}
        own = {f"input_{kind}": kind for kind in kinds if kind in wanted}
    clash = next((name for name in own if name in names), None)
    if clash is not None:
        raise GrammarError(f"{clash} is a tool and an input")

    kinds += [kind for kind in dict.fromkeys(own.values()) if kind not in kinds]
    usable, made = _find_usable_tools(listed, own.values())
    for tool in listed:
        if tool not in usable:
            lacking = ", ".join(str(kind) for kind in tool.inputs if str(kind) not in made)
            message = f"no plan can use {tool.name}: nothing gives it a value of kind {lacking}"
            warnings.warn(message, GrammarWarning, stacklevel=3)
    if not usable:
        raise GrammarError(
            "no tool can be applied to the inputs", suggestion="give inputs of the kinds that tools take"
        )
    limits = Limits()
    if uses is not None:
        needed = {str(kind) for tool in usable for kind in tool.inputs}
        limits = Limits({name: None for name, kind in own.items() if kind in needed}, default=uses)
    return _build_grammar(usable, own, kinds, {*names, *own}, limits)


def _build_grammar(
    tools: Sequence[TypedTool], own: Mapping[str, str], kinds: Sequence[str], taken: set[str], limits: Limits
) -> CFG:
    """Build the grammar of tools that can all be used; ``taken`` are the names that no nonterminal may have."""

    def find_free_name(name: str) -> str:
        """The name of a nonterminal, which differs from all others."""
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for tool in tools:
        groups.setdefault((str(tool.output), tuple(map(str, tool.inputs))), []).append(tool.name)
    start = find_free_name("plan")
    plan_of = {kind: find_free_name(f"{kind}_plan") for kind in dict.fromkeys(output for output, _ in groups)}
    value_of = {kind: find_free_name(kind) for kind in kinds}
    bodies: dict[str, list[tuple[str, ...]]] = {kind: [] for kind in kinds}
    classes: list[Production] = []
    for (output, inner), members in groups.items():
        head = members[0]
        if len(members) > 1:
            head = find_free_name(f"{'_'.join(inner) or 'nothing'}_to_{output}")
            classes += [Production(head, (name,)) for name in members]
        bodies[output].append((head, *(value_of[kind] for kind in inner)))
    productions = [Production(start, (plan,)) for plan in plan_of.values()]
    productions += [Production(plan, body) for kind, plan in plan_of.items() for body in bodies[kind]]
    needed = [kind for kind in kinds if any(kind in inner for _, inner in groups)]
    for kind in needed:
        productions += [Production(value_of[kind], body) for body in bodies[kind]]
        productions += [Production(value_of[kind], (name,)) for name, actual in own.items() if actual == kind]
    symbols = {tool.name: Symbol(description=getattr(tool, "description", "")) for tool in tools}
    symbols |= {name: Symbol(kind) for kind, name in (*plan_of.items(), *((kind, value_of[kind]) for kind in needed))}
    return CFG([*productions, *classes], start, symbols, limits, "prefix")


def _find_usable_tools(tools: Sequence[TypedTool], given: Iterable[str]) -> tuple[list[TypedTool], set[str]]:
    """Return the tools whose inputs are all obtainable, in their order, and the kinds that are obtainable."""
    available, count = set(given), -1
    while count < len(available):
        count = len(available)
        usable = [tool for tool in tools if available.issuperset(map(str, tool.inputs))]
        available.update(str(tool.output) for tool in usable)
    return usable, available
