"""Draw the pictures of README and book again. Run by ``make pictures``; needs Graphviz."""

from __future__ import annotations

from pathlib import Path

from formal_llm import CFG, PDA, Planner, TaskPack

FOLDER = Path(__file__).parent / "pictures"


def main() -> None:
    pack = TaskPack.load("openagi")
    plan = Planner(pack.cfg, "builtin", wording=pack.wording).plan(pack.task(117))
    small = CFG.from_string("S -> a S b | c")
    for name, picture in (("grammar", pack.cfg), ("plan", plan), ("automaton", PDA.from_cfg(small))):
        file = FOLDER / f"{name}.svg"
        file.write_text(picture.to_svg(), encoding="utf-8")
        print(f"{file.name}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
