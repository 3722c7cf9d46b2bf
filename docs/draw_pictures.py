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
#: The modules in opened packages that stand above the rooms beside them.
ABOVE = ("formal_llm.planning.packs", "formal_llm.llms.providers")

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
        if source and target and source != target:
            graph.add_edge(source, target)
    boxes = [Box(room, _called(room), "tool", tuple(_purpose(room, known))) for room in graph]
    arrows = [Arrow(source, target) for source, target in networkx.transitive_reduction(graph).edges]
    return Picture(tuple(boxes), tuple(arrows), "TB")


def _room(module: str) -> str:
    """The box in which a module is drawn: its package, or of the opened packages the room inside; empty for none.

    What lies in an opened package itself is one box, but for what stands above its rooms. The ``__init__.py`` of opened
    packages only hand names on, and are none.
    """
    package = ".".join(module.split(".")[:2])
    if package not in OPENED:
        return "" if module in ("formal_llm", "formal_llm.__main__") else package
    if module == package:
        return ""
    room = ".".join(module.split(".")[:3])
    above = (ROOT / room.replace(".", "/")).is_dir() or room in ABOVE
    return room if above else package


def _called(room: str) -> str:
    return room.removeprefix("formal_llm.").replace(".", "/")


def _purpose(room: str, known: dict[str, Path]) -> list[str]:
    """What a room is for, in the words of its docstring; of an opened package, the modules that lie in itself."""
    if room in OPENED:
        inside = [name for name in known if _room(name) == room]
        return textwrap.wrap(", ".join(name.rpartition(".")[2] for name in inside), 34)
    first = (ast.get_docstring(ast.parse(known[room].read_text())) or "").split("\n\n")[0]
    return textwrap.wrap(" ".join(first.split()).replace("``", ""), 34)


if __name__ == "__main__":
    main()
