"""``formal-llm run``: plan a task and carry the plan out."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formal_llm.cli.console import EXIT_CODES_HELP, command, err, print_text
from formal_llm.cli.plan import answerer
from formal_llm.errors import FormalLLMError, ResourceNotFound
from formal_llm.planning import Task, TaskPack

if TYPE_CHECKING:
    from formal_llm.tools import Toolkit

HELP = f"""Plan a task, carry the plan out, and write a report with what every step made.

Tools that are not in the toolkit are not planned with; a tool that fails is planned around.

Examples:

  formal-llm run openagi "Given noisy image, how to return the regular image?" --input image=photo.jpg --out result

  formal-llm run openagi "Given English text, how to return the summarization?" --input text=story.txt --out result

{EXIT_CODES_HELP}
"""


@command
def run(
    source: Annotated[str, typer.Argument(help="A task pack that has toolkits: its name.")],
    task: Annotated[str, typer.Argument(help="The task: a sentence, or the number of a task of the pack.")],
    input_: Annotated[
        list[str], typer.Option("--input", metavar="NAME=FILE", help="A file for an input of the pack. Repeatable.")
    ],
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for the report and the result.")],
    toolkit: Annotated[str, typer.Option(help="Which tools.")] = "classical",
    llm: Annotated[str, typer.Option(help="Who answers; see: formal-llm llms.")] = "builtin",
    replans: Annotated[int, typer.Option(min=0, help="How many plans may fail before it gives up.")] = 50,
) -> None:
    """Plan a task and carry the plan out."""
    pack = TaskPack.load(source)
    tools = read_toolkit(pack, toolkit)
    tools.check(pack.cfg, pack.data.get("kinds", {}), missing=True)
    names, inputs = read_inputs(pack, input_)
    wanted: Task = pack.task(task)
    if not task.strip().isdecimal():
        wanted = pack.read(task, inputs=names)
    with answerer(llm, None, None) as who:
        solution = pack.planner(who).solve(wanted, inputs, tools, replans=replans)
    for failure in solution.failures:
        err().print(f"planned around: {failure}", style="yellow", markup=False)
    to.mkdir(parents=True, exist_ok=True)
    result = solution.result
    output = result.value
    written = to / f"output{output.kind.ending}"
    written.write_bytes(output.dump())
    result.save(to / "report.html")
    print_text(str(solution.plan))
    print_text(f"{written}\n{to / 'report.html'}")


def read_toolkit(pack: TaskPack, name: str) -> Toolkit:
    """The toolkit of that name that the pack's code has.

    Raises:
        ResourceNotFound: the pack has none, or none of that name.
    """
    module = f"formal_llm.packs.{pack.name}"
    if not pack.name.isidentifier() or find_spec("formal_llm.packs") is None or find_spec(module) is None:
        raise ResourceNotFound("toolkit", name)
    toolkits = import_module(f"{module}.toolkits").TOOLKITS
    if name not in toolkits:
        raise ResourceNotFound("toolkit", name, toolkits)
    made: Toolkit = toolkits[name]()
    return made


def read_inputs(pack: TaskPack, pairs: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The names of the pack's inputs that ``--input NAME=FILE`` gives, and the values by terminal.

    Raises:
        FormalLLMError: one is not of that form.
        ResourceNotFound: the pack has no such input.
        InputError: a file cannot be read.
    """
    from formal_llm.tools.inputs import read_input
    from formal_llm.tools.kinds import kind_named

    known, kinds = pack.data.get("inputs", {}), pack.data.get("kinds", {})
    names: list[str] = []
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not equals:
            raise FormalLLMError(f"--input takes NAME=FILE, as in --input image=photo.jpg; not {pair!r}")
        if name not in known:
            raise ResourceNotFound("input", name, known)
        terminal = known[name]["terminal"]
        path = Path(file)
        names.append(name)
        values[terminal] = read_input(path.name, path.parent, kind_named(kinds[terminal]))
    return names, values
