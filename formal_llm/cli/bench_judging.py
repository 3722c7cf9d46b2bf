"""What plans are judged by in ``formal-llm bench openagi``: task data, and the scores that the options mean."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.cli.console import err
from formal_llm.errors import FormalLLMError, InputError, MissingDependency, ResourceNotFound

if TYPE_CHECKING:
    from formal_llm.packs.openagi.data.samples import TaskData
    from formal_llm.packs.openagi.scores.choice import Scores
    from formal_llm.packs.openagi.scores.score import Score


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
            "or data that have all tasks with --data (formal-llm data openagi makes them)"
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
