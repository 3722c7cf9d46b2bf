"""The house stands: imports only go down, no circle of files, little ``Any``, no long module, a test file for each.

All of it is read from the syntax trees by ``benchmarks/house.py``, imports inside functions and those for typing alone
included. The floors are the layer contracts in pyproject.toml, the same that ``make imports`` checks.
"""

from __future__ import annotations

import ast
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path

from benchmarks.house import (
    ROOT,
    circles,
    functions,
    imports,
    modules,
    modules_behind_a_plan,
    shared_class_names,
    signatures,
    single_user_modules,
)
from docs.draw_pictures import house

#: Imports of our own that stand inside functions, each for a reason. Everything in ``cli`` may wait: its commands start
#: fast. What is loaded by name (providers, toolkits) is no import statement, and is told where it is done.
DEFERRED = {
    ("formal_llm.guard.mcp.serving", "formal_llm.guard.mcp.proxy"): "mcp",
    ("formal_llm.guard.mcp.serving", "formal_llm.guard.mcp.upstreams"): "mcp",
    ("formal_llm.automata.lookahead.exact.linear_program", "formal_llm.automata.lookahead.exact.simplex"): "numpy",
    ("formal_llm.automata.lookahead.search", "formal_llm.automata.lookahead.exact.integer_program"): "the last resort",
    ("formal_llm.automata.lookahead.search", "formal_llm.automata.lookahead.exact.linear_program"): "the last but one",
    ("formal_llm.automata.lookahead.search", "formal_llm.automata.lookahead.exact.sums"): "numpy",
    # A plan needs none of these, and loads only what it needs.
    ("formal_llm.automata.lookahead.lookahead", "formal_llm.automata.lookahead.sampling"): "counting plans",
    ("formal_llm.planning.drivers.planner", "formal_llm.planning.drivers.draft"): "one search of five",
    ("formal_llm.planning.drivers.planner", "formal_llm.planning.drivers.exact"): "one search of five; numpy",
    ("formal_llm.planning.drivers.planner", "formal_llm.planning.drivers.stepping"): "plans made by hand",
    ("formal_llm.planning.drivers.planner", "formal_llm.planning.drivers.strategies"): "a plan for every answer",
    ("formal_llm.planning.plans.plan", "formal_llm.planning.plans.certificates"): "proofs",
    ("formal_llm.planning.plans.plan", "formal_llm.planning.plans.drawing"): "pictures",
    ("formal_llm.planning.plans.plan", "formal_llm.planning.plans.overlay"): "pictures",
    ("formal_llm.planning.source", "formal_llm.automata.notation.files"): "an error that names readers",
    ("formal_llm.planning.walks.choices", "formal_llm.control.world"): "rules with moves of the world's",
    ("formal_llm.planning.walks.trail", "formal_llm.control.world"): "an error that says why",
    ("formal_llm.planning.walks.trail", "formal_llm.automata.languages.emptiness"): "an error that says why",
    ("formal_llm.llms.doubles", "formal_llm.llms.hostile_server"): "sockets",
    ("formal_llm.llms.hosted.anthropic", "formal_llm.llms.hosted.transport"): "httpx2",
    ("formal_llm.llms.hosted.openai_client", "formal_llm.llms.hosted.transport"): "httpx2",
    ("formal_llm.llms.hosted.doctor", "formal_llm.llms.hosted.transport"): "httpx2",
    ("formal_llm.packs.openagi.experts.restoration", "formal_llm.packs.openagi.experts.restormer"): "torch's classes",
    ("formal_llm.packs.training_rewards", "formal_llm.packs.openagi.scores.judging"): "pillow and numpy",
    ("formal_llm.packs.training_rewards", "formal_llm.packs.openagi.toolkits"): "pillow and numpy",
}
MOST_LINES = 700
MOST_ANY = 26
#: What may only fall: the share of functions named by one word; class names in several files; modules with a single
#: user; modules that a first plan loads.
ONE_WORD, SHARED_CLASSES, SINGLE_USERS, BEHIND_A_PLAN = 0.17, 7, 112, 110


def contracts() -> list[dict[str, tuple[int, str]]]:
    """For each contract its rooms, with their floor, counted from the top, and the neighbours they may import.

    On a floor, rooms parted by ``|`` know nothing of each other, and those parted by ``:`` may.
    """
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [
        {
            room.strip(): (number, neighbours)
            for number, floor in enumerate(contract["layers"])
            for neighbours in floor.split("|")
            for room in neighbours.split(":")
        }
        for contract in written
        if contract["type"] == "layers"
    ]


def room_of(module: str, rooms: Iterable[str]) -> str | None:
    """The room in which a module lies."""
    return next((room for room in rooms if module == room or module.startswith(f"{room}.")), None)


def test_no_import_goes_up() -> None:
    wrong = []
    for rooms in contracts():
        for found in imports():
            source, target = room_of(found.source, rooms), room_of(found.target, rooms)
            if source and target and source != target:
                (above, neighbours), (below, others) = rooms[source], rooms[target]
                if not (above < below or neighbours == others):
                    wrong.append(f"{found.source}:{found.line} imports {found.target}")
    assert not wrong


def test_every_room_stands_on_a_floor() -> None:
    """Each module of a package with floors inside lies on one of them, so that none escapes its contract."""
    missing = []
    for rooms in contracts():
        package = os.path.commonpath([room.replace(".", "/") for room in rooms]).replace("/", ".")
        # Of the whole library, the package itself and what starts it stand on top of all floors.
        on_top = (f"{package}.__main__", package)
        inside = [module for module in modules() if module.startswith(f"{package}.") and module not in on_top]
        missing += [module for module in inside if room_of(module, rooms) is None]
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


def test_names_do_not_get_shorter() -> None:
    """Each bound is what was reached: it may only be lowered."""
    named = functions()
    assert sum(named.values()) / len(named) <= ONE_WORD
    assert len(shared_class_names()) <= SHARED_CLASSES
    assert len(single_user_modules()) <= SINGLE_USERS


def test_a_first_plan_loads_what_it_needs() -> None:
    assert modules_behind_a_plan() <= BEHIND_A_PLAN


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


def test_the_picture_of_the_house_can_be_drawn() -> None:
    """It leaves out arrows that others imply, and for that there may be no circle of rooms."""
    shown = {box.label for box in house().nodes}
    assert {"cli", "planning/walks", "automata/models", "errors"} <= shown
