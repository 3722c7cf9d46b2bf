"""``formal-llm bench``: plans of several LLMs by several methods, verified, carried out and scored."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TaskID
from typer.core import TyperGroup

from formal_llm.cli.bench_methods import (
    SENTENCES,
    Asking,
    read_methods,
    show_transfer,
    spread,
    trained_llms,
    transfer_of,
)
from formal_llm.cli.bench_tables import Form, Grouping, Shown, tell
from formal_llm.cli.console import (
    EXIT_CODES_HELP,
    command,
    err,
    errors_told,
    progress_bars,
    without_loading_bars,
)
from formal_llm.cli.run import cancelling, make_folder, read_toolkit
from formal_llm.errors import FormalLLMError, InputError, MissingDependency, ResourceNotFound
from formal_llm.llms import LLM, RecordingLLM, resolve
from formal_llm.planning import TaskPack
from formal_llm.tools import Executor

if TYPE_CHECKING:
    from typer._click.core import Command, Context  # typer's own copy of click, which is what its groups take

    from formal_llm.packs.openagi.benchmark.plans import RunProgress
    from formal_llm.packs.openagi.data.samples import TaskData
    from formal_llm.packs.openagi.scores.choice import Scores
    from formal_llm.packs.openagi.scores.score import Score

HELP = f"""Compare LLMs and ways of planning on the tasks of a pack: how many plans are valid, and what they are worth.

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

{EXIT_CODES_HELP}
"""


class Benchmarks(TyperGroup):
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


class TextScore(StrEnum):
    """How texts are compared."""

    bertscore = "bertscore"
    chrf = "chrf"


@dataclass(frozen=True)
class ScoreOptions:
    """What the options for scores say."""

    text: TextScore
    bert: str | None
    clip: str | None
    vit: str | None
    device: str


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
    pack = TaskPack.load("openagi")
    numbers = spread(read_numbers(tasks, pack), limit)
    try:
        from formal_llm.packs.openagi.benchmark.plans import Asked, Trained, not_asked
        from formal_llm.packs.openagi.benchmark.records import Records
        from formal_llm.packs.openagi.benchmark.run import Benchmark
        from formal_llm.packs.openagi.scores.judging import PlanJudge
    except ImportError as error:
        raise MissingDependency(
            f"the benchmark needs libraries: pip install 'formal-llm[openagi]' ({error})"
        ) from error
    names = list(dict.fromkeys(llm or ["builtin"]))
    asked = {name: resolve(name) for name in names}
    wanted: Any = read_methods(methods) if methods else list(dict.fromkeys(one.value for one in method or ALONE))
    count = repeats or (1 if methods else 5)
    without_loading_bars()
    trained = trained_llms(names, wanted, adapter)
    skipped = not_asked(asked, wanted, trained)
    if len(skipped) == len(asked) * len(wanted):
        raise FormalLLMError(f"nobody can be asked: {'; '.join(f'{x.llm} {x.method}: {x.why}' for x in skipped)}")
    settings: Asked = {"repeats": count, "temperature": temperature, "max_tokens": max_tokens}
    other = transfer_of(pack, sentences, numbers, limit, settings) if methods else None
    tools = read_toolkit(pack, toolkit)
    tools.check(pack.cfg, pack.data.get("kinds", {}), missing=True)
    scores = read_scores(ScoreOptions(text_score, bert, clip, vit, device))
    known = task_data(data, to, numbers, samples)
    make_folder(to)
    judge = PlanJudge(Executor(tools, cache=to / "cache"), known, scores, samples=samples, pack=pack)
    run = Benchmark(judge, numbers, **settings)
    with ExitStack() as opened:

        def recorded(name: str, one: LLM) -> LLM:
            return opened.enter_context(RecordingLLM(one, answers_file(to, name)))

        asking = Asking(
            {name: recorded(name, one) for name, one in asked.items()}, wanted,
            {base: Trained(one.name, recorded(one.name, one.llm)) for base, one in trained.items()}, concurrency,
        )  # fmt: skip
        with Records(to, run.identity) as records:
            with cancelling_progress() as (show_step, cancel):
                run.run(
                    asking.llms, wanted, records, trained=asking.trained, concurrency=concurrency, on_step=show_step,
                    cancel=cancel,
                )  # fmt: skip
            rows = records.joined()
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (to / "results.jsonl").write_text(lines, encoding="utf-8")
        shown = [row for row in rows if row["task"] in run.tasks and row["repeat"] < count]
        tell(run, shown, skipped, to, Shown(show, published, grouping, in_cells=methods is not None))
        if other is not None:
            show_transfer(other, asking, to, show, cancelling_progress())


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


def task_data(folder: Path | None, to: Path, numbers: list[int], samples: int) -> dict[int, TaskData]:
    """The task data in a folder; where none is named, those in the folder of ``--out``, which are made if need be.

    Raises:
        ResourceNotFound: there are none.
        InputError: those in the folder of ``--out`` were made for other tasks, or some cannot be used.
    """
    from formal_llm.packs.openagi.data.making import INDEX, make_data
    from formal_llm.packs.openagi.data.samples import read_data

    if folder is not None:
        return read_data(folder)
    make_folder(to)
    own = to / "data"
    if not (own / INDEX).exists():
        err().print(f"making task data in {own}", markup=False)
        make_data(own, tasks=numbers, samples=samples)
    found = read_data(own)
    if lacking := [number for number in numbers if number not in found]:
        raise InputError(
            f"{own} was made for other tasks and has no task {lacking[0]}: name another folder with --out, "
            "or data that have all tasks with --data (formal-llm data openagi makes them)"
        )
    return found


def read_scores(options: ScoreOptions) -> Scores:
    """The scores that the options mean. Checkpoints are loaded at once, before anybody is asked for a plan.

    Raises:
        MissingDependency: MiniLM is wanted and not installed.
        ResourceNotFound, CheckpointError: there is no such checkpoint, or it cannot be had.
        FormalLLMError: the options contradict each other.
    """
    from formal_llm.packs.openagi.scores.choice import Scores
    from formal_llm.packs.openagi.scores.images import SSIM
    from formal_llm.packs.openagi.scores.neural import CLIPScore, ViTSimilarity
    from formal_llm.packs.openagi.scores.text import BERTScore, ChrF

    if options.bert is not None and options.text is not TextScore.bertscore:
        raise FormalLLMError("--bert is for --text-score bertscore")
    if options.text is TextScore.chrf:
        texts: Score = ChrF()
    elif options.bert is not None:
        texts = BERTScore(options.bert, options.device)
    else:
        try:
            texts = Scores.offline().texts
        except MissingDependency as error:
            raise MissingDependency(f"{error}; or compare texts with --text-score chrf") from None
    images: Score = SSIM()
    clip: Score | None = None
    if options.vit is not None:
        images = ViTSimilarity(options.vit, options.device, local_files_only=_only_here(options.vit))
    if options.clip is not None:
        clip = CLIPScore(options.clip, options.device, local_files_only=_only_here(options.clip))
    made = Scores(texts, images, clip)
    wanted = {made.texts: options.bert, made.images: options.vit, made.image_text: options.clip}
    for score, checkpoint in wanted.items():
        if score is not None and checkpoint is not None:
            score.prepare()
    return made


def _only_here(checkpoint: str) -> bool:
    """Whether only this machine is to be asked for a checkpoint: it is a folder, or the hub does not answer."""
    from formal_llm.packs.openagi.experts.loading import hub_answers

    return Path(checkpoint).is_dir() or not hub_answers()


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
