"""Ways to score options (formal_llm/llms/scoring.py) with a real model: what each plans, and what it costs.

Sentences of OpenAGI are planned for one by one, greedily, in three sets: ``bench``, the benchmark's own;
``paraphrases``, the same tasks in other words, which nobody tuned on; ``tuning``, paraphrases to tune on. A row is the
mean F1 of the tools with a 95% interval (bootstrap over tasks: the sentences of a task go together), how many plans use
just the right tools, and for a question the CPU time, the tokens that the model read anew, and the options.

Each way begins with an empty memory and keeps what it reads, as in a run of a user. Results are written down
sentence by sentence (--out), and what is there is not measured again; --table only prints it. `random` is the mean
over ten seeds.

Run: OMP_NUM_THREADS=1 python benchmarks/scoring.py [--llm smollm2] [--mode number --mode text ...] [--limit 20]
     [--set bench --set paraphrases] [--wording terse] [--out scoring.jsonl] [--table] [--tokens]
"""

from __future__ import annotations

import argparse
import json
import random
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from formal_llm import Planner, TaskPack
from formal_llm.llms import resolve
from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.planning.task import Task
from formal_llm.planning.walks.wording import Wording, shortened

HERE = Path(__file__).parent
MODES = ("number", "text", "mean", "calibrated")
FILES = {"paraphrases": "paraphrases.toml", "tuning": "paraphrases_tuning.toml"}
SETS = ("bench", *FILES)
#: How often the tasks are drawn anew for an interval.
DRAWS = 2_000
#: The ways to put questions: each from the wording of the pack.
WORDINGS: dict[str, Callable[[Wording], Wording]] = {
    "pack": lambda wording: wording,
    "terse": shortened,
    "unlisted": lambda wording: shortened(wording, "unlisted"),
    "pack, conversation": lambda wording: replace(wording, conversation=True),
    "terse, conversation": lambda wording: replace(shortened(wording), conversation=True),
}
#: A task with its number.
Chosen: TypeAlias = tuple[int, Task]


@dataclass(frozen=True)
class Row:
    """A plan for one sentence.

    Attributes:
        llm, mode, wording: who made it, how options were scored, how questions were put.
        kind: the set of sentences.
        task: the number of the task.
        place: the place of the sentence among those of its set.
        f1: how well its tools agree with those that are called for.
        exact: whether they are the same.
        questions: how many were asked.
        cpu: seconds of CPU time.
        tokens: how many the model read anew.
        asked: how many the questions have.
    """

    llm: str
    mode: str
    wording: str
    kind: str
    task: int
    place: int
    f1: float
    exact: bool
    questions: int
    cpu: float = 0.0
    tokens: int = 0
    asked: int = 0


def sentences(pack: TaskPack, kind: str, limit: int) -> list[tuple[int, Task]]:
    """The first sentences of a set, each with the number of its task; of paraphrases one of each task, then another."""
    if kind == "bench":
        order = random.Random(5).sample(range(len(pack.tasks)), len(pack.tasks))
        return [(number, pack.task(number)) for number in order[:limit]]
    rows = tomllib.loads((HERE / FILES[kind]).read_text(encoding="utf-8"))["paraphrases"]
    rounds = max(len(row["texts"]) for row in rows)
    told = [(row["task"], row["texts"][turn]) for turn in range(rounds) for row in rows if turn < len(row["texts"])]
    return [(number, replace(pack.task(number), description=text)) for number, text in told[:limit]]


def planned(pack: TaskPack, planner: Planner, about: tuple[str, str, str, str], place: int, chosen: Chosen) -> Row:
    """A plan for one sentence, judged by what its task calls for."""
    number, task = chosen
    began = time.process_time()
    plan = planner.plan(task)
    spent = time.process_time() - began
    used = {tool for tool in plan.word if not tool.startswith("input_")}
    wanted = tools_called_for(pack.task(number))
    f1 = 2 * len(used & wanted) / (len(used) + len(wanted))
    usage = plan.usage
    return Row(*about, number, place, f1, used == wanted, usage.questions, spent, asked=usage.input_tokens)


def interval(rows: Sequence[Row]) -> tuple[float, float, float]:
    """The mean F1 over rows, and the bounds of its 95% interval by drawing tasks anew."""
    by_task: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        by_task[row.task].append(row.f1)
    groups, rng, means = list(by_task.values()), random.Random(0), []
    for _ in range(DRAWS):
        drawn = [one for group in rng.choices(groups, k=len(groups)) for one in group]
        means.append(sum(drawn) / len(drawn))
    means.sort()
    every = [one for group in groups for one in group]
    return sum(every) / len(every), means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", default="smollm2", help="a model that writes, run here")
    parser.add_argument("--mode", action="append", help=f"a scoring, again for more; else {', '.join(MODES)}")
    parser.add_argument("--set", action="append", choices=SETS, help="the sentences; else bench and paraphrases")
    parser.add_argument("--limit", type=int, default=20, help="sentences of a set")
    parser.add_argument("--wording", choices=WORDINGS, default="pack", help="how questions are put")
    parser.add_argument("--out", type=Path, default=Path("scoring.jsonl"), help="where results are kept")
    parser.add_argument("--table", action="store_true", help="only print what is there")
    parser.add_argument("--tokens", action="store_true", help="only count the tokens of questions, by wording")
    given = parser.parse_args()
    if given.tokens:
        count_tokens(TaskPack.load("openagi"), given.llm, given.limit)
        return
    kinds, modes = given.set or ["bench", "paraphrases"], given.mode or list(MODES)
    pack = TaskPack.load("openagi")
    if not given.table:
        measure(pack, given.llm, modes, kinds, given.limit, given.out, given.wording)
    print_table(pack, [row for row in read(given.out) if row.place < given.limit], kinds, given.limit)


