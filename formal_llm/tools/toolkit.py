"""A set of tools that is checked against a grammar before anything runs, and executes plans.

A toolkit is above the executor, which requires little of its tools (:class:`~formal_llm.tools.executor.ToolSet`). A
toolkit creates its own executor, so whatever takes a runner of plans, as :meth:`Planner.solve` does, takes a toolkit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Protocol

from formal_llm.authored.plugins import Plugins
from formal_llm.automata import CFG, PDA, Behaviour, Flowchart, Limits, Source
from formal_llm.automata.models.automaton import HasTerminals
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.rules import automaton_of
from formal_llm.automata.models.symbols import find_reachable, selection_members
from formal_llm.errors import ResourceNotFound, ToolkitError, did_you_mean
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.executor import Executor, Inputs
from formal_llm.tools.kinds import Kind, fits
from formal_llm.tools.result import Result
from formal_llm.tools.tool import Tool


class ToolMemory(Protocol):
    """What tools keep between calls: a page that was found, a connection."""

    def save(self) -> JSON:
        """Return it as JSON data."""
        ...

    def restore(self, state: JSON) -> None:
        """Take up what :meth:`save` returned.

        Raises:
            ValueError: it is damaged, or not to be had any more.
        """
        ...


class Toolkit:
    """A set of tools. Toolkits are equal if their tools and inputs are.

    Args:
        inputs: the kinds of the inputs of tasks, by terminal; default: derived from the values.
        session: saves and restores what the tools keep between calls, for runs that pause; None if they keep nothing.

    Attributes:
        left_out: tools that one might expect here and that are unavailable, each with the reason in words.

    Raises:
        ToolkitError: two tools have the same name.
    """

    def __init__(
        self, tools: Iterable[Tool], inputs: Mapping[str, Kind] | None = None, *, session: ToolMemory | None = None
    ) -> None:
        self.session = session
        self.tools: dict[str, Tool] = {}
        self.left_out: Mapping[str, str] = {}
        problems = []
        for tool in tools:
            if tool.name in self.tools:
                problems.append(f"two tools are called {tool.name}")
            self.tools[tool.name] = tool
        self.inputs = dict(inputs or {})
        problems += [f"{name} is a tool and an input" for name in self.inputs if name in self.tools]
        if problems:
            raise ToolkitError(problems)

    def __getitem__(self, name: str) -> Tool:
        return self.tools[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools.values())

    def __len__(self) -> int:
        return len(self.tools)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Toolkit):
            return NotImplemented
        return (self.tools, self.inputs) == (other.tools, other.inputs)

    def __hash__(self) -> int:
        return hash(frozenset(self.tools))

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_executor"}

    def __repr__(self) -> str:
        return f"<Toolkit: {', '.join(self.tools)}>"

    def without(self, *names: str) -> Toolkit:
        """Return the toolkit without some tools."""
        return Toolkit([tool for tool in self if tool.name not in names], self.inputs, session=self.session)

    def save_state(self) -> JSON:
        """Return the state of the tools as JSON data; None if they keep none."""
        return None if self.session is None else self.session.save()

    def restore_state(self, state: JSON) -> None:
        """Take up what :meth:`save_state` returned.

        Raises:
            ValueError: it is the state of other tools, or damaged.
        """
        if self.session is not None and state is not None:
            self.session.restore(state)
        elif state is not None:
            raise ValueError("there is a state of tools, and these tools keep none")

    # -- against a grammar --------------------------------------------------------------------------------------

    def check(
        self,
        rules: Source,
        kinds: Mapping[str, str | Kind] | None = None,
        *,
        inputs: Collection[str] | None = None,
        missing: bool | Collection[str] = False,
    ) -> None:
        """Raise an error for whatever would fail when a plan of these rules runs.

        Of grammars of nested calls, kinds and numbers of arguments are checked as well. In other plans a step finds its
        arguments among inputs and earlier results, which is checked before the first call of each plan.

        Args:
            rules: the rules.
            kinds: the kinds of what nonterminals and inputs represent, as in the table ``kinds`` of a task pack.
                Unknown kinds are not checked.
            inputs: the terminals that are inputs of tasks; default: in a grammar of nested calls those that are never
                applied to anything, elsewhere none.
            missing: the terminals that may be without a tool; True for all of them.

        Raises:
            ToolkitError: lists every problem.
        """
        problems = []
        terminals, given = _list_steps(rules)
        available = set(given if inputs is None else inputs)
        spared = terminals if missing is True else missing or ()
        for name in terminals:
            if name not in available and name not in self.tools and name not in spared:
                nearest = did_you_mean(name, self.tools)
                problems.append(f"no tool for the step {name}" + (f" (did you mean {nearest}?)" if nearest else ""))
        if isinstance(rules, CFG) and rules.order == "prefix":
            problems += self._find_wrong_kinds(rules, kinds or {})
        if problems:
            raise ToolkitError(list(dict.fromkeys(problems)))

    def _find_wrong_kinds(self, cfg: CFG, kinds: Mapping[str, str | Kind]) -> Iterator[str]:
        """Yield the problems with the kinds of a grammar of nested calls."""
        named = {str(kind): kind for tool in self for kind in (*tool.inputs, tool.output)}
        known = {
            name: named.get(kind, kind) if isinstance(kind, str) else kind
            for name, kind in (*kinds.items(), *self.inputs.items())
        }
        for name in known:
            if name not in cfg.nonterminals and name not in cfg.terminals:
                yield f"the kind of {name} is declared, but the grammar has no such symbol"
        for production in cfg.productions:
            if parse_repetition(production.head) is None:  # which applies nothing
                yield from self._find_objections(cfg, production.head, production.body, known)

    def _find_objections(
        self, cfg: CFG, head: str, body: tuple[str, ...], known: Mapping[str, str | Kind]
    ) -> Iterator[str]:
        """Yield the problems with the kinds of one production."""
        production = f"{head} -> {' '.join(body)}"
        if len(body) == 1 and head not in cfg.classes:
            inner, outer = known.get(body[0]), known.get(head)
            if inner is not None and outer is not None and not _is_fit(inner, outer):
                yield f"{production}: {head} is {_with_article(outer)}, {body[0]} is {_with_article(inner)}"
        if len(body) < 2:
            tools = [self.tools[name] for name in body if name in self.tools and not self.tools[name].inputs]
        else:
            tools = [self.tools[name] for name in _members_of_class(cfg, body[0]) if name in self.tools]
        open_ended = any(
            selection_members(symbol) is not None or parse_repetition(symbol) is not None for symbol in body[1:]
        )
        for tool in tools:
            if not open_ended and len(tool.inputs) != len(body) - 1:
                yield f"{production}: {tool} takes {len(tool.inputs)} inputs, here it gets {len(body) - 1}"
                continue
            for symbol, kind in zip(body[1:], tool.inputs, strict=False):
                if not open_ended and not _is_fit(known.get(symbol, kind), kind):
                    wanted, given = _with_article(kind), _with_article(known[symbol])
                    yield f"{production}: {tool} takes {wanted}, {symbol} is {given}"
            if not _is_fit(tool.output, known.get(head, tool.output)):
                given, wanted = _with_article(tool.output), _with_article(known[head])
                yield f"{production}: {tool} gives {given}, {head} is {wanted}"

    def limits(self, source: Source, given: Collection[str] | None = None) -> Limits:
        """Return limits of 0 for the terminals that cannot be executed, so that planning avoids them.

        Args:
            source: the rules.
            given: the available inputs: any other terminal without a tool is unavailable. By default in a grammar of
                nested calls all terminals that are never applied to anything are available, elsewhere none.

        Raises:
            ToolkitError: the source is an automaton that does not specify its terminals.
        """
        terminals, inputs = _list_steps(source)
        available = inputs if given is None else given
        return Limits({name: 0 for name in terminals if name not in self.tools and name not in available})

    # -- running ------------------------------------------------------------------------------------------------

    @cached_property
    def _executor(self) -> Executor:
        return Executor(self)

    def run(self, plan: Plan, inputs: Inputs, *, after: Result | None = None) -> Result:
        """Execute a plan with the default settings; see :meth:`Executor.run`."""
        return self._executor.run(plan, inputs, after=after)


class ToolkitMaker(Protocol):
    """A function that creates a toolkit. Packages offer theirs in the group ``formal_llm.toolkits``."""

    def __call__(self) -> Toolkit:
        """Create the toolkit."""
        ...


#: The names that the task packs of this library have for their own toolkits.
OWN_TOOLKITS = ("classical", "experts")
#: The toolkits of other packages.
PLUGINS: Plugins[Toolkit] = Plugins(
    "formal_llm.toolkits", "toolkit", "a Toolkit", lambda _, made: isinstance(made, Toolkit), lambda: OWN_TOOLKITS
)


def toolkit_named(name: str, own: Mapping[str, ToolkitMaker] | None = None) -> Toolkit:
    """Return the toolkit of a name.

    ``own`` are the toolkits of the task pack itself, which take precedence over those of other packages.

    Raises:
        ResourceNotFound: there is no toolkit of that name.
        PluginError: the toolkit of another package cannot be used.
    """
    if own and name in own:
        return own[name]()
    toolkit = PLUGINS.make(name)
    if toolkit is None:
        raise ResourceNotFound("toolkit", name, [*(own or ()), *PLUGINS.names()])
    return toolkit


def _list_steps(rules: Source) -> tuple[list[str], Collection[str]]:
    """Return the terminals of rules that are steps or inputs, and those of them that can only be inputs."""
    if isinstance(rules, (Flowchart, Behaviour)):
        rules = automaton_of(rules)
    if isinstance(rules, PDA) and rules.cfg is None:
        return [name for name in rules.terminals if name not in rules.answers], ()
    known = rules.cfg if isinstance(rules, PDA) else rules
    if not isinstance(known, HasTerminals):
        raise ToolkitError([f"a {type(known).__name__} does not say what its terminals are (attribute terminals)"])
    nested = isinstance(known, CFG) and known.order == "prefix"
    terminals = list(known.terminals)
    return terminals, set(terminals) - applied_terminals(known) if nested else ()  # type: ignore[arg-type]


def applied_terminals(cfg: CFG) -> set[str]:
    """Return the terminals that a grammar applies to something: the heads of bodies, directly or through a class."""
    return {
        name for production in cfg.productions if len(production.body) > 1 and parse_repetition(production.head) is None
        for name in _members_of_class(cfg, production.body[0])
    }  # fmt: skip


def _members_of_class(cfg: CFG, symbol: str) -> list[str]:
    """Return the terminals that a head symbol represents; none if it is more than a class."""
    found = find_reachable([symbol], lambda name: (n for p in cfg.by_head.get(name, ()) for n in p.body))
    if any(len(production.body) != 1 for name in found for production in cfg.by_head.get(name, ())):
        return []
    return [name for name in found if name in cfg.terminals]


def _is_fit(kind: str | Kind, wanted: str | Kind) -> bool:
    """Return whether values of a kind are values of another; of kinds that no tool has, the name decides."""
    return str(kind) == str(wanted) or (isinstance(kind, Kind) and isinstance(wanted, Kind) and fits(kind, wanted))


def _with_article(kind: str | Kind) -> str:
    return f"an {kind}" if str(kind)[:1].lower() in "aeiou" else f"a {kind}"
