"""What the commands' SOURCE argument means: a task pack, or a grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from warnings import catch_warnings

from formal_llm import authored
from formal_llm.automata import CFG, Limits
from formal_llm.errors import FormalLLMError, ResourceNotFound
from formal_llm.planning import Task, TaskPack, Wording


@dataclass(frozen=True)
class Source:
    """A grammar, and the task pack it comes from, if it does."""

    cfg: CFG
    pack: TaskPack | None = None

    @property
    def wording(self) -> Wording:
        """The wording of the pack, or the default one."""
        return self.pack.wording if self.pack is not None else Wording()

    def task(self, which: str, *, inputs: Sequence[str] = (), goal: str | None = None) -> Task:
        """The task that the command line names."""
        if self.pack is not None:
            if which.strip().isdecimal() and not inputs and goal is None:
                return self.pack.task(which)
            return self.pack.read(self.pack.task(which).description, inputs=inputs or None, goal=goal)
        if inputs:
            raise FormalLLMError(
                "--input is for task packs, and SOURCE is a grammar; --limit NAME=0 leaves a terminal out"
            )
        if goal is not None and goal not in self.cfg.nonterminals:
            raise ResourceNotFound("goal", goal, self.cfg.nonterminals)
        return Task(which, goal=goal)

    def language(
        self,
        which: str,
        *,
        inputs: Sequence[str] | None,
        goal: str | None,
        limit: Sequence[str] | None,
        require: Sequence[str] | None,
    ) -> tuple[CFG, Limits]:
        """The grammar of the plans for the task that the command line names, and the limits besides the grammar's."""
        task = self.task(which, inputs=inputs or (), goal=goal)
        cfg = self.cfg if task.goal is None else self.cfg.with_start(task.goal)
        return cfg, task.limits & read_limits(limit or (), require or ())


def load(name: str) -> Source:
    """The pack or grammar of that name or path; warnings about a grammar are left to ``check``.

    Raises:
        ResourceNotFound: there is nothing of that name.
        GrammarError, NotationError: a file cannot be read.
    """
    with catch_warnings(action="ignore"):
        path = Path(name)
        if path.is_file() or (path.suffix and not path.is_dir()):
            return Source(CFG.from_file(path))
        if path.is_dir() or name in authored.names("tasks"):
            pack = TaskPack.load(name)
            return Source(pack.cfg, pack)
        if name in authored.names("grammars"):
            return Source(CFG.from_file(authored.find("grammars", name, (".cfg",))))
    raise ResourceNotFound(
        "task pack, grammar or file", name, dict.fromkeys([*authored.names("tasks"), *authored.names("grammars")])
    )


def read_limits(limit: Sequence[str], require: Sequence[str]) -> Limits:
    """The limits that ``--limit NAME=N`` and ``--require NAME=N`` set.

    Raises:
        FormalLLMError: one is not of that form.
    """
    return Limits(at_most=_counts("--limit", limit), at_least=_counts("--require", require))


def _counts(option: str, pairs: Sequence[str]) -> dict[str, int]:
    counts = {}
    for pair in pairs:
        name, equals, count = pair.rpartition("=")
        if not equals or not count.isdecimal():
            raise FormalLLMError(f"{option} takes NAME=N, as in {option} colorization=2; not {pair!r}")
        counts[name.strip()] = int(count)
    return counts