def read(file: Path) -> list[Row]:
    """The results that are written down."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Row(**json.loads(line)) for line in lines]


def measure(
    pack: TaskPack, name: str, modes: Sequence[str], kinds: Sequence[str], limit: int, out: Path, wording: str
) -> None:
    """Plan for the sentences that have no result yet, and write the results down."""
    import torch

    torch.set_num_threads(1)
    model = resolve(name)
    assert isinstance(model, TransformersLLM), f"{name} does not score what it would write"
    for mode in modes:
        llm = TransformersLLM.of(model.scorer.model, model.scorer.tokenizer, name=name, scoring=mode)
        assert isinstance(llm.scorer, CausalScorer) and isinstance(model.scorer, CausalScorer)
        llm.scorer.reach = model.scorer.reach  # found out by trials, which are no part of what is measured
        llm.scorer.reach.covers(512, llm.renderer.longest)
        planner = pack.planner(llm, wording=WORDINGS[wording](pack.wording))
        for kind in kinds:
            about = (name, mode, wording, kind)
            done = {row.place for row in read(out) if (row.llm, row.mode, row.wording, row.kind) == about}
            for place, chosen in enumerate(sentences(pack, kind, limit)):
                if place in done:
                    continue
                before = llm.scorer.tokens_read
                row = planned(pack, planner, about, place, chosen)
                row = replace(row, tokens=llm.scorer.tokens_read - before)
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(row)) + "\n")


def by_chance(pack: TaskPack, kind: str, limit: int) -> list[Row]:
    """Plans by random answers, ten for each sentence."""
    about, chosen = ("test:random", "", "", kind), sentences(pack, kind, limit)
    planners = [pack.planner(f"test:random={seed}") for seed in range(10)]
    return [planned(pack, one, about, place, task) for one in planners for place, task in enumerate(chosen)]


def count_tokens(pack: TaskPack, name: str, limit: int) -> None:
    """For each wording the tokens of a question, and those behind what it shares with an earlier one of its walk.

    The walks choose at random, the same for each wording. No model reads anything; the texts of options that are scored
    come on top.
    """
    model = resolve(name)
    assert isinstance(model, TransformersLLM), f"{name} does not score what it would write"
    table = Table("wording", "tokens of a question", "new tokens")
    for wording, change in WORDINGS.items():
        planner, whole, new, asked = pack.planner("test:first", wording=change(pack.wording)), 0, 0, 0
        for place, (_, task) in enumerate(sentences(pack, "bench", limit)):
            walk, rng = planner.start(task), random.Random(place)
            before: list[tuple[int, ...]] = []
            while (question := walk.question) is not None:
                ids = model.renderer.tokens(question.messages)
                shared = max((alike(ids, one) for one in before), default=0)
                whole, new, asked = whole + len(ids), new + len(ids) - shared, asked + 1
                before.append(ids)
                walk.answer(rng.randint(1, len(question.options)))
        table.add_row(wording, f"{whole / asked:.0f}", f"{new / asked:.0f}")
    Console(width=100).print(table)


def alike(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def print_table(pack: TaskPack, rows: Sequence[Row], kinds: Sequence[str], limit: int) -> None:
    """A line for each way and set of sentences."""
    table = Table()
    for column in ("scoring", "wording", "sentences", "n", "F1", "95%", "exact", "CPU s", "new tokens", "tokens"):
        table.add_column(column, justify="left" if column in ("scoring", "wording", "sentences") else "right")
    for kind in kinds:
        ways: dict[tuple[str, str], list[Row]] = {("random", ""): by_chance(pack, kind, limit)}
        for row in rows:
            if row.kind == kind:
                ways.setdefault((row.mode, row.wording), []).append(row)
        for (mode, wording), members in ways.items():
            mean, low, high = interval(members)
            asked = sum(row.questions for row in members)
            spent = [sum(row.cpu for row in members) / asked, *(sum(getattr(row, name) for row in members) / asked
                     for name in ("tokens", "asked"))]  # fmt: skip
            cells = ["", "", ""] if mode == "random" else [f"{spent[0]:.2f}", f"{spent[1]:.0f}", f"{spent[2]:.0f}"]
            exact = sum(row.exact for row in members) / len(members)
            count = len({row.place for row in members})
            table.add_row(
                mode, wording, kind, str(count), f"{mean:.3f}", f"{low:.2f}-{high:.2f}", f"{exact:.2f}", *cells
            )
        table.add_section()
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
