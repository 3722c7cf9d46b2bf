"""``formal-llm bench``: plans of several LLMs by several methods, verified, carried out and scored."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.progress import TaskID

from formal_llm.cli.bench_tables import Form, Grouping, TableStyle, tell
from formal_llm.cli.console import (
    check_folder,
    command,
    err,
    needs_extra,
    progress_bars,
    without_loading_bars,
)
from formal_llm.cli.options import with_request_options
from formal_llm.cli.run import cancelling, make_folder, read_toolkit
from formal_llm.errors import FormalLLMError, InputError, MissingDependency, ResourceNotFound
from formal_llm.llms import LLM, RecordedLLM, resolve
from formal_llm.llms.providers import check_providers
from formal_llm.planning import TaskPack
from formal_llm.tools import Executor

if TYPE_CHECKING:
    from formal_llm.packs.openagi.benchmark.conditions import Method
    from formal_llm.packs.openagi.benchmark.plans import AdaptedLLM, AskingSettings, Plans, RunProgress, Skipped
    from formal_llm.packs.openagi.benchmark.records import ScoredPlan
    from formal_llm.packs.openagi.data.samples import TaskData
    from formal_llm.packs.openagi.scores.choice import Scores
    from formal_llm.packs.openagi.scores.score import Score


#: Names of the papers for methods that have another one here.
_CALLED: Mapping[str, Method] = {"constrained": "typed"}
_T = TypeVar("_T")


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

    Raises:
        FormalLLMError: the adapters fit none of the LLMs.
    """
    from formal_llm.llms.local.model import fingerprint, with_adapter
    from formal_llm.packs.openagi.benchmark.plans import AdaptedLLM

    if "rltf" not in methods:
        if adapter is not None:
            raise FormalLLMError("--adapter is for the method rltf, which is not asked for: --methods formal,rltf")
        return {}
    if adapter is None:
        return {}
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
    """At most ``most`` items, spread evenly."""
    if limit is None or limit >= len(items):
        return list(items)
    return [items[place * len(items) // limit] for place in range(limit)]


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
    names: Sequence[str], methods: Sequence[Method], adapter: Path | None, concurrency: int | None,
    in_batches: bool = False,
) -> tuple[Asking, list[Skipped]]:  # fmt: skip
    """The LLMs of these names, their models loaded, and the methods that do not apply to some of them.

    With ``in_batches`` they are asked in batches.

    Raises:
        FormalLLMError: no method applies to any of them; the adapters fit none of them; one is not asked in batches.
    """
    from formal_llm.packs.openagi.benchmark.plans import not_asked

    trained = trained_llms(names, methods, adapter)  # first: these report what is wrong before they load a model
    asked = {name: batched(name) if in_batches else resolve(name) for name in names}
    skipped = not_asked(asked, methods, trained)
    if len(skipped) == len(asked) * len(methods):
        raise FormalLLMError(f"nobody can be asked: {'; '.join(f'{x.llm} {x.method}: {x.why}' for x in skipped)}")
    return Asking(asked, methods, trained, concurrency), skipped


def batched(name: str) -> LLM:
    """The LLM of that name, asked in batches."""
    from formal_llm.llms.hosted.batches import BatchedLLM

    return BatchedLLM(name)


class TextScore(StrEnum):
    """How texts are compared."""

    bertscore = "bertscore"
    chrf = "chrf"


@dataclass(frozen=True)
class ScoreOptions:
    """The options for scores."""

    text: TextScore
    bert: str | None
    clip: str | None
    vit: str | None
    device: str


def task_data(folder: Path, numbers: list[int]) -> dict[int, TaskData]:
    """The task data in a folder.

    Raises:
        ResourceNotFound: there are none, or none for one of these tasks.
        InputError: some cannot be used.
    """
    from formal_llm.packs.openagi.data.samples import read_data

    found = read_data(folder)
    if missing := [number for number in numbers if number not in found]:
        raise ResourceNotFound("data for the task", str(missing[0]), map(str, found))
    return found


def own_data(to: Path, numbers: list[int], samples: int) -> dict[int, TaskData]:
    """The task data in the folder of ``--out``, which are made if need be.

    Raises:
        InputError: they were made for other tasks, or some cannot be used.
    """
    from formal_llm.packs.openagi.data.making import INDEX, make_data

    own = to / "data"
    if not (own / INDEX).exists():
        err().print(f"making task data in {own}")
        make_data(own, tasks=numbers, samples=samples)
    try:
        return task_data(own, numbers)
    except ResourceNotFound as error:
        raise InputError(
            f"{own} was made for other tasks and has no task {error.name}: name another folder with --out, "
            "or data that have all tasks with --data (formal_llm.packs.openagi.data.making.make_data makes them)"
        ) from None


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
            texts = Scores.make_offline().texts
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


HELP = """Compare LLMs and ways of planning on the tasks of a pack: how many plans are valid, and what they are worth.

Methods: zero and few ask for a plan in free text; typed offers the names of tools one by one as OpenAGI does,
where each tool takes what the last one gives; formal asks only for what can still become a valid plan; draft has
the plan written whole and asks where that is none; look asks once for all steps; rltf is formal by the model with
trained adapters (--adapter).
Without --method, all that apply to an LLM.

--methods gives the paper's table in one command: one plan of each task by each method (--repeats for more). There
typed is also called constrained, as in papers.

Everything is on record in the folder of --out. A run that was stopped goes on with the same command; more LLMs, methods
or repeats are added to it.

Examples:

  formal-llm bench openagi --llm test:random --llm builtin --out bench

  formal-llm bench openagi --llm smollm2 --methods zero,few,constrained,formal,rltf --adapter runs/mine/best --out paper

  formal-llm bench openagi --llm openai:gpt-6-luna --method few --method formal --toolkit experts \\
      --clip openai/clip-vit-large-patch14 --vit google/vit-base-patch16-224 --out bench-experts
"""


class MethodName(StrEnum):
    """A way of planning."""

    zero = "zero"
    few = "few"
    typed = "typed"
    formal = "formal"
    rltf = "rltf"
    draft = "draft"
    look = "look"


#: The ways that need no training.
ALONE = tuple(one for one in MethodName if one is not MethodName.rltf)


@command
@with_request_options
def bench(
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the benchmark's records.")],
    llm: Annotated[list[str] | None, typer.Option(help="Who answers; see: formal-llm list llms. Repeatable.")] = None,
    method: Annotated[list[MethodName] | None, typer.Option(help="A way of planning. Repeatable.")] = None,
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="The paper's table: zero,few,constrained,formal,rltf."),
    ] = None,
    adapter: Annotated[Path | None, typer.Option(metavar="DIR", help="Trained adapters for the method rltf.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many tasks, spread evenly.")] = None,
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
    in_batches: Annotated[
        bool, typer.Option("--batch", help="Ask in batches (openai:, anthropic:), at half the price, up to a day each.")
    ] = False,
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
    from formal_llm.packs.openagi.benchmark.plans import Benchmark
    from formal_llm.packs.openagi.scores.judging import PlanJudge

    # All that can be wrong with the arguments is reported before a model is loaded.
    names = list(dict.fromkeys(llm or ["builtin"]))
    check_providers(*names)
    check_folder(to)
    pack = TaskPack.load("openagi")
    numbers = spread(read_numbers(tasks, pack), limit)
    wanted: Any = read_methods(methods) if methods else list(dict.fromkeys(one.value for one in method or ALONE))
    count = repeats or (1 if methods else 5)
    settings: AskingSettings = {"repeats": count, "temperature": temperature, "max_tokens": max_tokens}
    tools = read_toolkit(pack, toolkit)
    tools.check(pack.cfg, pack.data.get("kinds", {}), missing=True)
    known = None if data is None else task_data(data, numbers)
    without_loading_bars()
    scores = read_scores(ScoreOptions(text_score, bert, clip, vit, device))
    asking, skipped = who_is_asked(names, wanted, adapter, concurrency, in_batches)
    make_folder(to)
    if known is None:
        known = own_data(to, numbers, samples)
    judge = PlanJudge(Executor(tools, cache=to / "cache"), known, scores, samples=samples, pack=pack)
    run = Benchmark(judge, numbers, **settings)
    with record_answers(asking, to) as recorded:
        rows = complete_plans(run, recorded, to)
        shown = [row for row in rows if row["task"] in run.tasks and row["repeat"] < count]
        tell(run, shown, skipped, to, TableStyle(show, published, grouping, in_cells=methods is not None))


