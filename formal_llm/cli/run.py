"""``formal-llm run``: plan a task and carry the plan out."""

from __future__ import annotations

import platform
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from formal_llm import __version__
from formal_llm.cli.console import command, counted, err, needs_extra, print_text
from formal_llm.cli.options import with_request_options
from formal_llm.cli.plan import answerer
from formal_llm.errors import FormalLLMError, InputError, NoValidPlan, ResourceNotFound, ToolError
from formal_llm.llms import LLM
from formal_llm.planning import Plan, Task, TaskPack
from formal_llm.planning.drivers.solving import Solution
from formal_llm.tools import Executor, Result, Toolkit, kind_named, read_input, save_report, toolkit_named

HELP = """Plan a task, carry the plan out, and write a report with what every step made.

Tools that the toolkit lacks are named first. A plan that needs one of them is told, and made again without: what comes
out may then be something else, so the exit code is 1. With --strict nothing is carried out in that case. A tool that
fails is planned around. The tools of classical need no weights. Those of experts are models of the Hugging Face
hub; what cannot be had is left out and named.

Examples:

  formal-llm run openagi "Given noisy image, how to return the regular image?" --input image=photo.jpg --out result

  formal-llm run openagi "Given English text, how to return the summarization?" --input text=story.txt --out result
"""


@command
@with_request_options
def run(
    source: Annotated[str, typer.Argument(help="A task pack: its name.")],
    task: Annotated[str, typer.Argument(help="The task: a sentence, or the number of a task of the pack.")],
    input_: Annotated[
        list[str], typer.Option("--input", metavar="NAME=FILE", help="A file for an input of the pack. Repeatable.")
    ],
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder for the report and the result.")],
    toolkit: Annotated[str, typer.Option(help="Which tools: classical, experts, or a plugin.")] = "classical",
    llm: Annotated[str, typer.Option(help="Who answers; see: formal-llm list llms.")] = "builtin",
    replans: Annotated[int, typer.Option(min=0, help="How many plans may fail before it gives up.")] = 50,
    strict: Annotated[
        bool, typer.Option("--strict", help="Carry nothing out where a tool is missing that the plan needs.")
    ] = False,
) -> None:
    """Plan a task and carry the plan out."""
    pack = TaskPack.load(source)
    tools = read_toolkit(pack, toolkit)
    tools.check(pack.cfg, pack.data.get("kinds", {}), missing=True)
    names, inputs = read_inputs(pack, input_)
    wanted = read_task(pack, task, names)
    make_folder(to)
    _remove_stale(to, input_)
    lacking = lacking_tools(pack, tools)
    if lacking:
        _print_warning(f"the toolkit {toolkit} lacks: {_join_labels(pack, lacking)}")
    with answerer(llm, None, None) as who:
        first = pack.planner(who).plan(wanted) if lacking else None  # made with all tools, also those that are missing
        needed = [name for name in lacking if first is not None and name in first.word]
        problem = f"the plan needs {_join_labels(pack, needed)}, which the toolkit {toolkit} lacks" if needed else ""
        if needed and strict:
            raise NoValidPlan(f"{problem}; take another toolkit, or leave --strict out")
        if needed:
            first, problem = None, f"{problem}; it was planned without, so what came out may be something else"
            _print_warning(problem)
        solution = _solve_task(pack, who, wanted, inputs, Executor(tools), first, replans)
    found = [*(f"planned around: {failure}" for failure in solution.failures), *unused(pack, solution.plan, inputs)]
    for warning in found:
        _print_warning(warning)
    output = solution.result.value
    assert output is not None  # the plan was carried out
    written = to / f"output{output.kind.ending}"
    written.write_bytes(output.dump())
    about = {
        "task": wanted.description,
        "inputs": ", ".join(input_),
        "LLM": llm,
        "questions": str(solution.usage.questions),
        "toolkit": f"{toolkit}: {_join_labels(pack, list(tools.tools))}",
        "missing tools": _join_labels(pack, lacking) or "none",
        "date": datetime.now().astimezone().isoformat(sep=" ", timespec="seconds"),
        "versions": ", ".join(_list_versions()),
    }
    problems = [problem, *found] if problem else found
    page = save_report(to / "report.html", solution.result, about=about, warnings=problems)
    print_text(f"{solution.plan}\n{written}\n{page}")
    if needed:
        raise typer.Exit(1)


def lacking_tools(pack: TaskPack, tools: Toolkit) -> list[str]:
    """The terminals of a pack's grammar that are tools and that a toolkit has not."""
    limits = tools.limits(pack.cfg).at_most
    return [name for name in pack.cfg.terminals if limits.get(name) == 0]


