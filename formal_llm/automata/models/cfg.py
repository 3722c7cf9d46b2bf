"""Context-free grammars.

A grammar G = (V, T, P, S): nonterminals V, terminals T, productions P, a start symbol S (Hopcroft, Motwani and Ullman,
chapter 5). Here it is an immutable value that also carries what people read, labels and descriptions, and what a plan
may use up, its limits.

A body may hold a *selection* ``some(a, b, c)``: any non-empty subset of the terminals, in that order. It is sugar for
the unambiguous right-linear productions that :attr:`CFG.expanded` adds. The notation also has repetitions and groups,
``X*`` or ``(a b | c){1,3}``: its reader makes each a nonterminal with plain productions
(:mod:`formal_llm.automata.models.repetition`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from formal_llm.automata.models.frozen import FrozenDict, PickledByFields, Written
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.quantities import is_finite
from formal_llm.automata.models.repetition import is_sugar, parse_repetition, write_group
from formal_llm.automata.models.symbols import (
    ORDERS,
    Order,
    Production,
    Symbol,
    expand_selections,
    find_derivable_heads,
    find_reachable,
    selection_members,
)
from formal_llm.errors import AutomatonError, GrammarError, unknown
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Picture

if TYPE_CHECKING:
    from formal_llm.automata.notation.typed_tools import TypedTool

#: What a symbol's name may look like: no blanks, quotes, bars, commas, parentheses, equals or comment signs, no arrow.
NAME = r'(?!%)(?:(?!->|→|::=)[^\s\x00-\x1f\x7f|"#(),=])+'
_NAME = re.compile(NAME)
#: The words for an empty body, which so name no symbol.
EMPTY_WORDS = ("ε", "%empty")


@dataclass(frozen=True)
class CFG(PickledByFields, Written, Drawable):
    """A context-free grammar with labels and limits.

    Args:
        productions: in the order in which options are shown.
        start: the start symbol; the head of the first production where left out.
        symbols: labels, descriptions and numbers of symbols.
        limits: bounds that every plan must keep.
        order: ``"forward"`` if a word is the order in which its steps are carried out; ``"prefix"`` if productions are
            nested calls, a tool before its inputs, so that a word is read from last to first.

    Raises:
        GrammarError: a name that the notation cannot write, no production at all, an unknown start symbol, a limit or
            label for an unknown symbol.

    What is legal and still looks like a mistake is reported by :func:`formal_llm.automata.languages.cfg_warnings`.
    """

    productions: tuple[Production, ...]
    start: str = ""
    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    order: Order = "forward"

    def __init__(
        self,
        productions: Iterable[Production | tuple[str, Sequence[str]]],
        start: str = "",
        symbols: Mapping[str, Symbol] | None = None,
        limits: Limits | None = None,
        order: Order = "forward",
    ) -> None:
        made = tuple(
            dict.fromkeys(p if isinstance(p, Production) else Production(p[0], tuple(p[1])) for p in productions)
        )
        if not made:
            raise GrammarError("a grammar needs at least one production", suggestion="write one: S -> a")
        named = FrozenDict({name: symbol for name, symbol in (symbols or {}).items() if symbol != Symbol()})
        vars(self).update(
            productions=made, start=start or made[0].head, symbols=named, limits=limits or Limits(), order=order
        )
        _check_wellformed(self)

    notation_error = GrammarError

    @staticmethod
    def _notation() -> tuple[Callable[..., Any], Callable[[Any], str]]:
        from formal_llm.automata.notation.cfg import read_grammar, write_grammar

        return read_grammar, write_grammar

    @classmethod
    def from_letters(cls, text: str, start: str = "") -> CFG:
        """Read the compact notation of papers, ``T → BI|DT|EIT|FTT``: a letter, with digits or primes, is a symbol.

        Each rule is on a line of its own, or rules are separated by semicolons. Subscript digits are read as digits.

        Raises:
            GrammarError: with line, column and a caret.
        """
        from formal_llm.automata.notation.letters import read_letters

        return read_letters(text, start)

    @classmethod
    def from_tools(
        cls, tools: Iterable[TypedTool], inputs: Mapping[str, object] | None = None, *, uses: int | None = 1
    ) -> CFG:
        """The grammar of all plans in which the types of tools fit.

        A plan uses at least one tool, and ends with any kind of value; to plan for one kind only, take the start symbol
        of that kind, such as ``image_plan`` (:meth:`with_start`).

        Args:
            tools: a :class:`formal_llm.tools.Toolkit`, or tools: each with a name, the kinds of its inputs, and that of
                its output.
            inputs: the inputs of tasks: a terminal for each, and its kind. Where left out, those of the toolkit, or
                ``input_KIND`` for each kind that a tool takes.
            uses: how often each tool may be used at most; None for no bound. Inputs may be used freely.

        Warns with :class:`~formal_llm.errors.GrammarWarning` of a tool whose inputs nothing gives.

        Raises:
            GrammarError: there is no tool, two have one name, or none can be applied to the inputs.
        """
        from formal_llm.automata.notation.typed_tools import grammar_of_tools

        return grammar_of_tools(tools, inputs, uses=uses)

    def __repr__(self) -> str:
        return (
            f"<CFG {self.start}: {len(self.nonterminals)} nonterminals, {len(self.terminals)} terminals, "
            f"{len(self.productions)} productions>"
        )

    def __hash__(self) -> int:
        return hash((self.start, self.productions))

    def __and__(self, other: CFG) -> NoReturn:
        if not isinstance(other, CFG):
            return NotImplemented  # automata and behaviours know what to do
        raise AutomatonError(
            "both are grammars, and the intersection of two context-free languages need not be context-free; "
            "a constraint must be a finite automaton: a formula, a behaviour, a PDA without a stack"
        )

    # -- parts --------------------------------------------------------------------------------------------------

    @cached_property
    def nonterminals(self) -> Mapping[str, None]:
        """The heads, in order of appearance (an ordered set)."""
        return FrozenDict(dict.fromkeys(production.head for production in self.productions))

    @cached_property
    def authored(self) -> tuple[Production, ...]:
        """The productions that somebody wrote: all but those that spell out repetitions and groups."""
        return tuple(production for production in self.productions if not is_sugar(production.head))

    @cached_property
    def selections(self) -> Mapping[str, None]:
        """The selection symbols ``some(...)`` that bodies use, in order (an ordered set)."""
        return FrozenDict(
            dict.fromkeys(name for p in self.productions for name in p.body if selection_members(name) is not None)
        )

    @cached_property
    def terminals(self) -> Mapping[str, None]:
        """The symbols without a rule, in order of appearance (an ordered set)."""
        names: dict[str, None] = {}
        seen: set[str] = set()
        todo = [name for production in reversed(self.productions) for name in reversed(production.body)]
        while todo:
            name = todo.pop()
            if name not in self.nonterminals:
                names.update(dict.fromkeys(selection_members(name) or (name,)))
            elif name not in seen and is_sugar(name):  # what it holds stands where it stands
                seen.add(name)
                todo += [held for p in reversed(self.by_head[name]) for held in reversed(p.body)]
        return FrozenDict(dict.fromkeys(name for name in names if name not in self.nonterminals))

    @cached_property
    def expanded(self) -> tuple[Production, ...]:
        """All productions, those that spell out selections included: a plain grammar for the same language."""
        return (*self.productions, *expand_selections(self.selections))

    @cached_property
    def by_head(self) -> Mapping[str, tuple[Production, ...]]:
        """The expanded productions of each nonterminal."""
        table: dict[str, list[Production]] = {}
        for production in self.expanded:
            table.setdefault(production.head, []).append(production)
        return FrozenDict({head: tuple(group) for head, group in table.items()})

    @cached_property
    def classes(self) -> frozenset[str]:
        """The nonterminals that stand for a choice of one terminal: all their productions are single terminals."""
        return frozenset(
            head
            for head in self.nonterminals
            if all(len(p.body) == 1 and p.body[0] in self.terminals and p.text is None for p in self.by_head[head])
        )

    @cached_property
    def productive(self) -> frozenset[str]:
        """The nonterminals (selections included) from which some word can be derived."""
        return find_derivable_heads([(p.head, p.body) for p in self.expanded], self.terminals)

    @cached_property
    def nullable(self) -> frozenset[str]:
        """The nonterminals from which the empty word can be derived."""
        return find_derivable_heads([(p.head, p.body) for p in self.expanded], ())

    @cached_property
    def reachable(self) -> frozenset[str]:
        """The symbols that occur in some string derived from the start symbol."""
        return frozenset(
            find_reachable([self.start], lambda head: (n for p in self.by_head.get(head, ()) for n in p.body))
        )

    def label(self, name: str) -> str:
        """The text a person reads for a symbol: its label, or its name in words."""
        symbol = self.symbols.get(name)
        if symbol is not None and symbol.label:
            return symbol.label
        again = parse_repetition(name)
        if again is not None:
            return again.describe(self.label(again.of))
        if is_sugar(name) and name in self.nonterminals:
            return " or ".join(", ".join(map(self.label, p.body)) or "nothing" for p in self.by_head[name])
        chosen = selection_members(name)
        return "some of " + ", ".join(map(self.label, chosen)) if chosen else name.replace("_", " ")

    # -- changed copies -----------------------------------------------------------------------------------------

    def with_start(self, start: str) -> CFG:
        """The same grammar from another start symbol."""
        return replace(self, start=start)

    def with_limits(self, limits: Limits) -> CFG:
        """The same grammar under these limits and no others."""
        return replace(self, limits=limits)

    def with_labels(self, labels: Mapping[str, str]) -> CFG:
        """The same grammar with other labels for some symbols."""
        symbols = dict(self.symbols)
        for name, label in labels.items():
            symbols[name] = replace(symbols.get(name, Symbol()), label=label)
        return replace(self, symbols=symbols)

    def with_order(self, order: Order) -> CFG:
        """The same grammar, its words read in this order."""
        return replace(self, order=order)

    @property
    def picture(self) -> Picture:
        """The grammar as a picture: a box for each nonterminal, with its productions."""
        from formal_llm.automata.drawing import cfg_picture

        return cfg_picture(self)

    # -- membership ---------------------------------------------------------------------------------------------

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether the grammar derives ``word``; its limits are not asked. Exact for every grammar."""
        from formal_llm.automata.models.pda import PDA  # it is built on these values

        return PDA.from_cfg(self).accepts(word)


