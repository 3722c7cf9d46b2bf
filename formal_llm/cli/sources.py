"""What the commands' SOURCE argument means: a task pack, or a file with rules."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from warnings import catch_warnings

from formal_llm import authored
from formal_llm.authored.files import read_text
from formal_llm.authored.places import PACKS
from formal_llm.authored.tables import SCALAR, NamedEntries, read_toml
from formal_llm.automata import CFG, PDA, Limits, SumLimit
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.quantities import Number, read_amount
from formal_llm.automata.models.rules import Rules, automaton_of
from formal_llm.automata.notation.files import ENDINGS, read_rules
from formal_llm.cli.options import SHIPPED
from formal_llm.errors import FormalLLMError, InputError, NotationError, ResourceNotFound
from formal_llm.llms import LLM, RecordedLLM
from formal_llm.planning import Task, TaskPack, Wording
from formal_llm.planning.reading import read_plan_text
from formal_llm.planning.walks.wording import NAMED, shortened


@dataclass(frozen=True)
class LoadedRules:
    """Rules, and the task pack they come from, if they do.

    Attributes:
        rules: as they are written.
        source: what a planner walks.
        pack: the task pack.
        warnings: what is probably not meant.
        file: the file that they were read from; None for those of a pack.
    """

    rules: Rules
    source: CFG | PDA
    pack: TaskPack | None = None
    warnings: tuple[str, ...] = ()
    file: Path | None = None

    @property
    def wording(self) -> Wording:
        """The wording of the pack, or the default one."""
        return self.pack.wording if self.pack is not None else Wording()

    def wording_of(self, name: Path | None) -> Wording:
        """The wording of a file; the own one, in short words where the name is that of such a wording.

        Raises:
            NotationError: the file cannot be read.
        """
        if name is None:
            return self.wording
        if str(name) in NAMED and not name.exists():
            return shortened(self.wording, str(name))
        return Wording.from_file(name)

    @property
    def constraints(self) -> tuple[PDA, ...]:
        """The constraints of the pack."""
        return tuple(self.pack.constraints) if self.pack is not None else ()

    def task(self, which: str, *, inputs: Sequence[str] = (), goal: str | None = None) -> Task:
        """The task that the command line names."""
        if self.pack is not None:
            if (not which or which.strip().isdecimal()) and not inputs and goal is None:
                return self.pack.task(which)
            return self.pack.read(self.pack.task(which).description, inputs=inputs or None, goal=goal)
        if inputs:
            raise FormalLLMError(
                "--input is for task packs, and SOURCE is a file with rules; --limit NAME=0 leaves a terminal out"
            )
        if goal is not None:
            known = self.source.nonterminals if isinstance(self.source, CFG) else ()
            if goal not in known:
                raise ResourceNotFound("goal", goal, known)
        return Task(which, goal=goal)

    @property
    def whole(self) -> CFG | PDA:
        """All plans of the rules, whatever the task."""
        return self._add_constraints(self.source)

    def language(
        self,
        which: str,
        *,
        inputs: Sequence[str] | None = None,
        goal: str | None = None,
        limit: Sequence[str] | None = None,
        require: Sequence[str] | None = None,
    ) -> tuple[CFG | PDA, Limits]:
        """The plans for the task that the command line names: a grammar or automaton, and the limits besides its own.

        Args:
            which: the task.
            inputs: its inputs, where they are not read from the task.
            goal: its goal, likewise.
            limit: limits, as :func:`read_limits` takes them.
            require: required uses, likewise.
        """
        task = self.task(which, inputs=inputs or (), goal=goal)
        source = self.source
        if isinstance(source, CFG) and task.goal is not None:
            source = source.with_start(task.goal)
        return self._add_constraints(source), task.limits & read_limits(limit, require, source)

    def _add_constraints(self, source: CFG | PDA) -> CFG | PDA:
        for one in self.constraints:
            source = source & one
        return source


def load(
    name: str,
    facts: Sequence[str] | None = None,
    rules: Sequence[str] | None = None,
) -> LoadedRules:
    """The pack or the rules of that name or path, with the warnings about them.

    Args:
        name: the name or path.
        facts: what stands for placeholders, each as ``NAME=VALUE``.
        rules: rules about order, each a sentence or a formula.

    Raises:
        ResourceNotFound: there is nothing of that name.
        NotationError: a file or a formula cannot be read.
    """
    with catch_warnings(record=True, action="always") as caught:
        found = _load_rules(name, read_facts(facts or ()))
        source = found.source
        with naming_place("--rule"):
            source = source.with_rules(*rules) if rules else source
    messages = dict.fromkeys(str(one.message) for one in caught)
    return replace(found, source=source, warnings=tuple(messages))


def _load_rules(name: str, known: dict[str, str]) -> LoadedRules:
    path = Path(name)
    if name in authored.names("tasks"):
        return _load_pack(name, known)
    for kind in SHIPPED:
        if name in authored.names(kind):
            return _read_file(authored.find(kind, name, ENDINGS), known)
    if path.is_dir():
        return _load_pack(name, known)
    if path.is_file() or path.suffix:
        return _read_file(path, known)
    if PACKS.find(name) is not None:
        return _load_pack(name, known)
    shipped = (one for kind in ("tasks", *SHIPPED) for one in authored.names(kind))
    beside = (str(one) for one in Path().iterdir() if one.suffix in ENDINGS)
    raise ResourceNotFound("task pack, rules or file", name, dict.fromkeys([*beside, *shipped, *PACKS.names()]))


def _load_pack(name: str, known: dict[str, str]) -> LoadedRules:
    pack = TaskPack.load(name, known)
    return LoadedRules(pack.rules, pack.source, pack)


def _read_file(path: Path, facts: dict[str, str]) -> LoadedRules:
    rules = read_rules(path)
    names = rules.placeholders if isinstance(rules, Flowchart) else ()
    for fact in facts:
        if not names:
            raise InputError(f"--set {fact}: {path} has no {{placeholder}}")
        if fact not in names:
            raise ResourceNotFound("placeholder", fact, names)
    # Without facts a chart is shown as it is written, its placeholders in braces.
    return LoadedRules(
        rules, automaton_of(rules, facts | {name: facts.get(name, f"{{{name}}}") for name in names}), file=path
    )


def read_facts(pairs: Sequence[str]) -> dict[str, str]:
    """The facts that ``--set NAME=VALUE`` gives, or ``--set @FILE`` for a TOML file of them.

    Raises:
        FormalLLMError: one is not of that form.
        NotationError: the file cannot be read.
    """
    facts: dict[str, str] = {}
    for pair in pairs:
        if pair.startswith("@"):
            facts |= {name: str(value) for name, value in read_toml(pair[1:], NamedEntries(SCALAR)).items()}
            continue
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise FormalLLMError(f"--set takes NAME=VALUE, as in --set buyer=Microsoft; not {pair!r}")
        facts[name.strip()] = value
    return facts


def read_limits(limit: Sequence[str] | None, require: Sequence[str] | None, rules: CFG | PDA | None = None) -> Limits:
    """The limits that ``--limit NAME=N`` and ``--require NAME=N`` set.

    Args:
        limit: names of terminals with their most uses; names of quantities with the most of their sum.
        require: the least, likewise.
        rules: what has the terminals, and the quantities that they carry.

    Raises:
        FormalLLMError: one is not of that form.
    """
    most, most_sums = _read_bounds("--limit", limit or (), rules)
    least, least_sums = _read_bounds("--require", require or (), rules)
    sums = [SumLimit(name, at_most=amount) for name, amount in most_sums.items()]
    sums += [SumLimit(name, at_least=amount) for name, amount in least_sums.items()]
    return Limits(most, least, sums=tuple(sums))


def _read_bounds(
    option: str, pairs: Sequence[str], rules: CFG | PDA | None
) -> tuple[dict[str, int], dict[str, Number]]:
    """Read the bounds of an option: those on uses of terminals, and those on sums of quantities."""
    symbols = rules.symbols.values() if rules is not None else ()
    quantities = {quantity for symbol in symbols for quantity in symbol.numbers}
    counts: dict[str, int] = {}
    sums: dict[str, Number] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.rpartition("="))
        if equals and rules is not None and name in quantities and name not in rules.terminals:
            try:
                sums[name] = read_amount(value)
            except ValueError as error:
                raise FormalLLMError(f"{option} {pair}: {error}") from None
        elif equals and value.isdecimal():
            counts[name] = int(value)
        else:
            raise FormalLLMError(f"{option} takes NAME=N, as in {option} colorization=2; not {pair!r}")
    return counts, sums


def plan_text(name: str) -> str:
    """The text in a file, or on standard input for ``-``."""
    return sys.stdin.read() if name == "-" else read_text(Path(name))


def read_words(text: str) -> str:
    """A text that an option gives: the text itself, ``@FILE`` for the text in a file, or ``-`` for standard input."""
    return plan_text(text.removeprefix("@")) if text == "-" or text.startswith("@") else text


def read_plan(name: str, rules: CFG | PDA) -> Word:
    """The plan in a file, or on standard input for ``-``, as the rules spell it.

    Raises:
        NotationError: it cannot be read.
    """
    with naming_place(name):
        return read_plan_text(plan_text(name), rules)


@contextmanager
def naming_place(name: str) -> Iterator[None]:
    """Have errors in a text name where the person wrote it."""
    try:
        yield
    except NotationError as error:
        error.file = error.file if name == "-" else name
        raise


def keep_answers(llm: LLM, cache: Path | None, record: Path | None, opened: ExitStack, name: str | None = None) -> LLM:
    """A model whose answers are kept in a cache and recorded, where that is wanted; the files are closed by a stack."""
    if cache is not None:
        llm = opened.enter_context(RecordedLLM(llm, cache, name=name))
    if record is not None:
        llm = opened.enter_context(RecordedLLM(llm, record, again=True))
    return llm