def unused(pack: TaskPack, plan: Plan, inputs: Mapping[str, object]) -> list[str]:
    """What is odd about how a plan uses its inputs: files that it has no place for, and one that meets itself."""
    messages = []
    for terminal, value in inputs.items():
        label, given = pack.cfg.label(terminal), len(value) if isinstance(value, tuple) else 1
        if (places := plan.word.count(terminal)) < given:
            messages.append(f"{counted(given, 'file')} given for {label}, {places} used by the plan")
        calls = plan.call.walk() if plan.call is not None and given == 1 else ()
        messages += [
            f"{call.label} gets {label} twice, since one file was given for it"
            for call in calls if sum(one.name == terminal for one in call.arguments) > 1
        ]  # fmt: skip
    return messages


def _solve_task(
    pack: TaskPack, llm: LLM, task: Task, inputs: Mapping[str, object], tools: Executor, first: Plan | None, most: int
) -> Solution[Result]:
    """The solution of a task; of a plan that was made already, its result, if it can be carried out."""
    runner = _Interruptible(tools)
    if first is not None:
        with suppress(ToolError):  # what fails is planned around below
            return Solution(first, runner.run(first, inputs), (), first.usage)
    return pack.planner(llm).solve(task, inputs, runner, replans=most)


def _join_labels(pack: TaskPack, names: Sequence[str]) -> str:
    return ", ".join(pack.cfg.label(name) if name in pack.cfg.terminals else name for name in names)


def _print_warning(text: str) -> None:
    err().print(text, style="yellow")


def _remove_stale(folder: Path, pairs: Sequence[str]) -> None:
    """Remove what an earlier run wrote, which would be taken for what this one did if it should fail.

    Raises:
        InputError: something else stands there.
    """
    given = {Path(pair.partition("=")[2]).resolve() for pair in pairs}
    for file in (folder / "report.html", folder / "output.png", folder / "output.txt", folder / "output.bin"):
        if file.resolve() in given:
            continue
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"--out: {file} cannot be replaced: {error.strerror}") from error


def _list_versions() -> Iterator[str]:
    """This library, Python, and those libraries at work that results depend on."""
    yield f"formal_llm {__version__}"
    yield f"Python {platform.python_version()}"
    known = {"PIL": "pillow", "numpy": "numpy", "skimage": "scikit-image", "cv2": "opencv-python-headless",
             "torch": "torch", "transformers": "transformers", "diffusers": "diffusers"}  # fmt: skip
    for module, name in known.items():
        if module in sys.modules:
            with suppress(PackageNotFoundError):
                yield f"{name} {version(name)}"


class _Interruptible:
    """An executor as a runner of plans whose tools are left behind on Ctrl-C; else the program would wait for them."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._cancel = threading.Event()
        self.limits = executor.limits

    def run(self, plan: Plan, inputs: Mapping[str, object], after: Result | None = None) -> Result:
        with cancelling(self._cancel):
            return self._executor.run(plan, inputs, after=after, cancel=self._cancel)


@contextmanager
def cancelling(cancel: threading.Event) -> Iterator[None]:
    """Set an event when the block is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        cancel.set()
        raise


def read_toolkit(pack: TaskPack, name: str) -> Toolkit:
    """The toolkit of that name: one of the pack, or of another package. What it lacks is reported on standard error.

    Raises:
        ResourceNotFound: there is none of that name.
        PluginError: that of another package cannot be used.
        MissingDependency: libraries of the pack's tools are not installed.
        FormalLLMError: there are no toolkits at all, or none of its tools can be had.
    """
    module = f"formal_llm.packs.{pack.name}.toolkits"
    has = pack.name.isidentifier() and find_spec(f"formal_llm.packs.{pack.name}") is not None
    own = None
    if has and find_spec(module) is not None:
        with needs_extra(pack.name, f"the toolkit {name}"):
            own = import_module(module).AT_HAND
    try:
        made = toolkit_named(name, own)
    except ResourceNotFound as error:
        if error.known:
            raise
        raise FormalLLMError(f"the task pack {pack.name} has no tools, so there is no toolkit {name!r}") from None
    for tool, why in made.left_out.items():
        err().print(f"left out: {tool}: {why}", style="yellow")
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

    Several files for one input go to its places in the plan in their order, as a tuple. They are an error for an input
    of which the pack does not declare that there are several.

    Raises:
        FormalLLMError: one is not of that form, or is too many.
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
        if terminal in values and not known[name].get("several", False):
            raise FormalLLMError(f"--input {name}=FILE is given twice, and there is one {name}: {pair}")
        path = Path(file)
        with suppress(OSError, RuntimeError, ValueError):  # links that lead nowhere: the path as it stands
            path = path.resolve()
        value = read_input(path.name, path.parent, kind_named(kinds[terminal]))
        values[terminal] = (*values.get(terminal, ()), value)
    names = [name for name in known if known[name]["terminal"] in values]
    return names, {terminal: given[0] if len(given) == 1 else given for terminal, given in values.items()}
