"""``formal-llm calibrate``: how often an LLM is right at each confidence, and a temperature that corrects it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formal_llm.authored.files import parse_json, read_lines
from formal_llm.authored.tables import Items, Keys, problems
from formal_llm.cli import options
from formal_llm.cli.batch import TASK, task_of
from formal_llm.cli.console import (
    check_writable,
    command,
    counted,
    err,
    out,
    print_text,
    progress_bars,
    without_loading_bars,
)
from formal_llm.cli.sources import LoadedRules, load
from formal_llm.errors import FormalLLMError, InputError, LLMError, NotationError
from formal_llm.llms import LLM, Answer, resolve
from formal_llm.llms.calibration import Calibration, Judged, reliability
from formal_llm.llms.llm import BatchLLM, ask, check_providers
from formal_llm.llms.scoring import named, weights
from formal_llm.planning import Planner, Task
from formal_llm.planning.walks.wording import adapt_wording

if TYPE_CHECKING:
    from formal_llm.automata.models.automaton import Word
    from formal_llm.llms.local.scorer import PromptScorer
    from formal_llm.rltf.known import KnownQuestion

HELP = """Measure how often an LLM is right where it says so, and fit a temperature that mends its probabilities.

It is asked the questions on the way to plans that are known to be good. An option is right where it leads on to one of
them. Half of the tasks are to fit the temperature, on the others it is measured: as the expected calibration error (how
far the probability of what is chosen is from the share of right choices) and in a table.

Of the pack openagi the tools are known that each task calls for. For other rules, --plans names a file with a JSON
object on each line: a task and the word of a good plan, {"task": "Cook dinner", "word": ["wok", "beef"]}. A task with
several good plans has several lines.

Examples:

  formal-llm calibrate openagi --llm smollm2 --out smollm2.json

  formal-llm plan openagi 7 --llm calibrated:smollm2.json

  formal-llm plan openagi 7 --llm sure:0.6:calibrated:smollm2.json      asks you wherever it is less sure than 0.6
