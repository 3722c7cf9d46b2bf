"""Task packs: a folder of tasks with their automaton and wording.

``pack.toml`` names the rules (a grammar, a flowchart, an automaton), adds limits and constraints, specifies how the
inputs and the goal of a task are recognised in its sentence, and composes the tasks; an optional ``wording.toml``
replaces templates. A pack contains no code.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from formal_llm import authored
from formal_llm.authored.tables import (
    SCALAR,
    AlternativeShape,
    Items,
    Keys,
    NamedEntries,
    TablePath,
    TableProblem,
    TomlFile,
)
from formal_llm.automata import CFG, PDA, Limits
from formal_llm.automata.models.limits import SumLimit
from formal_llm.automata.models.rules import Rules, automaton_of
from formal_llm.automata.models.timetable import Timetable
from formal_llm.automata.notation.files import ENDINGS, read_rules
from formal_llm.automata.notation.formula import constraint
from formal_llm.automata.notation.limit_lines import EXAMPLES, LimitsReader, split_line
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import AutomatonError, NotationError, ResourceNotFound, unknown
from formal_llm.llms.providers import LLMLike, resolve
from formal_llm.planning.drivers.planner import Planner, PlannerSettings
from formal_llm.planning.task import Task
from formal_llm.planning.walks.wording import Wording, adapt_wording, fill_template

#: The maximum length of a formula of a pack after all names in it are replaced.
_MOST_FORMULA = 1_000_000
_WORDS = Items(str)
_AMOUNT = AlternativeShape((int, float, str))
#: The possible fillers of a slot: texts, or the subsets of some words.
Slot = Sequence[str] | Mapping[str, Sequence[str]]
#: The allowed contents of ``pack.toml``.
SHAPE = Keys(
    {
        "title": str,
        "rules": str,
        "task": str,
        "facts": NamedEntries(SCALAR),
        "names": NamedEntries(str),
        "constraints": Items(Keys({"name": str, "formula": str}, needed=("name", "formula"))),
        "limits": Keys(
            {
                "default": int,
                "at_most": NamedEntries(AlternativeShape((int,), ("*",))),
                "at_least": NamedEntries(int),
                "sums": NamedEntries(Keys({"at_most": _AMOUNT, "at_least": _AMOUNT, "exactly": _AMOUNT})),
                "times": _WORDS,
                "rules": _WORDS,
            }
        ),
        "sentence": Keys({"pattern": str, "otherwise": str}, needed=("pattern",)),
        "inputs": NamedEntries(Keys({"terminal": str, "words": _WORDS, "several": bool}, needed=("terminal",))),
        "goals": NamedEntries(Keys({"symbol": str, "words": _WORDS}, needed=("symbol",))),
        "kinds": NamedEntries(str),
        "slots": NamedEntries(AlternativeShape((_WORDS, Keys({"subsets": _WORDS}, needed=("subsets",))))),
        "groups": Items(Keys({"name": str, "text": str, "slots": _WORDS}, needed=("name", "text"))),
        "splits": NamedEntries(Items(int)),
    },
    needed=("title", "rules"),
)


class WrongEntry(ValueError):
    """An entry of ``pack.toml`` that has the right shape but cannot work; with its path."""

    def __init__(self, path: TablePath, problem: str) -> None:
        super().__init__(problem)
        self.path = path


def apply_limits(source: CFG | PDA, table: Mapping[str, Any]) -> CFG | PDA:
    """Add the limits of the table ``limits`` to the rules."""
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
    source = source.with_limits(both)
    for place, rule in enumerate(table.get("rules", ())):
        try:
            source = source.with_rules(rule)
        except NotationError as error:
            hint = f"; {error.suggestion}" if error.suggestion else ""
            raise WrongEntry(("limits", "rules", place), f"{rule}: {error.problem}{hint}") from None
    return source


def _read_sum(name: str, bounds: Mapping[str, int | float | str]) -> SumLimit:
    """Read a bound on a sum; amounts may be texts, such as ``"8h"`` or ``"€12.50"``."""
    exact = bounds.get("exactly")
    try:
        return SumLimit(name, exact, exact) if exact is not None else SumLimit(name, **bounds)
    except ValueError as error:
        raise WrongEntry(("limits", "sums", name), str(error)) from None


def _read_times(lines: Sequence[str]) -> Timetable:
    """Read the lines of a timetable, in the notation of a grammar."""
    reader = LimitsReader(SourceText("\n".join(lines), None, error=NotationError))
    for place, line in enumerate(lines):
        path = ("limits", "times", place)
        directive, words = split_line(line)
        if directive.text not in EXAMPLES:
            raise WrongEntry(path, f"{line!r} is no line of a timetable; write, for instance: {EXAMPLES['%clock']}")
        try:
            reader.read_line(directive, words)
        except NotationError as error:
            message = f"{error.problem}; {error.suggestion}" if error.suggestion else error.problem
            raise WrongEntry(path, message) from None
    return reader.limits.times


def read_constraints(data: Mapping[str, Any], source: CFG | PDA) -> Iterator[PDA]:
    """Read the constraints: formulas in which ``{names}`` stand for formulas of the table ``names``."""
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
    """Replace the names in a formula. Since names may refer to names, a short formula can become a huge one."""
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
    """Raise an error for entries that cannot work, before any task is requested."""
    if "task" in data:
        try:
            fill_template(data["task"], data.get("facts", {}))
        except ValueError as error:
            raise WrongEntry(("task",), str(error)) from None
    if isinstance(source, CFG):
        _check_symbols(data, source)
        if "sentence" in data:
            _check_sentence(data["sentence"], data.get("goals", {}))
    else:
        for key in ("inputs", "goals", "sentence"):
            if key in data:
                raise WrongEntry((key,), f"{key} are for packs whose rules are a grammar")
    _check_groups(data)


def _check_symbols(data: Mapping[str, Any], source: CFG) -> None:
    """Raise for inputs, goals and kinds of symbols that the grammar does not have."""
    for name, entry in data.get("inputs", {}).items():
        if entry["terminal"] not in source.terminals:
            message = unknown("terminal", entry["terminal"], source.terminals)
            raise WrongEntry(("inputs", name, "terminal"), f"input {name}: {message}")
    for name, entry in data.get("goals", {}).items():
        if entry["symbol"] not in source.nonterminals:
            message = unknown("nonterminal", entry["symbol"], source.nonterminals)
            raise WrongEntry(("goals", name, "symbol"), f"goal {name}: {message}")
    known_symbols = {*source.terminals, *source.nonterminals}
    for name in data.get("kinds", {}):
        if name not in known_symbols:
            raise WrongEntry(("kinds", name), f"kinds: {unknown('symbol', name, known_symbols)}")


def _check_sentence(sentence: Mapping[str, Any], goals: Mapping[str, Any]) -> None:
    path = ("sentence", "pattern")
    try:
        known = re.compile(sentence["pattern"]).groupindex
    except re.error as error:
        raise WrongEntry(path, f"sentence: the pattern cannot be read: {error}") from None
    for group in ("given", "wanted"):
        if group not in known:
            raise WrongEntry(path, f"sentence: the pattern has no group (?P<{group}>...)")
    otherwise = sentence.get("otherwise")
    if otherwise is not None and otherwise not in goals:
        raise WrongEntry(("sentence", "otherwise"), f"sentence: {unknown('goal', otherwise, goals)}")


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
            message = f"split {name}: there is no task {wrong[0]}; tasks are numbered from 0 to {count - 1}"
            raise WrongEntry(("splits", name), message)


def compose_texts(text: str, names: Sequence[str], slots: Mapping[str, Slot]) -> Iterator[str]:
    """Yield the texts of a template for all combinations of the named slots, the last one varying fastest."""
    for values in itertools.product(*(_list_fillers(slots[name]) for name in names)):
        yield fill_template(text, dict(zip(names, values, strict=True)))


def _list_fillers(slot: Slot) -> list[str]:
    """List the texts of a slot; for ``{subsets = [...]}`` all non-empty subsets, the first word varying fastest."""
    if not isinstance(slot, Mapping):
        return list(slot)
    words = slot["subsets"]
    kept = itertools.product((True, False), repeat=len(words))
    chosen = ([w for w, keep in zip(words, reversed(keeps), strict=True) if keep] for keeps in kept)
    return [" ".join(subset) for subset in chosen if subset]


@dataclass(frozen=True)
class TaskPack:
    """A task pack.

    Attributes:
        title: a short description.
        rules: its rules, as they are written.
        source: the rules that a planner walks: its grammar, or the automaton of its rules.
        constraints: what a plan must satisfy besides, each with its name.
        wording: how its questions are phrased.
        data: the contents of ``pack.toml``.
        facts: the values of its placeholders.
    """

    name: str
    title: str
    rules: Rules
    source: CFG | PDA
    constraints: tuple[PDA, ...]
    wording: Wording
    folder: Path
    data: Mapping[str, Any] = field(hash=False)
    facts: Mapping[str, str] = field(hash=False)

    @classmethod
    def load(cls, name: str, facts: Mapping[str, str] | None = None) -> TaskPack:
        """Load the pack at a path, or the shipped pack of that name.

        Args:
            name: the path or the name.
            facts: values for placeholders of the pack, overriding its own.

        Raises:
            ResourceNotFound: there is no such pack, or it has no such placeholder.
            NotationError: one of its files cannot be read; the error names the file and the place.
        """
        folder = authored.find("tasks", name)
        if not (folder / "pack.toml").is_file():
            hint = "name a file with rules instead, or begin with: formal-llm new NAME"
            raise NotationError("this folder is no task pack: it has no pack.toml", file=str(folder), suggestion=hint)
        file = TomlFile.read(folder / "pack.toml", SHAPE)
        data = file.data
        beside = folder / data["rules"]
        try:
            rules = read_rules(beside if beside.is_file() else authored.find("grammars", data["rules"], ENDINGS))
        except ResourceNotFound as error:
            file.fail(TableProblem(("rules",), f"{error} Or name a file in this folder."))
        known = {key: str(value) for key, value in data.get("facts", {}).items()}
        for fact in facts or {}:
            if fact not in known:
                raise ResourceNotFound("fact", fact, known)
        known |= facts or {}
        try:
            source = apply_limits(automaton_of(rules, known), data.get("limits", {}))
            constraints = tuple(read_constraints(data, source))
            check_entries(data, source)
        except WrongEntry as error:
            file.fail(TableProblem(error.path, str(error)))
        except ValueError as error:
            raise NotationError(str(error), file=file.name) from None
        wording = folder / "wording.toml"
        words = Wording.from_file(wording) if wording.is_file() else Wording()
        return cls(folder.name, data["title"], rules, source, constraints, words, folder, data, known)

    @property
    def cfg(self) -> CFG:
        """The grammar.

        Raises:
            AutomatonError: its rules are not a grammar.
        """
        if not isinstance(self.source, CFG):
            raise AutomatonError(f"the rules of {self.name} are no grammar but {self.data['rules']}; see pack.source")
        return self.source

    def planner(self, llm: LLMLike = "builtin", **settings: Unpack[PlannerSettings]) -> Planner:
        """Create a planner with this pack's rules, constraints and wording, shortened for LLMs that prefer it.

        The settings are those of :class:`Planner`; constraints in them are added to those of the pack.
        """
        settings["constraints"] = (*self.constraints, *settings.get("constraints", ()))
        model = resolve(llm)
        settings.setdefault("wording", adapt_wording(self.wording, model))
        return Planner(self.source, model, **settings)

    # -- tasks --------------------------------------------------------------------------------------------------

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks of the pack, in order; its main task if it has no others."""
        if not self.data.get("groups") and "task" in self.data:
            return (self.task(""),)
        return tuple(
            self.read(text, group=group["name"])
            for group in self.data.get("groups", ())
            for text in compose_texts(group["text"], group.get("slots", ()), self.data.get("slots", {}))
        )

    @property
    def splits(self) -> Mapping[str, Sequence[int]]:
        """Named selections of tasks, by their numbers from 0."""
        splits: Mapping[str, Sequence[int]] = self.data.get("splits", {})
        return splits

    def split(self, name: str) -> tuple[Task, ...]:
        """Return the tasks of a split; ``"all"`` for all.

        Raises:
            ResourceNotFound: there is no split of that name.
        """
        if name == "all":
            return self.tasks
        if name not in self.splits:
            raise ResourceNotFound("split of tasks", name, ["all", *self.splits])
        return tuple(self.tasks[number] for number in self.splits[name])

    def task(self, which: str | int) -> Task:
        """Return a task by its number from 0, or by a sentence that describes it; empty for the main task.

        Raises:
            ResourceNotFound: the pack has no task of that number.
        """
        if which == "" and "task" in self.data:
            return self.read(fill_template(self.data["task"], self.facts))
        if isinstance(which, int) or which.strip().isdecimal():
            number = int(which)
            if not 0 <= number < len(self.tasks):
                raise ResourceNotFound("task", str(number), [f"0 to {len(self.tasks) - 1}"])
            return self.tasks[number]
        return self.read(which)

    def read(
        self, sentence: str, *, inputs: Sequence[str] | None = None, goal: str | None = None, group: str = ""
    ) -> Task:
        """Read the task that a sentence describes.

        Args:
            sentence: the description.
            inputs: the names of the given inputs; by default recognised in the sentence.
            goal: the name of the goal; by default recognised in the sentence.
            group: the kind of task.

        If a sentence does not mention the given inputs, all are available; if it does not mention a goal, the LLM
        chooses one.

        Raises:
            ResourceNotFound: the pack has no such input or goal.
        """
        known: Mapping[str, Any] = self.data.get("inputs", {})
        goals: Mapping[str, Any] = self.data.get("goals", {})
        pattern = self.data.get("sentence", {}).get("pattern")
        match = re.search(pattern, sentence, re.IGNORECASE) if pattern else None
        if inputs is None:
            inputs = _find_named_entries(match["given"], known) if match else []
            inputs = inputs or list(known)
        if goal is None and match:
            wanted = _find_named_entries(match["wanted"], goals)
            goal = wanted[0] if wanted else self.data["sentence"].get("otherwise")
        for name in inputs:
            if name not in known:
                raise ResourceNotFound("input", name, known)
        if goal is not None and goal not in goals:
            raise ResourceNotFound("goal", goal, goals)
        missing = {known[name]["terminal"]: 0 for name in known if name not in inputs}
        return Task(
            sentence,
            goal=None if goal is None else goals[goal]["symbol"],
            limits=Limits(at_most=missing),
            inputs=tuple(inputs),
            group=group,
        )


def _find_named_entries(text: str, entries: Mapping[str, Any]) -> list[str]:
    """Find the entries one of whose words occurs in ``text``."""
    words = set(re.findall(r"[^\W\d_]+", text.casefold()))
    return [name for name, entry in entries.items() if words.intersection(entry.get("words", ()))]
