"""Draw the pictures of README and book again. Run by ``make pictures``; needs Graphviz."""

from __future__ import annotations

import ast
import sys
import textwrap
from pathlib import Path

import networkx

from formal_llm import CFG, PDA, Behaviour, Planner, TaskPack
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Arrow, Box, Picture

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
#: The packages that are shown by the rooms inside them.
OPENED = ("formal_llm.automata", "formal_llm.planning", "formal_llm.llms")

sys.path.insert(0, str(ROOT))
from benchmarks.house import imports, modules  # noqa: E402  # a script beside this folder


def main() -> None:
    pack = TaskPack.load("openagi")
    plan = Planner(pack.cfg, "builtin", wording=pack.wording).plan(pack.task(117))
    small = CFG.from_string("S -> a S b | c")
    day = TaskPack.load("daily")
    planned = Planner(day.source, "builtin", constraints=day.constraints, wording=day.wording).plan(day.task(""))
    pictures: dict[str, Drawable | Picture] = {
        "grammar": pack.cfg,
        "plan": plan,
        "automaton": PDA.from_cfg(small),
        "plan-over-grammar": plan.over(pack.cfg),
        "plan-over-automaton": planned.over(day.source),
        "behaviour": Behaviour.load("react-5"),
        "house": house(),
    }
    for name, picture in pictures.items():
        file = FOLDER / f"{name}.svg"
        file.write_text(picture.to_svg(), encoding="utf-8")
        print(f"{file.name}: {file.stat().st_size:,} bytes")


def house() -> Picture:
    """The rooms of the library and their imports, read from the code; arrows that others imply are left out."""
    graph = networkx.DiGraph()
    known = modules()
    for found in imports():
        source, target = _room(found.source), _room(found.target)
        if source != target and "formal_llm" not in (source, target):
            graph.add_edge(source, target)
    reduced = networkx.transitive_reduction(graph)
    boxes = [Box(room, _called(room), "tool", tuple(_purpose(known[room]))) for room in graph if room in known]
    arrows = [Arrow(source, target) for source, target in reduced.edges]
    return Picture(tuple(boxes), tuple(arrows), "TB")


def _room(module: str) -> str:
    """The box in which a module is drawn: its package, or of the opened packages the room inside."""
    for package in OPENED:
        if module.startswith(f"{package}."):
            room = ".".join(module.split(".")[:3])
            return room if (ROOT / room.replace(".", "/")).is_dir() else package
    return ".".join(module.split(".")[:2])


def _called(room: str) -> str:
    return room.removeprefix("formal_llm.").replace(".", "/")


def _purpose(path: Path) -> list[str]:
    first = (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n\n")[0]
    return textwrap.wrap(" ".join(first.split()), 34)


if __name__ == "__main__":
    main()