def check_installed() -> None:
    """Raise where the libraries are not there that the benchmark needs.

    Raises:
        MissingDependency: they are not; how to install them.
    """
    with needs_extra("openagi", "the benchmark"):
        import formal_llm.packs.openagi.benchmark.plans
        import formal_llm.packs.openagi.scores.judging  # noqa: F401


@contextmanager
def record_answers(asking: Asking, to: Path) -> Iterator[Asking]:
    """The same LLMs, with what they answer on record."""
    from formal_llm.packs.openagi.benchmark.plans import AdaptedLLM

    with ExitStack() as opened:

        def recorded(name: str, one: LLM) -> LLM:
            return opened.enter_context(RecordedLLM(one, answers_file(to, name), again=True))

        for one in asking.llms.values():
            if isinstance(one, AbstractContextManager):  # asked in batches
                opened.enter_context(one)
        yield replace(
            asking,
            llms={name: recorded(name, one) for name, one in asking.llms.items()},
            trained={base: AdaptedLLM(one.name, recorded(one.name, one.llm)) for base, one in asking.trained.items()},
        )


def complete_plans(run: Plans, asking: Asking, to: Path) -> list[ScoredPlan]:
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
    with _show_progress() as show_step, cancelling(cancel):
        yield show_step, cancel


@contextmanager
def _show_progress() -> Iterator[Callable[[RunProgress], None]]:
    """How far the phases are, on standard error."""
    known: dict[str, TaskID] = {}
    with progress_bars() as bars:

        def show(step: RunProgress) -> None:
            if step.phase not in known:
                known[step.phase] = bars.add_task("", said=step.phase)
            status = f"{step.phase} {step.said}"[:60].ljust(60)
            bars.update(known[step.phase], completed=step.done, total=step.total, said=status)

        yield show


def answers_file(folder: Path, name: str) -> Path:
    """The file for the answers of an LLM."""
    (folder / "answers").mkdir(exist_ok=True)
    return folder / "answers" / f"{_file_name(name)}.db"


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._=-]+", "_", name)
