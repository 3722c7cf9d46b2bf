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
        taken = dict.fromkeys(str(kind) for tool in listed for kind in tool.inputs)
        own = {f"input_{kind}": kind for kind in kinds if kind in taken}
    clash = next((name for name in own if name in names), None)
    if clash is not None:
        raise GrammarError(f"{clash} is a tool and an input")

    kinds += [kind for kind in dict.fromkeys(own.values()) if kind not in kinds]
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    usable = _find_usable_tools(listed, set(own.values()))
    for tool in listed:
        if tool.name in usable:
            groups.setdefault((str(tool.output), tuple(map(str, tool.inputs))), []).append(tool.name)
        else:
            lacking = [str(kind) for kind in tool.inputs if str(kind) not in _find_made_kinds(listed, usable, own)]
            warnings.warn(
                f"no plan can use {tool.name}: nothing gives it a value of kind {', '.join(lacking)}",
                GrammarWarning,
                stacklevel=3,
            )
    if not groups:
        raise GrammarError(
            "no tool can be applied to the inputs", suggestion="give inputs of the kinds that tools take"
        )
    return _Grammar([*names, *own]).build_grammar(listed, groups, own, kinds, uses)


def _find_usable_tools(tools: Sequence[TypedTool], given: set[str]) -> set[str]:
    """Return the names of the tools whose inputs are all obtainable."""
    available, found = set(given), set[str]()
    while new := [t for t in tools if t.name not in found and all(str(kind) in available for kind in t.inputs)]:
        found.update(tool.name for tool in new)
        available.update(str(tool.output) for tool in new)
    return found


def _find_made_kinds(tools: Sequence[TypedTool], usable: set[str], own: Mapping[str, str]) -> set[str]:
    return {*own.values(), *(str(tool.output) for tool in tools if tool.name in usable)}


class _Grammar:
    """Builds the grammar with nonterminals whose names differ from all terminals."""

    def __init__(self, terminals: Iterable[str]) -> None:
        self._taken = set(terminals)

    def _find_free_name(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def build_grammar(
        self,
        tools: Sequence[TypedTool],
        groups: Mapping[tuple[str, tuple[str, ...]], list[str]],
        own: Mapping[str, str],
        kinds: Sequence[str],
        uses: int | None,
    ) -> CFG:
        """Build the grammar; ``groups`` are the tools by output and inputs."""
        start = self._find_free_name("plan")
        plan_of = {kind: self._find_free_name(f"{kind}_plan") for kind in dict.fromkeys(output for output, _ in groups)}
        value_of = {kind: self._find_free_name(kind) for kind in kinds}
        heads: dict[tuple[str, tuple[str, ...]], str] = {}
        classes: list[Production] = []
        for signature, members in groups.items():
            heads[signature] = members[0]
            if len(members) > 1:
                output, taken = signature
                heads[signature] = self._find_free_name(f"{'_'.join(taken) or 'nothing'}_to_{output}")
                classes += [Production(heads[signature], (name,)) for name in members]
        applied = {
            kind: [
                (heads[output, taken], *(value_of[one] for one in taken)) for output, taken in groups if output == kind
            ]
            for kind in kinds
        }
        productions = [Production(start, (plan,)) for plan in plan_of.values()]
        productions += [Production(plan, body) for kind, plan in plan_of.items() for body in applied[kind]]
        needed = {one for _, taken in groups for one in taken}
        for kind in kinds:
            if kind in needed:
                productions += [Production(value_of[kind], body) for body in applied[kind]]
                productions += [Production(value_of[kind], (name,)) for name, actual in own.items() if actual == kind]
        symbols = {tool.name: Symbol(description=getattr(tool, "description", "")) for tool in tools if tool.name in
                   {name for members in groups.values() for name in members}}  # fmt: skip
        symbols |= {
            name: Symbol(kind)
            for kind, name in (*plan_of.items(), *value_of.items())
            if kind in needed or name in plan_of.values()
        }
        used = [name for name, actual in own.items() if actual in needed]
        limits = Limits() if uses is None else Limits(dict.fromkeys(used), default=uses)
        return CFG([*productions, *classes], start, symbols, limits, "prefix")
