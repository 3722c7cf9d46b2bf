"""``formal-llm run``: plan a task and carry the plan out."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from formal_llm.cli.console import EXIT_CODES_HELP, command, err, print_text
from formal_llm.cli.plan import answerer
from formal_llm.errors import FormalLLMError, InputError, ResourceNotFound
from formal_llm.planning import Plan, Task, TaskPack
from formal_llm.tools import Executor, Result, Toolkit, kind_named, read_input, save_report

HELP = f"""Plan a task, carry the plan out, and write a report with what every step made.

Tools that are not in the toolkit are not planned with; a tool that fails is planned around. The tools of classical need
no weights; those of experts are models of the Hugging Face hub, and the ones that cannot be had are left out and named.

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
    toolkit: Annotated[str, typer.Option(help="Which tools: classical or experts.")] = "classical",
    llm: Annotated[str, typer.Option(help="Who answers; see: formal-llm llms.")] = "builtin",
    replans: Annotated[int, typer.Option(min=0, help="How many plans may fail before it gives up.")] = 50,
) -> None:
    """Plan a task and carry the plan out."""
    pack = TaskPack.load(source)
    tools = read_toolkit(pack, toolkit)
    tools.check(pack.cfg, pack.data.get("kinds", {}), missing=True)
    names, inputs = read_inputs(pack, input_)
    wanted = read_task(pack, task, names)
    make_folder(to)
    with answerer(llm, None, None) as who:
        solution = pack.planner(who).solve(wanted, inputs, _Interruptible(Executor(tools)), replans=replans)
    for failure in solution.failures:
        err().print(f"planned around: {failure}", style="yellow", markup=False)
    result = solution.result
    output = result.value
    assert output is not None  # the plan was carried out
    written = to / f"output{output.kind.ending}"
    written.write_bytes(output.dump())
    page = save_report(to / "report.html", result)
    print_text(f"{solution.plan}\n{written}\n{page}")


class _Interruptible:
    """An executor as a runner of plans whose tools are left behind on Ctrl-C; else the program would wait for them."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._cancel = threading.Event()
        self.limits = executor.limits

    def run(self, plan: Plan, inputs: Mapping[str, object]) -> Result:
        with cancelling(self._cancel):
            return self._executor.run(plan, inputs, cancel=self._cancel)


@contextmanager
def cancelling(cancel: threading.Event) -> Iterator[None]:
    """Set an event when the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        cancel.set()
        raise


def read_toolkit(pack: TaskPack, name: str) -> Toolkit:
    """The toolkit of that name that the pack's code has. Which tools it lacks, and why, is told on standard error.

    Raises:
        ResourceNotFound: the pack has none of that name.
        FormalLLMError: the pack has none at all, or none of its tools can be had.
    """
    module = f"formal_llm.packs.{pack.name}"
    if not pack.name.isidentifier() or find_spec("formal_llm.packs") is None or find_spec(module) is None:
        raise FormalLLMError(f"the task pack {pack.name} has no tools, so there is no toolkit {name!r}")
    toolkits = import_module(f"{module}.toolkits").AT_HAND
    if name not in toolkits:
        raise ResourceNotFound("toolkit", name, toolkits)
    made: Toolkit = toolkits[name]()
    for tool, why in made.left_out.items():
        err().print(f"left out: {tool}: {why}", style="yellow", markup=False)
    if not len(made):
        raise FormalLLMError(f"none of the tools of {name} can be had; the lines above say what each needs")
    return made


def read_task(pack: TaskPack, text: str, names: Collection[str]) -> Task:
    """The task that is meant, with the inputs that are given.

    Args:
        pack: the pack.
        text: a sentence, or the number of a task.
        names: the names of the inputs that are given.

    Raises:
        ResourceNotFound: there is no task of that number.
        InputError: a task of the pack takes other inputs, or there is no task.
    """
    if not text.strip() and "task" not in pack.data:
        raise InputError("the task is empty: give a sentence, or the number of a task of the pack")
    if not text.strip().isdecimal():
        return pack.read(text, inputs=list(names))
    found = pack.task(text)
    if set(found.inputs) != set(names):
        takes = " ".join(f"--input {name}=FILE" for name in found.inputs)
        raise InputError(f"task {text.strip()} takes {takes}: {found.description}")
    return found


def make_folder(path: Path) -> None:
    """Make the folder of ``--out``, if it is not there.

    Raises:
        InputError: there is something else, or it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"--out: {path} is no folder; name another place") from None
    except OSError as error:
        raise InputError(f"--out: the folder {path} cannot be made: {error.strerror}") from error


def read_inputs(pack: TaskPack, pairs: list[str]) -> tuple[list[str], dict[str, object]]:
    """The names of the pack's inputs that ``--input NAME=FILE`` gives, and the values by terminal.

    Several files for one input go to its places in the plan in their order, as a tuple.

    Raises:
        FormalLLMError: one is not of that form.
        ResourceNotFound: the pack has no such input.
        InputError: a file cannot be read.
    """
    known, kinds = pack.data.get("inputs", {}), pack.data.get("kinds", {})
    values: dict[str, tuple[object, ...]] = {}
    for pair in pairs:
        name, equals, file = pair.partition("=")
        if not equals or not file:
            raise FormalLLMError(f"--input takes NAME=FILE, as in --input image=photo.jpg; not {pair!r}")
        if name not in known:
            raise ResourceNotFound("input", name, known)
        terminal = known[name]["terminal"]
        path = Path(file)
        with suppress(OSError, RuntimeError, ValueError):  # links that lead nowhere: the path as it stands
            path = path.resolve()
        value = read_input(path.name, path.parent, kind_named(kinds[terminal]))
        values[terminal] = (*values.get(terminal, ()), value)
    names = [name for name in known if known[name]["terminal"] in values]
    return names, {terminal: given[0] if len(given) == 1 else given for terminal, given in values.items()}
