"""``formal-llm bench``: plans of several LLMs by several methods, verified, carried out and scored."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TaskID

from formal_llm.cli.bench_judging import ScoreOptions, TextScore, own_data, read_scores, task_data
from formal_llm.cli.bench_methods import (
    SENTENCES,
    Asking,
    read_methods,
    show_transfer,
    spread,
    transfer_of,
    who_is_asked,
)
from formal_llm.cli.bench_tables import Form, Grouping, TableStyle, tell
from formal_llm.cli.console import (
    PlainGroup,
    check_folder,
    command,
    errors_told,
    needs_extra,
    progress_bars,
    without_loading_bars,
)
from formal_llm.cli.run import cancelling, make_folder, read_toolkit
from formal_llm.errors import ResourceNotFound
from formal_llm.llms import LLM, RecordingLLM
from formal_llm.llms.llm import check_providers
from formal_llm.planning import TaskPack
from formal_llm.tools import Executor

if TYPE_CHECKING:
    from typer._click.core import Command, Context  # typer's own copy of click, which is what its groups take

    from formal_llm.packs.openagi.benchmark.plans import RunProgress
    from formal_llm.packs.openagi.benchmark.records import ScoredPlan
    from formal_llm.packs.openagi.benchmark.run import Benchmark

HELP = """Compare LLMs and ways of planning on the tasks of a pack: how many plans are valid, and what they are worth.

Methods: zero and few ask for a plan in free text; names forces the names of tools one by one; typed does so as OpenAGI
does, where each tool takes what the last one gives; formal asks only for what can still become a valid plan; draft has
the plan written whole and asks where that is none; rltf is formal by the model with trained adapters (--adapter).
Without --method, all that apply to an LLM.

--methods gives the paper's table in one command: one plan of each task by each method (--repeats for more), and a
second table for sentences that say the same tasks in other words. There typed is also called constrained, as in papers.

Everything is on record in the folder of --out. A run that was stopped goes on with the same command; more LLMs, methods
or repeats are added to it.

Examples:

  formal-llm bench openagi --llm test:random --llm builtin --out bench

  formal-llm bench openagi --llm smollm2 --methods zero,few,constrained,formal,rltf --adapter runs/mine/best --out paper

  formal-llm bench openagi --llm openai:gpt-6-luna --method few --method formal --toolkit experts \\
      --clip openai/clip-vit-large-patch14 --vit google/vit-base-patch16-224 --out bench-experts
