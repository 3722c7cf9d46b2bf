"""Repetitions and groups in bodies: ``X*``, ``X+``, ``X?``, ``X{1,3}``, ``(a b | c)*``.

They are sugar of the notation of grammars. Its reader makes each a nonterminal that is called what it is written as,
with the productions that give it its meaning::

    X*      -> X X* | ε             X{1,3}  -> X X{0,2}
    X+      -> X X*                 X{0,2}  -> X X{0,1} | ε
    X?      -> X | ε                (a | b) -> a | b

A word is parted into its repeated parts from left to right in as many ways as the parts themselves allow, so that the
sugar adds no ambiguity as long as what is repeated is never empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from formal_llm.automata.models.symbols import Production

#: The largest number in braces.
MOST_TIMES = 1_000
_SUFFIX = re.compile(r"(.+?)(?:([*+?])|\{(\d*)(,?)(\d*)\})", re.DOTALL)
_SIGNS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


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
        """The symbol in its one form; what is there once is the symbol itself.

        Raises:
            ValueError: the bounds allow nothing, or are too large.
        """
        least, most = self.least, self.most
        if most is not None and (most < least or most < 1):
            raise ValueError(f"{self.of} is repeated from {least} to {most} times, which is never")
        if max(least, most or 0) > MOST_TIMES:
            raise ValueError(
                f"{self.of} is repeated {max(least, most or 0)} times; numbers in braces go up to {MOST_TIMES}"
            )
        if (least, most) == (1, 1):
            return self.of
        sign = next((sign for sign, bounds in _SIGNS.items() if bounds == (least, most)), None)
        most_text = "" if most is None else most
        return self.of + (sign or (f"{{{least}}}" if least == most else f"{{{least},{most_text}}}"))

    @property
    def bodies(self) -> list[tuple[str, ...]]:
        """The bodies that give it its meaning."""
        more: tuple[str, ...] = ()
        if self.most != 1:
            rest = Repetition(self.of, max(self.least - 1, 0), None if self.most is None else self.most - 1)
            # The last of several possible ones is distinguished from a single one: it is "another" one.
            more = (f"{self.of}{{0,1}}" if rest == Repetition(self.of, 0, 1) else str(rest),)
        return [(self.of, *more)] + [()] * (not self.least)

    def describe(self, label: str) -> str:
        """What a person reads for it, where what it repeats reads ``label``."""
        match self.least, self.most:
            case 0, None:
                return f"any number of {label}"
            case 1, None:
                return f"one or more {label}"
            case 0, 1:
                return f"{label} or nothing"
            case least, None:
                return f"{label}, at least {least} times"
            case 0, most:
                return f"{label}, at most {most} times"
            case least, most:
                return f"{label}, {least} times" if least == most else f"{label}, {least} to {most} times"


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


def write_group(bodies: Iterable[Sequence[str]]) -> str:
    """The symbol for one of these bodies: ``(a b | c)``."""
    return f"({' | '.join(' '.join(body) or 'ε' for body in bodies)})"


def is_sugar(symbol: str) -> bool:
    """Whether a symbol is a repetition or a group, which only the reader of the notation can make."""
    return symbol.startswith("(") or parse_repetition(symbol) is not None


def spell_out(bodies: Iterable[Sequence[str]], groups: Mapping[str, Sequence[Sequence[str]]]) -> list[Production]:
    """The productions of all repetitions and groups in bodies, in the order in which they come up.

    Args:
        bodies: the bodies that were written.
        groups: the bodies of each group.
    """
    made: list[Production] = []
    names = dict.fromkeys(name for body in bodies for name in body)
    todo = list(names)
    for name in todo:  # it grows
        again = parse_repetition(name)
        for body in dict.fromkeys(again.bodies if again else map(tuple, groups.get(name, ()))):
            made.append(Production(name, body))
            todo += [new for new in body if new not in names]
            names.update(dict.fromkeys(body))
    return made
