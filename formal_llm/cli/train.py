"""``formal-llm train``: train a local model on the rewards of its valid plans."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_origin

import typer

from formal_llm import authored
from formal_llm.cli.console import check_folder, command, counted, err, exit_code, print_text, without_loading_bars
from formal_llm.cli.console import settings as console_settings
from formal_llm.errors import FormalLLMError, InputError, NoValidPlan, TrainingError
from formal_llm.rltf.settings import Settings

if TYPE_CHECKING:
    from formal_llm.packs.training import Ingredients
    from formal_llm.rltf.trainer import Trained

HELP = """Train a model that runs here on the rewards of its plans (RLTF), through LoRA adapters.

The settings stand in a recipe: a TOML file, or the name of one that comes with formal_llm (minilm-demo,
minilm-rewordings, openagi, smollm2-cpu, tiny; single-gpu for large models). --set changes one of them, and can be
repeated. Several values have commas between them: --set targets=q_proj,v_proj.

The folder of --out gets the log, checkpoints, the adapters (final, best) in the format of peft, and report.md. Ctrl-C
ends the run after the update that is under way; --resume goes on exactly where it was.

Examples:

  formal-llm train minilm-demo --out runs/demo

  formal-llm train openagi --set model=transformers:lmsys/vicuna-7b-v1.5 --set advantage=rloo --out runs/vicuna

  torchrun --nproc-per-node 2 -m formal_llm train openagi --set processes=2 --out runs/two

The settings, with what holds where the recipe does not name them:

