"""``formal-llm bench openagi --methods``: the paper's table in one command, and what of it transfers to other words."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from formal_llm.cli.bench_tables import Form
from formal_llm.cli.console import err, out, print_text
from formal_llm.errors import FormalLLMError, ResourceNotFound
from formal_llm.llms import LLM, resolve
from formal_llm.llms.local.adapted import fingerprint, with_adapter
from formal_llm.llms.local.planner import adapters
from formal_llm.planning import TaskPack
from formal_llm.planning.rewordings import read_rewordings

if TYPE_CHECKING:
    from formal_llm.packs.openagi.benchmark.conditions import Method
    from formal_llm.packs.openagi.benchmark.plans import AdaptedLLM, AskingSettings, RunProgress, Skipped
    from formal_llm.packs.openagi.benchmark.transfer import Transfer

#: The file of sentences that the pack has for this; and what stands for no file.
SENTENCES, NONE = "paraphrases.toml", "none"
#: Where in the folder of a benchmark the plans for sentences are on record, and their table.
FOLDER, TABLE = "transfer", "transfer.md"
#: Names of the papers for methods that have another one here.
_CALLED: Mapping[str, Method] = {"constrained": "typed"}
_T = TypeVar("_T")
#: What shows how far a run is, and what ends it.
Progress: TypeAlias = "AbstractContextManager[tuple[Callable[[RunProgress], None], threading.Event]]"


def read_methods(text: str) -> list[Method]:
    """The methods of a text such as ``zero,few,constrained,formal,rltf``, each once.

    Raises:
        ResourceNotFound: there is no such method.
    """
    from formal_llm.packs.openagi.benchmark.conditions import METHODS

    found: list[Method] = []
    for name in filter(None, map(str.strip, text.split(","))):
        method = _CALLED.get(name) or next((one for one in METHODS if one == name), None)
        if method is None:
            raise ResourceNotFound("method", name, [*METHODS, *_CALLED])
        found.append(method)
    if not found:
        raise ResourceNotFound("method", text, [*METHODS, *_CALLED])
    return list(dict.fromkeys(found))


def trained_llms(names: Sequence[str], methods: Sequence[str], adapter: Path | None) -> dict[str, AdaptedLLM]:
    """For LLMs by name the same with trained adapters, where the method ``rltf`` asks for them.

    Those of ``minilm`` come along; any others are in the folder of a training run.

    Raises:
        FormalLLMError: the adapters fit none of the LLMs.
    """
    from formal_llm.packs.openagi.benchmark.plans import AdaptedLLM

    if "rltf" not in methods:
        if adapter is not None:
            raise FormalLLMError("--adapter is for the method rltf, which is not asked for: --methods formal,rltf")
        return {}
    if adapter is None:
        names, adapter = [name for name in names if name == "minilm"], adapters()
    found: dict[str, AdaptedLLM] = {}
    odd: FormalLLMError | None = None
    for name in names:
        try:
            found[name] = AdaptedLLM(f"{name}+{adapter.name}@{fingerprint(adapter)}", with_adapter(name, adapter))
        except FormalLLMError as error:
            odd = error
    if odd is not None and not found:
        raise odd
    return found


def spread(items: Sequence[_T], limit: int | None) -> list[_T]:
    """At most so many items, spread evenly."""
    if limit is None or limit >= len(items):
        return list(items)
    return [items[place * len(items) // limit] for place in range(limit)]


def transfer_of(
    pack: TaskPack, file: str, numbers: Sequence[int], limit: int | None, settings: AskingSettings
) -> Transfer | None:
    """The plans for the sentences of a file that say one of these tasks, at most so many; None where none does.

    Raises:
        ResourceNotFound, NotationError: the file cannot be read.
    """
    from formal_llm.packs.openagi.benchmark.transfer import Transfer

    if file == NONE:
        return None
    sentences = read_rewordings(pack, file)
    wanted = {pack.tasks[number].description for number in numbers}
    chosen = spread([place for place, task in enumerate(sentences) if task.original in wanted], limit)
    return Transfer(pack, numbers, sentences, chosen, **settings) if chosen else None


@dataclass(frozen=True)
class Asking:
    """Who is asked how.

    Attributes:
        llms: by name.
        methods: the methods.
        trained: see :func:`trained_llms`.
        concurrency: how many plans are made at once.
    """

    llms: Mapping[str, LLM]
    methods: Sequence[Method]
    trained: Mapping[str, AdaptedLLM]
    concurrency: int | None = None


def who_is_asked(
    names: Sequence[str], methods: Sequence[Method], adapter: Path | None, concurrency: int | None
) -> tuple[Asking, list[Skipped]]:
    """The LLMs of these names, their models loaded, and the methods that do not apply to some of them.

    Raises:
        FormalLLMError: no method applies to any of them; the adapters fit none of them.
    """
    from formal_llm.packs.openagi.benchmark.plans import not_asked

    trained = trained_llms(names, methods, adapter)  # first: these say before they load a model what is wrong
    asked = {name: resolve(name) for name in names}
    skipped = not_asked(asked, methods, trained)
    if len(skipped) == len(asked) * len(methods):
        raise FormalLLMError(f"nobody can be asked: {'; '.join(f'{x.llm} {x.method}: {x.why}' for x in skipped)}")
    return Asking(asked, methods, trained, concurrency), skipped


def show_transfer(run: Transfer, asking: Asking, to: Path, form: Form, progress: Progress) -> None:
    """Make the plans for the sentences that are not on record, and print and write the table."""
    from rich.table import Table

    from formal_llm.packs.openagi.benchmark.conditions import METHODS
    from formal_llm.packs.openagi.benchmark.records import Records
    from formal_llm.packs.openagi.benchmark.tables import markdown_lines
    from formal_llm.packs.openagi.benchmark.transfer import HEADS, OTHER, OWN, ToolFigures, lines_of

    with Records(to / FOLDER, run.identity) as records:
        with progress as (show_step, cancel):
            run.run(
                asking.llms, asking.methods, records, trained=asking.trained, concurrency=asking.concurrency,
                on_step=show_step, cancel=cancel,
            )  # fmt: skip
        figures = run.compute_figures(records.join_scores())
    skipped: Sequence[Skipped] = run.list_skipped(asking.llms, asking.methods, asking.trained)
    figures += [ToolFigures(one.llm, one.method, words, 0, note=one.why) for one in skipped for words in (OWN, OTHER)]
    order = [*asking.llms, *(one.name for one in asking.trained.values())]
    figures.sort(key=lambda one: (order.index(one.llm), METHODS.index(one.method)))
    own, other = run.counts
    title = (
        f"What transfers: {own} tasks in the benchmark's sentences and {other} sentences in other words; all tools; in "
        "brackets the middle 95 % over tasks"
    )
    lines = lines_of(figures)
    markdown = markdown_lines(title, HEADS, lines)
    (to / TABLE).write_text(markdown, encoding="utf-8")
    data = json.dumps({"title": title, "figures": [asdict(one) for one in figures]}, indent=1, ensure_ascii=False)
    (to / "transfer.json").write_text(data + "\n", encoding="utf-8")
    if form is not Form.table:
        print_text(data if form is Form.json else markdown)
    else:
        table = Table()
        for place, head in enumerate(HEADS):
            table.add_column(head, justify="right" if place else "left")
        for line in lines:
            table.add_row(*line)
        print_text(title)
        out().print(table)
    err().print(f"on record in {to / FOLDER}; the table: {to / TABLE}")
