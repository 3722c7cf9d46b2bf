"""Draw the pictures of README and book again. Run by ``make pictures``; needs Graphviz."""

from __future__ import annotations

from pathlib import Path

from formal_llm import CFG, PDA, Behaviour, Planner, TaskPack
from formal_llm.pictures.drawable import Drawable

FOLDER = Path(__file__).parent / "pictures"


def main() -> None:
    pack = TaskPack.load("openagi")
    plan = Planner(pack.cfg, "builtin", wording=pack.wording).plan(pack.task(117))
    small = CFG.from_string("S -> a S b | c")
    day = TaskPack.load("daily")
    planned = Planner(day.source, "builtin", constraints=day.constraints, wording=day.wording).plan(day.task(""))
    pictures: dict[str, Drawable] = {
        "grammar": pack.cfg,
        "plan": plan,
        "automaton": PDA.from_cfg(small),
        "plan-over-grammar": plan.over(pack.cfg),
        "plan-over-automaton": planned.over(day.source),
        "behaviour": Behaviour.load("react-5"),
    }
    for name, picture in pictures.items():
        file = FOLDER / f"{name}.svg"
        file.write_text(picture.to_svg(), encoding="utf-8")
        print(f"{file.name}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
