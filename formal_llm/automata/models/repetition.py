"""Repetitions and groups in bodies: ``X*``, ``X+``, ``X?``, ``X{1,3}``, ``(a b | c)*``.

They are sugar. Each is a nonterminal whose name contains its rules, and :func:`expand_sugar` gives these::

    X*      -> X X* | ε             X{1,3}  -> X X{0,2}
    X+      -> X X*                 X{0,2}  -> X X{0,1} | ε
    X?      -> X | ε                (a | b) -> a | b

A word is parted into its repeated parts from left to right in as many ways as the parts themselves allow, so that the
sugar adds no ambiguity as long as what is repeated is never empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from formal_llm.automata.models.symbols import Production, selection_members
from formal_llm.errors import GrammarError

#: The largest number in braces.
MOST_TIMES = 1_000
#: How deep groups may be nested.
MOST_DEEP = 20
_SUFFIX = re.compile(r"(.+?)(?:([*+?])|\{(\d*)(,?)(\d*)\})", re.DOTALL)
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_WORDS: dict[tuple[int, int | None], str] = {(least, most): sign for sign, (least, most) in _SIGNS.items()}
#: A piece of a group: what opens it, parts its alternatives, closes it (with how often), or a symbol.
_PIECE = re.compile(r"some\([^()]*\)|\((?=.)|\)(?:[*+?]|\{\d*,?\d*\})?|\||[^\s()|]+")


@dataclass(frozen=True, slots=True)
class Repetition:
    """What a symbol repeats, and how often.

    Attributes:
        of: a symbol, or a group.
        least: how often at least.
        most: how often at most; None for no bound.
    """

    of: str
    least: int
    most: int | None

    def __str__(self) -> str:
        return write_repetition(self.of, self.least, self.most)


def write_repetition(of: str, least: int, most: int | None = None) -> str:
    """The body symbol for ``of``, from ``least`` to ``most`` times (None: no bound), as ``X*`` or ``X{1,3}``.

    Raises:
        ValueError: the bounds allow nothing, or are too large.
    """
    if most is not None and (most < least or most < 1):
        raise ValueError(f"{of} is repeated from {least} to {most} times, which is never")
    if max(least, most or 0) > MOST_TIMES:
        raise ValueError(f"{of} is repeated {max(least, most or 0)} times; numbers in braces go up to {MOST_TIMES}")
    if (least, most) == (1, 1):
        return of
    if (least, most) in _WORDS:
        return of + _WORDS[least, most]
    return f"{of}{{{least}}}" if least == most else f"{of}{{{least},{'' if most is None else most}}}"


@lru_cache(maxsize=1 << 16)
def parse_repetition(symbol: str) -> Repetition | None:
    """What a symbol such as ``X*`` repeats; None for any other symbol. A sign alone is a name."""
    if symbol[-1:] not in ("*", "+", "?", "}"):
        return None
    found = _SUFFIX.fullmatch(symbol)
    if found is None or (not found[2] and not found[3] and not found[5]):
        return None
    if found[2]:
        return Repetition(found[1], *_SIGNS[found[2]])
    least = int(found[3] or 0)
    return Repetition(found[1], least, (int(found[5]) if found[5] else None) if found[4] else least)


@lru_cache(maxsize=1 << 16)
def parse_group(symbol: str) -> tuple[tuple[str, ...], ...] | None:
    """The bodies of a group such as ``(a b | c)``; None for any other symbol, or brackets that do not match."""
    if not (symbol.startswith("(") and symbol.endswith(")")):
        return None
    bodies: list[list[str]] = [[]]
    start, depth = 0, 0
    for piece in _PIECE.finditer(symbol, 1, len(symbol) - 1):
        symbol_text = piece[0]
        if symbol_text == "(":
            start, depth = (piece.start() if not depth else start), depth + 1
        elif symbol_text[0] == ")":
            depth -= 1
            if depth < 0:
                return None
            if not depth:
                bodies[-1].append(symbol[start : piece.end()])
        elif depth:
            continue
        elif symbol_text == "|":
            bodies.append([])
        else:
            bodies[-1].append(symbol_text)
    return None if depth else tuple(() if body == ["ε"] else tuple(body) for body in bodies)


def write_group(bodies: Iterable[Sequence[str]]) -> str:
    """The body symbol for one of these bodies: ``(a b | c)``."""
    return f"({' | '.join(' '.join(body) or 'ε' for body in bodies)})"


def list_held_symbols(symbol: str) -> tuple[str, ...]:
    """The symbols that a repetition or a group holds, in order; the symbol alone where it is neither."""
    again = parse_repetition(symbol)
    if again is not None:
        return list_held_symbols(again.of)
    bodies = parse_group(symbol)
    return (
        (symbol,)
        if bodies is None
        else tuple(name for body in bodies for one in body for name in list_held_symbols(one))
    )


def is_sugar(symbol: str) -> bool:
    """Whether a symbol is a repetition or a group, whose rules its name contains."""
    return parse_repetition(symbol) is not None or parse_group(symbol) is not None


def expand_sugar(symbol: str) -> tuple[Production, ...]:
    """The productions that give a repetition or a group its meaning; none for any other symbol."""
    bodies = parse_group(symbol)
    if bodies is not None:
        return tuple(Production(symbol, body) for body in dict.fromkeys(bodies))
    again = parse_repetition(symbol)
    if again is None:
        return ()
    of, least, most = again.of, again.least, again.most
    rest = (max(least - 1, 0), None if most is None else most - 1)
    # The last of several possible ones is distinguished from a single one: it is "another" one.
    more = (of,) if most == 1 else (of, f"{of}{{0,1}}" if rest == (0, 1) else write_repetition(of, *rest))
    return (Production(symbol, more), *(() if least else (Production(symbol, ()),)))


def expand_all_sugar(productions: Iterable[Production]) -> list[Production]:
    """The productions of all repetitions and groups that come up in bodies, in order."""
    made: list[Production] = []
    todo = list(dict.fromkeys(name for production in productions for name in production.body))
    seen = set(todo)
    for name in todo:  # it grows
        for production in expand_sugar(name):
            made.append(production)
            for new in production.body:
                if new not in seen:
                    seen.add(new)
                    todo.append(new)
    return made


def add_sugar_productions(given: Sequence[Production]) -> tuple[Production, ...]:
    """The productions, with those that spell out repetitions and groups at their end.

    Raises:
        GrammarError: a repetition or a group that cannot be, or that has a rule of its own.
    """
    authored = tuple(production for production in given if not is_sugar(production.head))
    for name in dict.fromkeys(name for production in authored for name in production.body):
        wrong = problem_of(name)
        if wrong is not None:
            raise GrammarError(wrong[0], suggestion=wrong[1])
    spelled = expand_all_sugar(authored)
    if len(authored) < len(given):
        known = set(spelled)
        for production in given:
            if is_sugar(production.head) and production not in known:
                raise GrammarError(
                    f"{production.head} is a repetition or a group, and can have no rule of its own",
                    suggestion="give the symbol another name, and this one as its label",
                )
    return (*authored, *spelled)


def problem_of(symbol: str) -> tuple[str, str] | None:
    """What is wrong with a repetition or a group, and the way out; None where nothing is."""
    again = parse_repetition(symbol)
    if again is not None:
        try:
            right = str(again)
        except ValueError as error:
            return str(error), "write least and most, as in X{1,3}"
        if parse_repetition(again.of) is not None:
            return f"{symbol} repeats a repetition", f"one sign is enough; or put {again.of} in brackets: ({again.of})"
        if selection_members(again.of) is not None:
            return f"{symbol} repeats a selection", f"give it a name: A -> {again.of}, and repeat A"
        return None if right == symbol else (f"{symbol} is written {right}", f"write {right}")
    bodies = parse_group(symbol)
    if bodies is None:
        return None
    if symbol.count("(") > MOST_DEEP and _nesting_depth(symbol) > MOST_DEEP:
        return f"groups more than {MOST_DEEP} deep", "give the inner ones a name and a rule"
    right = write_group(bodies)
    return None if right == symbol and all(body or "ε" in symbol for body in bodies) else (
        f"{symbol} is no group", f"write {right}")  # fmt: skip


def _nesting_depth(symbol: str) -> int:
    depth = deepest = 0
    for character in symbol:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest


def describe_repetition(symbol: str, label: str) -> str:
    """What a person reads for a repetition of something that reads ``label``."""
    again = parse_repetition(symbol)
    assert again is not None
    least, most = again.least, again.most
    if (least, most) in _WORDS:
        return {"*": f"any number of {label}", "+": f"one or more {label}", "?": f"{label} or nothing"}[
            _WORDS[least, most]
        ]
    if most is None:
        return f"{label}, at least {least} times"
    if not least:
        return f"{label}, at most {most} times"
    return f"{label}, {least} times" if least == most else f"{label}, {least} to {most} times"
