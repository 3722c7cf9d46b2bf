"""Reading formulas, rules about order in either form, and constraints built from them.

In ``(not (eventually (next fry wash)))``, a name is a state and a group an operator with its parts. A name with unusual
characters, or equal to an operator, may be quoted. The meaning of the operators is defined in
:mod:`formal_llm.automata.models.formula`; ``str(formula)`` writes a formula, and reading that gives an equal formula.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from formal_llm.automata.models import formula as formulas
from formal_llm.automata.models.automaton import HasTerminals
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.declare import KEYWORDS, Sentence
from formal_llm.automata.models.dfa import MAX_STATES, finite_pda, minimal_dfa
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.flowgraph import one_line
from formal_llm.automata.models.formula import Always, Atom, Formula, Next, Repeated, reverse, satisfied_by_one, until
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.notation.s_expressions import Expression, SAtom, SList, read_expressions
from formal_llm.automata.notation.sentences import read_sentence
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import NotationError

#: The alphabet of a formula: names, or an object that has them. (The names of a grammar are computed once, which not
#: all type checkers recognize as an attribute, so our own classes are listed.)
Alphabet = CFG | PDA | Behaviour | HasTerminals | Iterable[str]

#: The operators: the function that builds the formula, and the minimum and maximum numbers of parts.
_OPERATORS: Mapping[str, tuple[Callable[..., Formula], int, int | None]] = {
    "next": (formulas.next_, 1, None),
    "or": (formulas.or_, 1, None),
    "and": (formulas.and_, 1, None),
    "not": (formulas.not_, 1, 1),
    "->": (formulas.implies, 2, 2),
    "until": (until, 2, 2),
    "always": (formulas.always, 1, 1),
    "eventually": (formulas.eventually, 1, 1),
}
_CONSTANTS = {"any": formulas.ANY, "empty": formulas.EMPTY}
_START = Place(1, 1)
_QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_UNTIL = re.compile(r"until_([0-9]{1,6})(?:_([0-9]{1,6}|\*))?")


def read_formula(text: str, alphabet: Alphabet) -> Formula:
    """Read the formula in ``text``.

    Args:
        text: one formula.
        alphabet: the alphabet: a grammar, an automaton, a behaviour, or the names themselves.

    Raises:
        NotationError: it cannot be read; with line, column, a caret and what was expected there.
    """
    return _read_one_formula(SourceText.from_text(text, None, NotationError), _terminals_of(alphabet))[0]


def is_formula(text: str) -> bool:
    """Return whether a rule about order is a formula: a sentence has keywords, and no parenthesis before them."""
    bare = _QUOTED.sub('""', text.strip())
    return bare[:1] in ("(", "#", ";") or not any(word.casefold() in KEYWORDS for word in bare.split())


def read_rule(text: str, labels: Mapping[str, str], source: SourceText, place: Place = _START) -> Sentence:
    """Read a rule about order that is part of a text: a sentence, or a formula in parentheses.

    Args:
        text: the rule.
        labels: the steps, each with its label; empty where it has none.
        source: the text that it is part of, for errors.
        place: where it begins there.

    Raises:
        NotationError: it is neither, or names what is no step; with the place.
    """
    padded = "\n" * (place.line - 1) + " " * (place.column - 1) + text
    try:
        if not text.startswith("("):
            return read_sentence(padded, labels, source.file)
        formula, _ = _read_one_formula(SourceText(padded, source.file, error=NotationError), labels)
        return Sentence("formula", text=" ".join(text.split()), given=formula)
    except NotationError as error:
        at = Place(error.line or place.line, error.column or place.column)
        source.fail_at(error.problem, at, expected=error.expected, suggestion=error.suggestion)


T = TypeVar("T", CFG, PDA, Flowchart, Behaviour)


def add_rules(rules: T, *texts: str) -> T:
    """Return rules under more rules about order, each a sentence or a formula in parentheses.

    Raises:
        NotationError: one is neither, or names what is no step.
    """
    labels = _list_labels(rules)
    limits = rules.limits
    for text in texts:
        limits &= Limits.from_sentence(read_rule(text, labels, SourceText.from_text(text, None, NotationError)))
    if isinstance(rules, CFG | PDA):
        return rules.with_limits(limits)
    if isinstance(rules, Flowchart):
        return replace(rules, limits=limits)
    return Behaviour(rules.name, rules.states.values(), rules.formula, limits)


def _list_labels(alphabet: Alphabet | Flowchart) -> dict[str, str]:
    """The terminals with their labels."""
    if isinstance(alphabet, Flowchart):
        return dict.fromkeys(alphabet.terminals, "") | {
            node.id: one_line(node.text) for node in alphabet.nodes if node.id in alphabet.terminals
        }
    known: Mapping[str, Symbol] = getattr(alphabet, "symbols", {})
    return {name: known[name].label if name in known else "" for name in _terminals_of(alphabet)}


def constraint(
    text: str | Formula, alphabet: Alphabet, *, name: str | None = None, max_states: int = MAX_STATES
) -> PDA:
    """Return the constraint of a sentence or a formula: the smallest finite automaton for it.

    A formula is about words. A sentence is about steps in the order of carrying out, so it is reversed where the words
    of the alphabet's grammar are in prefix order.

    Args:
        text: a sentence (``"backup before migrate"``), a formula in its notation, or a formula as a value.
        alphabet: the alphabet: a grammar, an automaton, a behaviour, or the names of the terminals.
        name: the name for messages; by default the text.
        max_states: the maximum number of states while constructing the automaton.

    Raises:
        NotationError: the text cannot be read, names an unknown terminal, or no sequence satisfies it.
        Undecided: ``max_states`` are too few.
    """
    terminals = _terminals_of(alphabet)
    source = SourceText.from_text(str(text), None, NotationError)
    if isinstance(text, str) and not is_formula(text):
        name = name or " ".join(text.split())
        text = read_sentence(text, _list_labels(alphabet)).formula()
        text = reverse(text) if getattr(alphabet, "order", None) == "prefix" else text
    # An invalid value is read again from its text, which raises an error with the place.
    if isinstance(text, Formula) and not _warn_about_formula(text, terminals):
        formula, place = text, Place(1, 1)
    else:
        formula, place = _read_one_formula(source, terminals)
    dfa = minimal_dfa(formula, terminals, max_states=max_states)
    if not dfa.accepting:
        source.fail_at("no sequence satisfies this formula", place)
    known: Mapping[str, Symbol] = getattr(alphabet, "symbols", {})
    symbols = {terminal: known[terminal] for terminal in terminals if terminal in known}
    title = " ".join(str(text).split()) if name is None else name
    return finite_pda(dfa, name=title, symbols=symbols, alphabet=terminals)


def _terminals_of(alphabet: Alphabet) -> tuple[str, ...]:
    if isinstance(alphabet, str):
        raise TypeError("the alphabet is a grammar, an automaton, or a sequence of names; not one text")
    return tuple(alphabet.terminals if isinstance(alphabet, HasTerminals) else alphabet)


def _read_one_formula(source: SourceText, terminals: Iterable[str]) -> tuple[Formula, Place]:
    """Read the single formula of a text, and return it with its place."""
    expressions = read_expressions(source)
    if len(expressions) != 1:
        source.fail_at(
            f"{len(expressions)} formulas, where one is needed" if expressions else "there is no formula",
            expressions[1].place if expressions else None,
            suggestion="combine several: (and (...) (...))" if expressions else None,
        )
    return FormulaReader(source, terminals, "terminal").read_formula(expressions[0]), expressions[0].place


def _warn_about_formula(formula: Formula, names: Iterable[str]) -> bool:
    """Return whether a formula has an unknown name, or an ``always`` that only ε satisfies."""
    return bool(set(formula.names) - set(names)) or any(
        not satisfied_by_one(part.parts[0], names) for part in formula.walk() if isinstance(part, Always)
    )


class FormulaReader:
    """Reads the formulas of one source.

    Args:
        names: the known states or terminals.
        kind: the word for a name in messages: ``"state"`` or ``"terminal"``.
    """

    def __init__(self, source: SourceText, names: Iterable[str], kind: str) -> None:
        self.source = source
        self.names = tuple(names)
        self.kind = kind
        self._known = frozenset(self.names)

    def read_formula(self, expression: Expression) -> Formula:
        """Return the formula of an expression.

        Warns of an ``eventually`` that requires nothing, and of a name that is also a word of the notation.

        Raises:
            NotationError: a name or operator is unknown, the number of parts is wrong, or nothing satisfies ``always``.
        """
        if isinstance(expression, SAtom):
            return self._read_atom(expression)
        head = expression.head
        if head is None:
            self.source.fail_at(
                "a group begins with an operator",
                expression.items[0].place if expression.items else expression.place,
                expected=list(_OPERATORS),
            )
        make, least, most = self._find_operator(head)
        parts = expression.items[1:]
        if len(parts) < least or (most is not None and len(parts) > most):
            wanted = f"{least} part{'s' if least > 1 else ''}" if most else f"at least {least} part"
            self.source.fail_at(
                f"({head.text} ...) takes {wanted}, not {len(parts)}",
                expression.place if len(parts) < least else parts[most or 0].place,
                suggestion="put what stands one after the other into (next ...)"
                if most and len(parts) > most
                else None,
            )
        formula = make(*map(self.read_formula, parts))
        if self.kind == "state" and isinstance(formula, Always) and self._is_sequence(formula.parts[0]):
            return Repeated(formula.parts)
        self._check_formula(head, expression, formula)
        return formula

    def _is_sequence(self, formula: Formula) -> bool:
        """Return whether a formula is one state after another, never a single one."""
        if not isinstance(formula, Next) or satisfied_by_one(formula, self.names):
            return False
        return bool(minimal_dfa(formula, self.names).accepting)

    def _read_atom(self, word: SAtom) -> Formula:
        if not word.quoted and word.text in _CONSTANTS:
            if word.text in self._known:
                self.source.warn_at(
                    f"there is a {self.kind} of this name, but {word.text} means what it always means; "
                    f'write "{word.text}" for the {self.kind}',
                    word.place,
                )
            return _CONSTANTS[word.text]
        if word.text not in self._known:
            if not word.quoted and (word.text in _OPERATORS or _UNTIL.fullmatch(word.text)):
                self.source.fail_at(
                    f"{word.text} is an operator", word.place, suggestion=f"write ({word.text} ...) in parentheses"
                )
            known, there = (*self.names, *_CONSTANTS), f"there are: {_list_names(self.names)}"
            self.source.fail_near(f"unknown {self.kind}: {word.text}", word.place, word.text, known, there)
        return Atom(name=word.text)

    def _find_operator(self, head: SAtom) -> tuple[Callable[..., Formula], int, int | None]:
        bounded = _UNTIL.fullmatch(head.text)
        if bounded is not None:
            first, second = bounded.groups()
            least = 0 if second is None else int(first)
            most = int(first) if second is None else None if second == "*" else int(second)
            if most is not None and least > most:
                self.source.fail_at(f"at least {least} and at most {most} times is impossible", head.place)
            return (lambda body, end: until(body, end, least, most)), 2, 2
        if head.text in _OPERATORS:
            return _OPERATORS[head.text]
        if head.text in self._known or head.text in _CONSTANTS:
            self.source.fail_at(
                f"{head.text} is a {self.kind}, not an operator"
                if head.text in self._known
                else f"{head.text} takes no parts",
                head.place,
                suggestion=f"for one after the other write (next {head.text} ...)",
            )
        problem = f"unknown operator: {head.text}"
        if head.text.startswith("until"):
            hint = "until, until_5 (at most 5 times), until_2_5 (2 to 5 times), until_2_* (at least 2 times)"
            self.source.fail_at(problem, head.place, suggestion=hint)
        return self.source.fail_near(problem, head.place, head.text, _OPERATORS, expected=list(_OPERATORS))

    def _check_formula(self, head: SAtom, group: SList, formula: Formula) -> None:
        if isinstance(formula, Always) and head.text == "always":
            if not satisfied_by_one(formula.parts[0], self.names):
                self.source.fail_at(
                    f"no single {self.kind} satisfies what is inside, so this allows the empty sequence only",
                    group.place,
                    suggestion=f"(always f) looks at each {self.kind} alone; (until f empty) repeats a sequence",
                )
        elif head.text == "eventually" and formula.nullable:
            self.source.warn_at(
                "the empty sequence satisfies what is inside, so every sequence has such a part; "
                "for a single one that is not a, write (eventually (and any (not a)))",
                group.place,
            )


def _list_names(names: Iterable[str], most: int = 12) -> str:
    listed = list(names)
    more = f", and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
