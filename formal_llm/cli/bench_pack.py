"""``formal-llm bench PACK``: ways of planning side by side on the tasks of any task pack."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formal_llm.authored.files import read_lines
from formal_llm.cli.batch import read_tasks
from formal_llm.cli.bench import complete_plans, record_answers, spread, who_is_asked
from formal_llm.cli.bench_tables import Form, report_pack
from formal_llm.cli.console import check_folder, command, counted, err
from formal_llm.cli.options import with_request_options
from formal_llm.cli.plan import read_prices
from formal_llm.cli.run import make_folder
from formal_llm.cli.sources import load
from formal_llm.errors import InputError, NotationError
from formal_llm.llms.providers import check_providers
from formal_llm.planning import Task, TaskPack

if TYPE_CHECKING:
    from formal_llm.rltf.reference_tools import ReferenceTools

HELP = """Compare LLMs and ways of planning on tasks of any pack: validity, quality, requests, tokens, cost.

Methods: typed offers what the rules allow next, without
looking ahead; formal offers only what can still become a valid plan; look asks once for all steps; draft has the plan
written, and asks where that breaks the rules. Without --method, all that apply to an LLM.

How good valid plans are is measured by --references, a file with a plan on each line, in the order of the tasks (F1 of
the steps). Plans that are not valid count 0.

Everything is on record in the folder of --out. A run that was stopped goes on with the same
command; more LLMs, methods or repeats are added to it.

Examples:

  formal-llm bench ./laundry --llm test:random --llm builtin --out bench

  formal-llm bench ./laundry --tasks tasks.txt --references plans.txt --llm openai:gpt-6-luna --out bench
"""


class PackMethod(StrEnum):
    """A way of planning for any pack."""

    typed = "typed"
    formal = "formal"
    look = "look"
    draft = "draft"


@command
@with_request_options
def bench_pack(
    pack: Annotated[str, typer.Argument(metavar="PACK", hidden=True)],
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the benchmark's records.")],
    llm: Annotated[list[str] | None, typer.Option(help="Who answers; see: formal-llm list llms. Repeatable.")] = None,
    method: Annotated[list[PackMethod] | None, typer.Option(help="A way of planning. Repeatable.")] = None,
    tasks: Annotated[
        str, typer.Option(metavar="FILE|SPLIT", help="A file with a task on each line, or a split of the pack.")
    ] = "all",
    references: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A good plan for each task, one on each line.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many tasks, spread evenly.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How many plans each method makes for each task.")] = 1,
    prices: Annotated[
        str | None,
        typer.Option(metavar="IN,OUT[,CACHED[,WRITTEN]]", help="Prices per million tokens: read, written, from cache."),
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="How long a free text may be.")] = 1024,
    concurrency: Annotated[int | None, typer.Option(min=1, help="How many plans are made at once.")] = None,
    show: Annotated[Form, typer.Option(help="How the table is printed; all forms are in the folder.")] = Form.table,
) -> None:
    """Run a benchmark over the tasks of a pack and print its table."""
    from formal_llm.packs.openagi.benchmark.plans import PackPlans

    # All that can be wrong with the arguments is reported before a model is loaded.
    names = list(dict.fromkeys(llm or ["builtin"]))
    check_providers(*names)
    check_folder(to)
    tariff = read_prices(prices)
    known = load(pack)
    every = dict(enumerate(read_tasks(tasks, known)))
    if known.pack is None or not every:
        raise InputError(f"{pack}: the pack has no tasks; name a file with a task on each line: --tasks FILE")
    chosen = {number: every[number] for number in spread(list(every), limit)}
    run = PackPlans(known.pack, chosen, repeats=repeats, max_tokens=max_tokens)
    if references is not None:
        run.reward = read_references(references, known.pack, [*every.values()])
    wanted: Any = list(dict.fromkeys(one.value for one in method or PackMethod))
    asking, _ = who_is_asked(names, wanted, None, concurrency)
    make_folder(to)
    with record_answers(asking, to) as recorded:
        rows = complete_plans(run, recorded, to)
    shown = [row for row in rows if row["task"] in run.tasks and row["repeat"] < repeats]
    report_pack(run, shown, run.list_skipped(asking.llms, wanted), to, show, tariff)


def read_references(file: Path, pack: TaskPack, tasks: Sequence[Task]) -> ReferenceTools:
    """The reference plans in a file: one on each line, in the order of the tasks.

    Raises:
        NotationError, Undecided: there are more or fewer than tasks, or one cannot be read.
    """
    from formal_llm.planning.checking.verify import Verifier
    from formal_llm.planning.reading import read_plan_text
    from formal_llm.rltf.reference_tools import ReferenceTools
    from formal_llm.rltf.setup import hash_values

    lines = [(number, line) for number, line in enumerate(read_lines(file), 1) if line.strip() and line[0] != "#"]
    if len(lines) != len(tasks):
        raise NotationError(
            f"it holds {counted(len(lines), 'plan')} for {counted(len(tasks), 'task')}",
            file=str(file),
            suggestion="write one plan on each line, in the order of the tasks, such as: wash dry fold",
        )
    planner, words = pack.planner(), {}
    for (number, line), task in zip(lines, tasks, strict=True):
        rules = planner.table(task).lookahead.source
        try:
            words[task] = read_plan_text(line, rules)
        except NotationError as error:
            error.file, error.line = str(file), number
            raise
        if not (found := Verifier(rules).verify(words[task], repair=False)).valid:
            err().print(f"warning: {file}:{number}: this plan is not valid: {found.reason}")
    inputs = [entry["terminal"] for entry in pack.data.get("inputs", {}).values()]
    name = f"F1 with {file.name}@{hash_values([*words.values()])[:8]}"
    return ReferenceTools(words.__getitem__, inputs=inputs, name=name)
