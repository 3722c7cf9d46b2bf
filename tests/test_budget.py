"""The size is kept: ``budgets.toml`` says how large each part may be, and only falls.

    python tests/test_budget.py             # today's sizes beside the budgets
    python tests/test_budget.py --write     # lower each budget to today's size; with --raise, raise it where need be

A part above its budget fails: take something out, or let another part of the same change give. One that shrank by more
than a twentieth lowers its budget. The rooms of the library together stay within ``total``.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "budgets.toml"
LIBRARY = ROOT / "formal_llm"


def _count_lines(*files: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in files)


def measure_rooms() -> dict[str, int]:
    """The lines of each package of the library; ``top`` are the modules that lie in none."""
    rooms = {path.name: path for path in LIBRARY.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    lines = {name: _count_lines(*path.rglob("*.py")) for name, path in sorted(rooms.items())}
    return lines | {"top": _count_lines(*LIBRARY.glob("*.py"))}


def _count_public_names() -> int:
    found = 0
    for path in LIBRARY.rglob("__init__.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple):
                found += len(node.value.elts) * any(ast.unparse(one) == "__all__" for one in node.targets)
    return found


def _list_commands() -> tuple[int, int]:
    """The commands of the command line, and their options together."""
    import typer

    from formal_llm.cli.main import app

    top = typer.main.get_command(app)
    commands = options = 0
    todo = [top]
    while todo:
        group = todo.pop()
        context = typer.Context(group)  # type: ignore[arg-type]  # typer's own copy of click
        for name in group.list_commands(context):  # type: ignore[attr-defined]
            one = group.get_command(context, name)  # type: ignore[attr-defined]
            if hasattr(one, "list_commands"):
                todo.append(one)
            elif not one.hidden:
                commands += 1
                options += sum(parameter.param_type_name == "option" for parameter in one.params)
    return commands, options


def measure_others() -> dict[str, int]:
    """The sizes of all that is no room of the library."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    commands, options = _list_commands()
    texts = (".py", ".toml", ".txt", ".md")
    return {
        "library_files": len(list(LIBRARY.rglob("*.py"))),
        "tests": _count_lines(*(ROOT / "tests").rglob("*.py")),
        "test_files": len(list((ROOT / "tests").rglob("*.py"))),
        "docs_pages": len(pages),
        "docs_words": sum(len(re.findall(r"\S+", path.read_text())) for path in pages),
        "benchmarks": _count_lines(*(p for p in (ROOT / "benchmarks").rglob("*") if p.suffix in texts)),
        "public_names": _count_public_names(),
        "commands": commands,
        "command_line_options": options,
        "extras": len(project["optional-dependencies"]),
    }


BUDGETS = tomllib.loads(FILE.read_text())
#: Counts of few things go down one by one.
SMALL = 60


def _check(name: str, size: int, budget: int) -> None:
    assert size <= budget, f"{name}: {size}, and {budget} is allowed: take something out"
    if budget > SMALL:
        assert size >= 0.95 * budget, f"{name} shrank to {size}: python tests/test_budget.py --write lowers its budget"


@pytest.mark.parametrize("room", sorted({*BUDGETS["rooms"], *measure_rooms()}))
def test_each_room_keeps_its_budget(room: str) -> None:
    assert room in BUDGETS["rooms"], f"a new room, {room}: give it a budget that another one gives up"
    _check(room, measure_rooms().get(room, 0), BUDGETS["rooms"][room])


def test_the_rooms_keep_the_total() -> None:
    assert sum(BUDGETS["rooms"].values()) <= BUDGETS["total"]


@pytest.mark.parametrize("name", sorted(BUDGETS["other"]))
def test_all_else_keeps_its_budget(name: str) -> None:
    _check(name, measure_others()[name], BUDGETS["other"][name])


def main() -> None:
    """Print the sizes beside the budgets; with ``--write``, lower the budgets to them, with ``--raise``, raise them."""
    rooms, other = measure_rooms(), measure_others()
    if "--write" in sys.argv:
        if "--raise" not in sys.argv:
            rooms = {name: min(size, BUDGETS["rooms"].get(name, size)) for name, size in rooms.items()}
            other = {name: min(size, BUDGETS["other"].get(name, size)) for name, size in other.items()}
        lines = [FILE.read_text().split("\n\n")[0], "", f"total = {sum(rooms.values())}"]
        for title, sizes in (("rooms", rooms), ("other", other)):
            lines += ["", f"[{title}]", *(f"{name} = {size}" for name, size in sizes.items())]
        FILE.write_text("\n".join(lines) + "\n")
    for title, sizes in (("rooms", rooms), ("other", other)):
        for name, size in sizes.items():
            print(f"{name:22}{size:9,}{BUDGETS[title].get(name, 0):9,}")
    print(f"{'library':22}{sum(rooms.values()):9,}{BUDGETS['total']:9,}")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