# -- what makes a grammar well-formed ---------------------------------------------------------------------------------


def _check_wellformed(cfg: CFG) -> None:
    """Raise for what no grammar may have.

    Raises:
        GrammarError: a name that the notation cannot write, a selection that is none, an unknown start symbol, a label,
            number or limit of what there is not.
    """
    if cfg.order not in ORDERS:
        raise GrammarError(f"the order is 'forward' or 'prefix', not {cfg.order!r}")
    for name in dict.fromkeys((*cfg.nonterminals, *cfg.terminals)):
        if is_sugar(name):
            _check_sugar(cfg, name)
        elif not _NAME.fullmatch(name) or name in EMPTY_WORDS:
            raise GrammarError(
                f"{name!r} cannot be the name of a symbol",
                suggestion='names have no blanks, quotes, commas, parentheses, "|", "#" or "=" and no arrow',
            )
    _check_selections(cfg)
    if cfg.start not in cfg.nonterminals:
        raise GrammarError(unknown("start symbol", cfg.start, cfg.nonterminals))
    _check_descriptions(cfg)
    for name in (*cfg.limits.at_most, *cfg.limits.at_least):
        if name in cfg.nonterminals:
            raise GrammarError(f"the limit on {name} cannot be counted: it is a nonterminal, limits count terminals")
        if name not in cfg.terminals:
            raise GrammarError(unknown("symbol in a limit", name, cfg.terminals))
    problem = cfg.limits.problem(cfg.terminals, cfg.symbols)
    if problem is not None:
        raise GrammarError(problem)


