"""How many questions the search for the most probable plan asks, beside asking them all and beside following answers.

Run: python benchmarks/best_first.py [--models N]

The answerers are test doubles with probabilities (``WeightedLLM``): unsure ones, whose probabilities are spread evenly
over all distributions, and surer ones. ``all`` asks every question that any plan can come by, which is what it takes to
know the most probable plan without a search. The numbers of questions are means over the models.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import isclose
from statistics import fmean

from rich.console import Console
from rich.table import Table

from formal_llm import CFG, Answer, Budget, Limits, Planner, TaskPack, Walk, WeightedLLM

#: The longest plans that a length penalty may favour, in moves of the automaton.
STEPS = 40


def openagi(*tools: str) -> CFG:
    """OpenAGI with these tools only, and each input at most twice."""
    cfg = TaskPack.load("openagi").cfg
    inputs = {name for name in cfg.terminals if name.startswith("input")}
    none = {name: 0 for name in cfg.terminals if name not in {*tools, *inputs}}
    return cfg.with_limits(cfg.limits & Limits({**none, **dict.fromkeys(inputs, 2)}))


LANGUAGES = {
    "OpenAGI, 4 tools": openagi("colorization", "captioning", "translation", "question_answering"),
    "OpenAGI, 6 tools": openagi(
        "colorization", "denoising", "captioning", "translation", "summarization", "question_answering"
    ),
    "a cup of tea": CFG.from_string(
        """
        %limit 1
        S -> boil Leaves Steep Extras serve
        Leaves -> green | black | oolong | rooibos
        Steep -> short | long
        Extras -> ε | milk Extras | sugar Extras | lemon Extras | honey Extras
        """
    ),
    "6 errands once each": CFG.from_string("%limit 1\n%require 1 a b c d e f\nS -> X S | X\nX -> a|b|c|d|e|f"),
}


def every_plan(walk: Walk, model: WeightedLLM, likely: float = 1.0) -> Iterator[tuple[float, bool]]:
    """Walk everywhere: (probability, whether a plan ends here rather than a question is asked) of each place."""
    question = walk.question
    yield likely, question is None
    if question is None:
        return
    probabilities = model.choose(question).probabilities
    assert probabilities is not None
    for number, probability in probabilities.items():
        branch = walk.fork()
        branch.answer(Answer((number,), probabilities))
        yield from every_plan(branch, model, likely * probability)


def measure(cfg: CFG, sharpness: float, models: int) -> list[str]:
    """The cells of one language and one kind of model."""
    questions: dict[str, list[int]] = {name: [] for name in ("all", "best-first", "penalty", "greedy")}
    right = {"best-first": 0, "greedy": 0}
    plans = 0
    planner = Planner(cfg)
    for seed in range(models):
        model = WeightedLLM(seed, sharpness=sharpness)
        places = list(every_plan(planner.start("t"), model))
        ends = [likely for likely, finished in places if finished]
        plans = len(ends)
        questions["all"].append(len(places) - plans)
        for name in right:
            plan = Planner(cfg, model, search=name).plan("t")  # type: ignore[arg-type]
            questions[name].append(plan.usage.questions)
            right[name] += isclose(plan.probability or 0.0, max(ends), rel_tol=1e-9)
        longer = Planner(cfg, model, search="best-first", length_penalty=1.0, budget=Budget(steps=STEPS))
        questions["penalty"].append(longer.plan("t").usage.questions)
    asked = [f"{fmean(questions[name]):,.1f}" for name in ("all", "best-first", "penalty", "greedy")]
    found = [f"{right[name] / models:.0%}" for name in ("best-first", "greedy")]
    return [f"{plans:,}", *asked, *found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=10, help="models of each kind")
    models = parser.parse_args().models
    table = Table(title=f"Questions per plan, means over {models} models; is it the most probable?")
    columns = ("plans", "all", "best-first", f"penalty 1, {STEPS} moves", "greedy")
    table.add_column("language")
    table.add_column("model")
    for column in (*columns, "best-first finds it", "greedy finds it"):
        table.add_column(column, justify="right")
    for language, cfg in LANGUAGES.items():
        for kind, sharpness in (("unsure", 1.0), ("surer", 4.0)):
            table.add_row(language, kind, *measure(cfg, sharpness, models))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
