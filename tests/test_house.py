"""The house stands: imports only go down, no circle of files, little ``Any``, no long module, a test file for each.

All of it is read from the syntax trees by ``benchmarks/house.py``, imports inside functions and those for typing alone
included. The floors are the layer contracts in pyproject.toml, the same that ``make imports`` checks.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from benchmarks.house import ROOT, circles, imports, modules, signatures

#: Imports of our own that stand inside functions, each for a reason. Everything in ``cli`` may wait: its commands start
#: fast. What is loaded by name (providers, toolkits) is no import statement, and is told where it is done.
DEFERRED: dict[tuple[str, str], str] = {}
MOST_LINES = 350
MOST_ANY = 25


def layers() -> list[list[set[str]]]:
    """The contracts: for each the floors from the top down, each a set of packages that know nothing of each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [
        [{name.strip() for name in floor.replace(":", "|").split("|")} for floor in contract["layers"]]
        for contract in contracts
        if contract["type"] == "layers"
    ]


def inside(module: str, rooms: set[str]) -> str | None:
    """The room among ``rooms`` in which a module lies."""
    return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)


def test_no_import_goes_up() -> None:
    wrong = []
    for contract in layers():
        for found in imports():
            place = [(number, inside(found.source, rooms)) for number, rooms in enumerate(contract)]
            goal = [(number, inside(found.target, rooms)) for number, rooms in enumerate(contract)]
            above = next(((n, room) for n, room in place if room), None)
            below = next(((n, room) for n, room in goal if room), None)
            if above and below and above[1] != below[1] and below[0] <= above[0]:
                wrong.append(f"{found.source}:{found.line} imports {found.target}")
    assert not wrong


def test_every_room_stands_on_a_floor() -> None:
    """Each module of a package with floors inside lies on one of them, so that none escapes its contract."""
    missing = []
    for contract in layers():
        rooms = set().union(*contract)
        package = min(rooms, key=len).rpartition(".")[0]
        if all(room.startswith(f"{package}.") for room in rooms):
            missing += [
                module
                for module in modules()
                if module.startswith(f"{package}.")
                and inside(module, rooms) is None
                and module != f"{package}.__main__"
            ]
    assert not missing


def test_no_circle_of_files() -> None:
    assert circles({(found.source, found.target) for found in imports()}) == []


def test_imports_inside_functions_have_a_reason() -> None:
    deferred = {
        (found.source, found.target)
        for found in imports()
        if found.deferred and not found.source.startswith("formal_llm.cli")
    }
    assert deferred == set(DEFERRED)


def test_little_any() -> None:
    found = [f"{signature.module}:{signature.line} {signature.name}" for signature in signatures() if signature.has_any]
    assert len(found) <= MOST_ANY, "\n".join(found)


def test_no_long_module() -> None:
    lengths = {name: path.read_text().count("\n") for name, path in modules().items()}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_each_module_has_its_test_file() -> None:
    missing = []
    for path in modules().values():
        tree = ast.parse(path.read_text())
        # Files that only hand names on, and those with nothing but data, have nothing of their own to test.
        if not any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) for node in tree.body):
            continue
        place = path.relative_to(ROOT / "formal_llm")
        if place.name not in ("__init__.py", "__main__.py"):
            test = Path("tests", *place.parts[:-1], f"test_{place.name}")
            if not (ROOT / test).is_file():
                missing.append(str(test))
    assert not missing, "\n".join(missing)