def _check_sugar(cfg: CFG, name: str) -> None:
    """Raise for a symbol that reads as a repetition or a group, and has other rules than that."""
    bodies = [production.body for production in cfg.productions if production.head == name]
    again = parse_repetition(name)
    if bodies != again.bodies if again else name != write_group(bodies):
        raise GrammarError(
            f"{name} reads as a repetition or a group, and can have no rules of its own",
            suggestion="read it from its notation with CFG.from_string, or give the symbol another name",
        )


def _check_selections(cfg: CFG) -> None:
    for chosen in cfg.selections:
        names = selection_members(chosen) or ()
        if not chosen.startswith("some("):
            raise GrammarError(f"{chosen!r} cannot be the name of a symbol", suggestion="write some(...)")
        if len(set(names)) < len(names):
            raise GrammarError(f"{chosen} names a terminal twice")
        for name in names:
            if name in cfg.nonterminals:
                raise GrammarError(f"{chosen} holds the nonterminal {name}; a selection is made of terminals")


def _check_descriptions(cfg: CFG) -> None:
    """Labels, descriptions and numbers."""
    known = {*cfg.nonterminals, *cfg.terminals}
    for name, symbol in cfg.symbols.items():
        if is_sugar(name):
            raise GrammarError(f"{name} is a repetition or a group, and has no label of its own")
        if name not in known:
            raise GrammarError(unknown("symbol with a label", name, known))
        if symbol.numbers and name in cfg.nonterminals:
            raise GrammarError(f"{name} carries numbers, but it is a nonterminal; only terminals carry numbers")
        for quantity, amount in symbol.numbers.items():
            if not _NAME.fullmatch(quantity) or not is_finite(amount):
                raise GrammarError(f"{name} carries {quantity!r} = {amount}; amounts are named, and numbers from 0")