"""
#: How many questions are asked together.
_TOGETHER = 32
#: The thresholds that are shown.
_SURE = (0.5, 0.6, 0.7, 0.8, 0.9)
_PLAN = Keys({**TASK.known, "word": Items(str)}, needed=("task", "word"))


@command
def calibrate(
    source: options.SourceArgument,
    llm: options.LLMOption = "builtin",
    out_: Annotated[Path | None, typer.Option("--out", help="Where what is fitted goes, for calibrated:FILE.")] = None,
    plans: Annotated[str | None, typer.Option("--plans", metavar="FILE", help="Tasks with known plans.")] = None,
    tasks: Annotated[str, typer.Option(help="Of a pack: a split, numbers as in 0,7,20-25, or all.")] = "all",
    most: Annotated[int, typer.Option(min=2, help="The most tasks; they are drawn at random.")] = 40,
    count: Annotated[int, typer.Option(min=1, help="Along how many known plans of a task is asked.")] = 1,
    held_out: Annotated[float, typer.Option(min=0.0, max=0.9, help="The share of tasks not fitted on.")] = 0.5,
    mix: Annotated[
        str | None,
        typer.Option(metavar="WAY,WAY", help="Of a model that writes and runs here: fit weights of ways to score."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all draws.")] = 0,
    as_json: options.JsonOption = False,
) -> None:
    """Fit a temperature."""
    from formal_llm.rltf.known import questions_of  # what trains needs pydantic, which takes time to import

    check_writable(out_)
    check_providers(llm)
    ways = None if mix is None else weights(mix.replace(",", "+"))
    rules = load(source)
    planner = Planner(rules.source, "test:first", wording=rules.wording, constraints=rules.constraints)
    known = read_plans(plans, rules) if plans is not None else _list_references(rules, planner, tasks)
    if len(known) < 2:
        raise InputError(
            f"{counted(len(known), 'task')} with known plans: at least 2 are needed, to fit and to measure"
        )
    chosen = random.Random(f"{seed} tasks").sample(list(known), min(most, len(known)))
    cut = min(round(len(chosen) * held_out), len(chosen) - 1)
    without_loading_bars()
    who = resolve(llm)
    scorer = None if ways is None else _mix_modes(who, llm, ways)
    planner.wording = adapt_wording(planner.wording, who)
    questions = questions_of(planner, {task: known[task] for task in chosen}, count=count, seed=seed)
    if scorer is not None:
        llm = fit_mixture(scorer, llm, [one for one in questions if one.index >= cut])
    judged = answers(who, questions)
    measured = [one for question, one in zip(questions, judged, strict=True) if one and question.index < cut]
    fitted = [one for question, one in zip(questions, judged, strict=True) if one and question.index >= cut]
    if not fitted or (cut and not measured):
        raise LLMError(f"{llm} tells no probabilities, so there is nothing to calibrate; formal-llm llms lists others")
    found = Calibration.fit(llm, fitted, measured)
    if out_ is not None:
        found.save(out_)
    if as_json:
        tables = {
            name: [asdict(one) for one in reliability(measured, t)]
            for name, t in (("before", 1.0), ("after", found.temperature))
        }
        print_text(json.dumps({**asdict(found), "reliability": tables}, indent=2))
    else:
        _report_calibration(found, measured, out_)


def _mix_modes(who: LLM, name: str, ways: Mapping[str, float]) -> PromptScorer:
    """The scorer of a model, which scores in these ways from now on."""
    from formal_llm.llms.local.scorer import PromptScorer  # needs numpy, which takes time to import

    scorer = getattr(who, "scorer", None)
    if not isinstance(scorer, PromptScorer):
        raise InputError(f"--mix is for models that write and run here (transformers:MODEL, smollm2), not for {name}")
    scorer.scoring = ways
    return scorer


def fit_mixture(scorer: PromptScorer, name: str, known: Sequence[KnownQuestion]) -> str:
    """Fit the weights of the ways in which a model scores; the provider string of the model with them."""
    from formal_llm.llms.local.mixing import fit_weights  # as above

    asked, right = [one.question for one in known], [one.right for one in known]
    scorer.scoring = fit_weights(scorer, asked, right, list(scorer.scoring))
    scorer.forget()
    mark = ":" if name.partition(":")[0] == "smollm2" else "?"
    model, _, rest = name.partition(mark)
    kept = [part for part in rest.split("&") if part and not part.startswith("scoring=")]
    return f"{model}{mark}{'&'.join([*kept, f'scoring={named(scorer.scoring)}'])}"


def read_plans(name: str, rules: LoadedRules) -> dict[Task, list[Word]]:
    """The tasks of a file, each with its known plans.

    Raises:
        NotationError: the file cannot be read, or a line is no task with a plan; says which.
    """
    found: dict[Task, list[Word]] = {}
    for number, line in enumerate(read_lines(name), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            data = parse_json(line, once=True)
            for wrong in problems(data, _PLAN):
                raise ValueError(f'{wrong.problem}; a line is like {{"task": ..., "word": [...]}}')
            assert isinstance(data, dict)
            word = tuple(data.pop("word"))
            found.setdefault(task_of(data, rules), []).append(word)
        except (FormalLLMError, ValueError, TypeError) as error:
            raise NotationError(str(error), file=name, line=number, source_line=line) from None
    return found


def _list_references(rules: LoadedRules, planner: Planner, text: str) -> dict[Task, list[Word]]:
    """The tasks of a pack of which it is known what they call for."""
    from formal_llm.packs.training import selected  # as in calibrate()
    from formal_llm.packs.training_rewards import WITH_REFERENCES, exact_tools
    from formal_llm.rltf.known import reference_words

    if rules.pack is None or rules.pack.name != WITH_REFERENCES:
        raise InputError(f"only of the pack {WITH_REFERENCES} good plans are known: name a file of them with --plans")
    limits = exact_tools(rules.pack)
    found = {task: reference_words(planner, task, limits) for task in selected(rules.pack, text)}
    return {task: words for task, words in found.items() if words}


def answers(llm: LLM, questions: Sequence[KnownQuestion]) -> list[Judged | None]:
    """What an LLM answers to each question, judged; None where it gives no probabilities."""
    found: list[Judged | None] = []
    with progress_bars() as bars:
        bar = bars.add_task("", total=len(questions), said="questions")
        for begin in range(0, len(questions), _TOGETHER):
            part = questions[begin : begin + _TOGETHER]
            asked = [one.question for one in part]
            outcomes = llm.choose_many(asked) if isinstance(llm, BatchLLM) else [ask(llm, one) for one in asked]
            for one, outcome in zip(part, outcomes, strict=True):
                if not isinstance(outcome, Answer):
                    raise outcome
                found.append(Judged.of(outcome, one.right))
            bars.advance(bar, len(part))
    return found


def _report_calibration(found: Calibration, measured: Sequence[Judged], file: Path | None) -> None:
    """Print what was found."""
    from rich.table import Table  # takes time to import

    console = out()
    print_text(f"{found.llm}: temperature {found.temperature:.3f}, fitted on {counted(found.fitted_on, 'question')}")
    if found.error_before is None or found.error_after is None or found.accuracy is None:
        print_text("nothing was held out: no error is told")
    else:
        print_text(
            f"on {counted(found.measured_on, 'other question')}, {found.accuracy:.0%} of them answered rightly: "
            f"calibration error {found.error_before:.3f} before, {found.error_after:.3f} after"
        )
        for title, temperature in (("before", 1.0), ("after", found.temperature)):
            table = Table(title=title, title_justify="left")
            for column in ("probability", "questions", "mean", "right"):
                table.add_column(column, justify="right")
            for one in reliability(measured, temperature):
                cells = f"{one.low:.1f}-{one.high:.1f}", str(one.count), f"{one.sureness:.2f}", f"{one.right:.2f}"
                table.add_row(*cells)
            console.print(table)
        for least in _SURE:
            sure = [one for one in measured if one.sureness(found.temperature) >= least]
            right = f", {sum(one.correct for one in sure) / len(sure):.0%} of them rightly" if sure else ""
            print_text(f"sure:{least} answers {len(sure) / len(measured):.0%} itself{right}")
    if file is not None:
        err().print(f"written to {file}: use it as --llm calibrated:{file}")