"""
HELP += "\n".join(f"  {name} = {one.default!r}: {one.description}" for name, one in Settings.model_fields.items())
_INTERRUPTED = 130


def recipes(begun: str) -> list[str]:
    """The shipped recipes whose name begins so; files are completed by the shell."""
    return [name for name in authored.names("training") if name.startswith(begun)]


@command
def train(
    recipe: Annotated[
        str, typer.Argument(help="A recipe: a TOML file, or the name of a shipped one.", autocompletion=recipes)
    ],
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the run.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting in place of the recipe's. Repeatable."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in that folder.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")] = False,
) -> None:
    """Train a model."""
    first = os.environ.get("RANK", "0") == "0"  # of the processes that torchrun started; the others print nothing
    try:
        settings = read_settings(recipe, set_ or ())
        if ":" in settings.reward and str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))  # as for python -m: a reward of one's own is found where one stands
        if dry_run:
            if first:
                print_text("\n".join(describe_run(settings, to)))
            return
        trained = _run_training(settings, to, resume)
    except FormalLLMError as error:
        if first or console_settings.debug:
            raise
        raise typer.Exit(exit_code(error)) from None
    if first:
        print_text("\n".join(_describe_results(trained)))
    if trained.reason == "interrupted":
        if first:
            again = _format_command(recipe, to, set_ or ())
            err().print(f"interrupted after update {trained.step}; go on with: {again}", style="yellow")
        raise typer.Exit(_INTERRUPTED)


def read_settings(recipe: str, changes: Sequence[str]) -> Settings:
    """The settings of a recipe, with those that the command line changes.

    Args:
        recipe: the path, or the name of an authored one.
        changes: settings that count instead of the recipe's, each as ``NAME=VALUE``.

    Raises:
        ResourceNotFound: there is no such recipe.
        InputError: a change is no ``NAME=VALUE``, or a setting is changed twice.
        NotationError: a setting that is none, or has a value that it cannot have; the message names it and the place.
    """
    found = Settings.read(authored.find("training", recipe, (".toml",)))
    changed: dict[str, object] = {}
    for change in changes:
        name, given, text = change.partition("=")
        if not given or name in changed:
            problem = "it is set twice" if given else "there is no = in it"
            raise InputError(f"--set {change}: {problem}; give each setting once, as NAME=VALUE")
        field = Settings.model_fields.get(name)
        several = field is not None and get_origin(field.annotation) is tuple
        changed[name] = tuple(filter(None, text.split(","))) if several else text
    if not changed:
        return found
    return Settings.of({**found.model_dump(exclude_unset=True), **changed}, "--set")


def _run_training(settings: Settings, folder: Path, resume: bool) -> Trained:
    """Train, in as many processes as there are."""
    from formal_llm.packs.training import Ingredients, trainer_of
    from formal_llm.rltf.distributed import world
    from formal_llm.rltf.metrics_log import LOG
    from formal_llm.rltf.run_view import RunView
    from formal_llm.rltf.setup import slow_threads

    if (folder / LOG).exists() and not resume:  # reported before a large model is loaded
        raise TrainingError(f"{folder} has a run already: go on with it (--resume), or give another folder")
    check_folder(folder)
    without_loading_bars()
    with world(settings.processes) as processes:
        parts = Ingredients.of(settings, folder)
        if processes.first:
            for note in (*parts.notes, *_warn_of_idle(settings, processes.size)):
                err().print(f"note: {note}", style="yellow")
        views = [RunView(parts.updates, console=err())] if processes.first else []
        trainer = trainer_of(settings, folder, world=processes, views=views, ingredients=parts)
        if processes.first and (slow := slow_threads(trainer.setup)):
            err().print(f"note: {slow}", style="yellow")
        return trainer.run(resume=resume)


def _warn_of_idle(settings: Settings, processes: int) -> Iterator[str]:
    """That there are more processes than work."""
    if processes > settings.tasks_per_update:
        spare = processes - settings.tasks_per_update
        yield (
            f"an update has {counted(settings.tasks_per_update, 'task')}, and each is one process's: {spare} of "
            f"{processes} processes wait; raise tasks_per_update"
        )


# -- what is said ------------------------------------------------------------------------------------------------------


def describe_run(settings: Settings, folder: Path) -> Iterator[str]:
    """What a run would do, line by line: its settings, its tasks, its weights."""
    from formal_llm.packs.training import Ingredients, policy_of

    without_loading_bars()
    parts = Ingredients.of(settings)
    for name, value in settings.model_dump(mode="json", exclude_none=True).items():
        yield f"{name} = {json.dumps(value)}"
    yield ""
    yield from (f"note: {note}" for note in parts.notes)
    yield f"{counted(len(parts.tasks), 'task')} to train on, with the number of their plans:"
    yield from (f"  {count}  {task.description}" for task, count in zip(parts.tasks, _count_plans(parts), strict=True))
    yield f"{counted(len(parts.held_out), 'task')} held out:"
    yield from (f"  {task.description}" for task in parts.held_out)
    if parts.validation:
        yield f"{counted(len(parts.validation), 'task')} for validation, which tell which adapters are best"
    policy = policy_of(settings)
    yield f"{policy.trainable:,} of {policy.size:,} weights would be trained"
    warm = f" after {settings.warm_start} of warm start" if settings.warm_start else ""
    yield f"{counted(parts.updates - settings.warm_start, 'update')}{warm}, into {folder}; nothing was written"


def _count_plans(parts: Ingredients) -> list[str]:
    """How many plans each task has, as texts of the same width; which ones ``exact`` lists all of."""
    try:
        counts = parts.counts()
    except NoValidPlan as error:
        raise TrainingError(f"a task to train on has no plan: {error}") from error
    shown = ["unknown" if n is None else "infinite" if math.isinf(n) else f"{n:,.0f}" for n in counts]
    width = max(map(len, shown))
    return [one.rjust(width) for one in shown]


def _describe_results(trained: Trained) -> Iterator[str]:
    """What came out."""
    from formal_llm.rltf.checkpoint import BEST, FINAL
    from formal_llm.rltf.report import REPORT

    for name, value in trained.after.items():
        before = f"held-out {name}: {trained.before.get(name, math.nan):.3f} before"
        if trained.judged == trained.step:
            yield f"{before}, {value:.3f} after"
        elif trained.judged:
            yield f"{before}, {value:.3f} after update {trained.judged}, the last that was judged"
        else:
            yield f"{before}; not judged since"
    folder = trained.folder
    yield from (str(folder / name) for name in (FINAL, BEST, REPORT) if (folder / name).exists())


def _format_command(recipe: str, to: Path, changes: Sequence[str]) -> str:
    """The command that continues, in as many processes as there are."""
    words = ["formal-llm", "train", recipe]
    if (size := os.environ.get("WORLD_SIZE", "1")) != "1":
        here = os.environ.get("LOCAL_WORLD_SIZE", size)
        launcher = ["torchrun", *(["--standalone"] if here == size else []), "--nproc-per-node", here]
        words = [*launcher, "-m", "formal_llm", "train", recipe]
    words += [word for change in changes for word in ("--set", change)]
    return shlex.join([*words, "--out", str(to), "--resume"])