"""


class Benchmarks(PlainGroup):
    """The benchmarks."""

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """The benchmark of that name, else an error that says which there are."""
        found = super().get_command(ctx, cmd_name)
        if found is None:
            with errors_told():
                raise ResourceNotFound("task pack with a benchmark", cmd_name, self.list_commands(ctx))
        return found


app = typer.Typer(cls=Benchmarks, help="Compare LLMs on tasks or questions.", no_args_is_help=True)


class MethodName(StrEnum):
    """A way of planning."""

    zero = "zero"
    few = "few"
    names = "names"
    typed = "typed"
    formal = "formal"
    rltf = "rltf"
    draft = "draft"


#: The ways that need no training.
ALONE = tuple(one for one in MethodName if one is not MethodName.rltf)


@app.command("openagi", help=HELP)
@command
def bench(
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the benchmark's records.")],
    llm: Annotated[list[str] | None, typer.Option(help="Who answers; see: formal-llm llms. Repeatable.")] = None,
    method: Annotated[list[MethodName] | None, typer.Option(help="A way of planning. Repeatable.")] = None,
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="The paper's table: zero,few,constrained,formal,rltf."),
    ] = None,
    adapter: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Trained adapters for the method rltf; minilm has its own.")
    ] = None,
    sentences: Annotated[
        str, typer.Option(metavar="FILE", help="With --methods: tasks in other words; none: no second table.")
    ] = SENTENCES,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many tasks, and so many sentences, spread evenly.")
    ] = None,
    tasks: Annotated[str, typer.Option(metavar="SPLIT|NUMBERS", help="A split, all, or numbers: 2,3,10.")] = "test",
    toolkit: Annotated[str, typer.Option(help="Which tools.")] = "classical",
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The task data; made in the folder of --out where left out.")
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="How many plans each method makes for each task; 5 where left out, 1 with --methods."),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="On how many samples of a task its plans are carried out.")] = 8,
    concurrency: Annotated[int | None, typer.Option(min=1, help="How many plans are made at once.")] = None,
    temperature: Annotated[float, typer.Option(min=0, help="For free text.")] = 0.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="How long a free text may be.")] = 1024,
    text_score: Annotated[TextScore, typer.Option(help="How texts are compared.")] = TextScore.bertscore,
    bert: Annotated[str | None, typer.Option(metavar="FOLDER", help="The encoder of bertscore; else MiniLM.")] = None,
    clip: Annotated[
        str | None, typer.Option(metavar="CHECKPOINT", help="A CLIP for pictures against texts; else none.")
    ] = None,
    vit: Annotated[
        str | None, typer.Option(metavar="CHECKPOINT", help="A ViT for pictures against pictures; else SSIM.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where the models of the scores run.")] = "cpu",
    show: Annotated[Form, typer.Option(help="How the table is printed; all forms are in the folder.")] = Form.table,
    published: Annotated[bool, typer.Option(help="Show the paper's published figures, too.")] = True,
    grouping: Annotated[
        Grouping, typer.Option(help="Count tasks under the group of their kind, or as the published figures do.")
    ] = Grouping.kind,
) -> None:
    """Run a benchmark and print its table."""
    check_installed()
    from formal_llm.packs.openagi.benchmark.plans import AskingSettings
    from formal_llm.packs.openagi.benchmark.run import Benchmark
    from formal_llm.packs.openagi.scores.judging import PlanJudge

    # All that can be wrong with the arguments is said before a model is loaded.
    names = list(dict.fromkeys(llm or ["builtin"]))
    check_providers(*names)
    check_folder(to)
    pack = TaskPack.load("openagi")
    numbers = spread(read_numbers(tasks, pack), limit)
    wanted: Any = read_methods(methods) if methods else list(dict.fromkeys(one.value for one in method or ALONE))
    count = repeats or (1 if methods else 5)
    settings: AskingSettings = {"repeats": count, "temperature": temperature, "max_tokens": max_tokens}
    other = transfer_of(pack, sentences, numbers, limit, settings) if methods else None
    tools = read_toolkit(pack, toolkit)
    tools.check(pack.cfg, pack.data.get("kinds", {}), missing=True)
    known = None if data is None else task_data(data, numbers)
    without_loading_bars()
    scores = read_scores(ScoreOptions(text_score, bert, clip, vit, device))
    asking, skipped = who_is_asked(names, wanted, adapter, concurrency)
    make_folder(to)
    if known is None:
        known = own_data(to, numbers, samples)
    judge = PlanJudge(Executor(tools, cache=to / "cache"), known, scores, samples=samples, pack=pack)
    run = Benchmark(judge, numbers, **settings)
    with _recorded(asking, to) as recorded:
        rows = _all_made(run, recorded, to)
        shown = [row for row in rows if row["task"] in run.tasks and row["repeat"] < count]
        tell(run, shown, skipped, to, TableStyle(show, published, grouping, in_cells=methods is not None))
        if other is not None:
            show_transfer(other, recorded, to, show, cancelling_progress())


def check_installed() -> None:
    """Raise where the libraries are not there that the benchmark needs.

    Raises:
        MissingDependency: they are not; how to install them.
    """
    with needs_extra("openagi", "the benchmark"):
        import formal_llm.packs.openagi.benchmark.run
        import formal_llm.packs.openagi.scores.judging  # noqa: F401


@contextmanager
def _recorded(asking: Asking, to: Path) -> Iterator[Asking]:
    """The same LLMs, with what they answer on record."""
    from formal_llm.packs.openagi.benchmark.plans import AdaptedLLM

    with ExitStack() as opened:

        def recorded(name: str, one: LLM) -> LLM:
            return opened.enter_context(RecordingLLM(one, answers_file(to, name)))

        yield replace(
            asking,
            llms={name: recorded(name, one) for name, one in asking.llms.items()},
            trained={base: AdaptedLLM(one.name, recorded(one.name, one.llm)) for base, one in asking.trained.items()},
        )


def _all_made(run: Benchmark, asking: Asking, to: Path) -> list[ScoredPlan]:
    """All plans of a benchmark with their scores, those made that are not on record; written, too."""
    from formal_llm.packs.openagi.benchmark.records import Records

    with Records(to, run.identity) as records:
        with cancelling_progress() as (show_step, cancel):
            run.run(
                asking.llms, asking.methods, records, trained=asking.trained, concurrency=asking.concurrency,
                on_step=show_step, cancel=cancel,
            )  # fmt: skip
        rows = records.join_scores()
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (to / "results.jsonl").write_text(lines, encoding="utf-8")
    return rows


def read_numbers(text: str, pack: TaskPack) -> list[int]:
    """The numbers of the tasks that ``--tasks`` means.

    Raises:
        ResourceNotFound: there is no such split or task.
    """
    if re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)*", text):
        numbers = [int(part) for part in text.split(",")]
        for number in numbers:
            pack.task(number)
        return numbers
    if text == "all":
        return list(range(len(pack.tasks)))
    pack.split(text)
    return list(pack.splits[text])


@contextmanager
def cancelling_progress() -> Iterator[tuple[Callable[[RunProgress], None], threading.Event]]:
    """What shows how far a run is, and what Ctrl-C sets."""
    cancel = threading.Event()
    with _progress() as show_step, cancelling(cancel):
        yield show_step, cancel


@contextmanager
def _progress() -> Iterator[Callable[[RunProgress], None]]:
    """How far the phases are, on standard error."""
    known: dict[str, TaskID] = {}
    with progress_bars() as bars:

        def show(step: RunProgress) -> None:
            if step.phase not in known:
                known[step.phase] = bars.add_task("", said=step.phase)
            said = f"{step.phase} {step.said}"[:60].ljust(60)
            bars.update(known[step.phase], completed=step.done, total=step.total, said=said)

        yield show


def answers_file(folder: Path, name: str) -> Path:
    """The file for the answers of an LLM."""
    (folder / "answers").mkdir(exist_ok=True)
    return folder / "answers" / f"{re.sub(r'[^A-Za-z0-9._=-]+', '_', name)}.jsonl"
