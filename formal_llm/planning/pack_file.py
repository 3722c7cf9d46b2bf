"""What may stand in the file of a task pack, and what in it cannot work."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from formal_llm.authored.tables import SCALAR, Items, Keys, Named, OneOf, TablePath
from formal_llm.automata import CFG, PDA, Limits
from formal_llm.automata.models.limits import SumLimit
from formal_llm.automata.models.timetable import Timetable
from formal_llm.automata.notation.formula import constraint
from formal_llm.automata.notation.limit_lines import EXAMPLES, CollectedLimits, WrongWord, split_line
from formal_llm.errors import unknown
from formal_llm.planning.walks.templates import fill_template

#: A formula of a pack is no longer than that once all names in it are replaced.
_MOST_FORMULA = 1_000_000
_WORDS = Items(str)
_AMOUNT = OneOf((int, float, str))
#: What a slot of tasks is filled with: texts, or the subsets of some words.
Slot = Sequence[str] | Mapping[str, Sequence[str]]
#: What may stand in ``pack.toml``.
SHAPE = Keys(
    {
        "title": str,
        "rules": str,
        "task": str,
        "facts": Named(SCALAR),
        "names": Named(str),
        "constraints": Items(Keys({"name": str, "formula": str}, needed=("name", "formula"))),
        "limits": Keys(
            {
                "default": int,
                "at_most": Named(OneOf((int,), ("*",))),
                "at_least": Named(int),
                "sums": Named(Keys({"at_most": _AMOUNT, "at_least": _AMOUNT, "exactly": _AMOUNT})),
                "times": _WORDS,
            }
        ),
        "sentence": Keys({"pattern": str, "otherwise": str}, needed=("pattern",)),
        "inputs": Named(Keys({"terminal": str, "words": _WORDS, "several": bool}, needed=("terminal",))),
        "goals": Named(Keys({"symbol": str, "words": _WORDS}, needed=("symbol",))),
        "kinds": Named(str),
        "slots": Named(OneOf((_WORDS, Keys({"subsets": _WORDS}, needed=("subsets",))))),
        "groups": Items(Keys({"name": str, "text": str, "slots": _WORDS}, needed=("name", "text"))),
        "splits": Named(Items(int)),
    },
    needed=("title", "rules"),
)


class WrongEntry(ValueError):
    """Something in ``pack.toml`` that has its shape and cannot work all the same; where it stands."""

    def __init__(self, path: TablePath, problem: str) -> None:
        super().__init__(problem)
        self.path = path


def apply_limits(source: CFG | PDA, table: Mapping[str, Any]) -> CFG | PDA:
    """The rules under the limits of the table ``limits`` as well."""
    for kind in ("at_most", "at_least"):
        for name in table.get(kind, {}):
            if name not in source.terminals:
                raise WrongEntry(("limits", kind, name), unknown("terminal in a limit", name, source.terminals))
    quantities = {quantity for symbol in source.symbols.values() for quantity in symbol.numbers}
    for name in table.get("sums", {}):
        if name not in quantities:
            raise WrongEntry(
                ("limits", "sums", name), f"{unknown('quantity', name, quantities)}; no terminal carries it"
            )
    most = {name: None if count == "*" else count for name, count in table.get("at_most", {}).items()}
    try:
        sums = [_read_sum(name, bounds) for name, bounds in table.get("sums", {}).items()]
        times = _read_times(table.get("times", ()))
        limits = Limits(most, table.get("at_least", {}), table.get("default"), tuple(sums), times)
        both = source.limits & limits
    except ValueError as error:
        raise error if isinstance(error, WrongEntry) else WrongEntry(("limits",), str(error)) from None
    problem = both.problem(source.terminals, source.symbols)
    if problem is not None:
        raise WrongEntry(("limits",), problem)
    return source.with_limits(both)


def _read_sum(name: str, bounds: Mapping[str, int | float | str]) -> SumLimit:
    """A bound on a sum; amounts may be texts, such as ``"8h"`` or ``"€12.50"``."""
    exact = bounds.get("exactly")
    try:
        return SumLimit(name, exact, exact) if exact is not None else SumLimit(name, **bounds)
    except ValueError as error:
        raise WrongEntry(("limits", "sums", name), str(error)) from None


def _read_times(lines: Sequence[str]) -> Timetable:
    """The lines of a timetable, each as it is written in a grammar."""
    found = CollectedLimits()
    for place, line in enumerate(lines):
        directive, words = split_line(line)
        try:
            if directive not in EXAMPLES:
                raise WrongWord(0, f"{line!r} is no line of a timetable", "write, for instance: %clock time 8:00-20:00")
            found.read(directive, words)
        except WrongWord as error:
            told = f"{error}; {error.suggestion}" if error.suggestion else str(error)
            raise WrongEntry(("limits", "times", place), told) from None
    return found.limits.times


def read_constraints(data: Mapping[str, Any], source: CFG | PDA) -> Iterator[PDA]:
    """The constraints: formulas in which ``{names}`` stand for formulas of the table ``names``."""
    names: dict[str, str] = {}
    for name, formula in data.get("names", {}).items():
        names[name] = _fill_formula(("names", name), name, formula, names)
    for place, entry in enumerate(data.get("constraints", ())):
        path = ("constraints", place, "formula")
        formula = _fill_formula(path, f"constraint {entry['name']!r}", entry["formula"], names)
        try:
            yield constraint(formula, source, name=entry["name"])
        except ValueError as error:
            raise WrongEntry(path, f"constraint {entry['name']!r}: {error}") from None


def _fill_formula(path: TablePath, called: str, formula: str, names: Mapping[str, str]) -> str:
    """A formula with its names replaced. Names may stand for names, so a short text can stand for an endless one."""
    try:
        filled = fill_template(formula, names)
    except ValueError as error:
        raise WrongEntry(path, f"{called}: {error}") from None
    if len(filled) > _MOST_FORMULA:
        raise WrongEntry(
            path, f"{called} stands for a formula of {len(filled):,} characters; {_MOST_FORMULA:,} are allowed"
        )
    return filled


def check_entries(data: Mapping[str, Any], source: CFG | PDA) -> None:
    """Raise for what cannot work, before anybody asks for a task."""
    if "task" in data:
        try:
            fill_template(data["task"], data.get("facts", {}))
        except ValueError as error:
            raise WrongEntry(("task",), str(error)) from None
    if not isinstance(source, CFG):
        for key in ("inputs", "goals", "sentence"):
            if key in data:
                raise WrongEntry((key,), f"{key} are for packs whose rules are a grammar")
        return _check_groups(data)
    for name, entry in data.get("inputs", {}).items():
        if entry["terminal"] not in source.terminals:
            told = unknown("terminal", entry["terminal"], source.terminals)
            raise WrongEntry(("inputs", name, "terminal"), f"input {name}: {told}")
    goals = data.get("goals", {})
    for name, entry in goals.items():
        if entry["symbol"] not in source.nonterminals:
            told = unknown("nonterminal", entry["symbol"], source.nonterminals)
            raise WrongEntry(("goals", name, "symbol"), f"goal {name}: {told}")
    if "sentence" in data:
        path = ("sentence", "pattern")
        try:
            known = re.compile(data["sentence"]["pattern"]).groupindex
        except re.error as error:
            raise WrongEntry(path, f"sentence: the pattern cannot be read: {error}") from None
        for group in ("given", "wanted"):
            if group not in known:
                raise WrongEntry(path, f"sentence: the pattern has no group (?P<{group}>...)")
        otherwise = data["sentence"].get("otherwise")
        if otherwise is not None and otherwise not in goals:
            raise WrongEntry(("sentence", "otherwise"), f"sentence: {unknown('goal', otherwise, goals)}")
    known_symbols = {*source.terminals, *source.nonterminals}
    for name in data.get("kinds", {}):
        if name not in known_symbols:
            raise WrongEntry(("kinds", name), f"kinds: {unknown('symbol', name, known_symbols)}")
    return _check_groups(data)


def _check_groups(data: Mapping[str, Any]) -> None:
    slots, count = data.get("slots", {}), 0
    for place, group in enumerate(data.get("groups", ())):
        for slot in group.get("slots", ()):
            if slot not in slots:
                raise WrongEntry(("groups", place, "slots"), f"group {group['name']}: {unknown('slot', slot, slots)}")
        try:
            tasks = len(list(compose_texts(group["text"], group.get("slots", ()), slots)))
        except ValueError as error:
            raise WrongEntry(("groups", place, "text"), f"group {group['name']}: {error}") from None
        if not tasks:
            raise WrongEntry(("groups", place, "slots"), f"group {group['name']}: no task, since a slot is empty")
        count += tasks
    for name, numbers in data.get("splits", {}).items():
        if wrong := [number for number in numbers if not 0 <= number < count]:
            told = f"split {name}: there is no task {wrong[0]}; tasks are numbered from 0 to {count - 1}"
            raise WrongEntry(("splits", name), told)


def compose_texts(text: str, names: Sequence[str], slots: Mapping[str, Slot]) -> Iterator[str]:
    """The texts of a template with all combinations of its slots, by these names, the last one varying fastest."""
    for values in itertools.product(*(_list_fillers(slots[name]) for name in names)):
        yield fill_template(text, dict(zip(names, values, strict=True)))


def _list_fillers(slot: Slot) -> list[str]:
    """A list of texts as it is; ``{subsets = [...]}``: all non-empty subsets, the first word varying fastest."""
    if not isinstance(slot, Mapping):
        return list(slot)
    words = slot["subsets"]
    kept = itertools.product((True, False), repeat=len(words))
    chosen = ([w for w, keep in zip(words, reversed(keeps), strict=True) if keep] for keeps in kept)
    return [" ".join(subset) for subset in chosen if subset]
