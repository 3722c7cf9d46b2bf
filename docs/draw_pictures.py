"""Draw the pictures of README and book again. Needs Graphviz."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path

from formal_llm import CFG, PDA, Behaviour, Planner, TaskPack, Walk
from formal_llm.automata.notation.files import read_rules
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Arrow, Box, Picture
from formal_llm.planning.walks.events import Asked

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
#: The rules of the page on lookahead.
DESK = """
%limit 1
%limit * wood
Desk  "desk"  -> build Top Legs
Top   "top"   -> saw Board | glue Board
Legs  "legs"  -> saw Board
Board "board" -> plane wood | wood
"""
#: The agents of which the book has a picture.
AGENTS = (
    "direct", "chain-of-thought", "react", "rewoo", "reflexion", "pass", "chat-bot",
)  # fmt: skip
#: The rules of the gallery, by the names of their pictures.
GALLERY = {
    path.stem: path
    for path in [
        *(ROOT / "grammars" / name for name in ("errands.pda", "cooking.cfg", "risk.mmd")),
        *sorted((ROOT / "grammars" / "gallery").iterdir()),
    ]
    if path.suffix != ".examples"
}


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
        "lookahead-rules": CFG.from_string(DESK),
        "lookahead-off": choices(Walk(CFG.from_string(DESK), "A desk", lookahead="off")),
        "lookahead-on": choices(Walk(CFG.from_string(DESK), "A desk")),
        **{f"agent-{name}": Behaviour.load(name) for name in AGENTS},
    }
    for name, picture in pictures.items():
        file = FOLDER / f"{name}.svg"
        file.write_text(picture.to_svg(), encoding="utf-8")
        print(f"{file.name}: {file.stat().st_size:,} bytes")
    for name, path in GALLERY.items():
        (FOLDER / "gallery" / f"{name}.svg").write_text(gallery(path).to_svg(), encoding="utf-8")
    (FOLDER / "overview.svg").write_text(overview(), encoding="utf-8")


def choices(start: Walk) -> Picture:
    """All answers to the questions of a walk as a tree; where a walk had to back out, a dead end."""
    boxes, arrows = [Box("start", "a desk", "start")], []
    todo = [("start", start)]
    while todo:
        parent, walk = todo.pop(0)
        for number, option in enumerate(walk.question.options if walk.question else (), 1):
            after, name = walk.fork(), f"{parent}.{number}"
            after.answer(number)
            text = option.text.removeprefix("the output of ").strip('"')
            if after.usage.backtracks > walk.usage.backtracks:
                boxes.append(Box(name, text, "terminal", ("dead end",), "faded"))
            elif after.question is None:
                boxes.append(Box(name, text, "terminal", (f"plan: {' '.join(after.plan.word)}",), "marked"))
            else:
                boxes.append(Box(name, text, "terminal"))
                todo.append((name, after))
            arrows.append(Arrow(parent, name))
    return Picture(tuple(boxes), tuple(arrows))


def gallery(path: Path) -> Picture:
    """Rules of the gallery: but for grammars from top to bottom, as pages scroll down more easily than sideways."""
    rules = read_rules(path)
    return rules.picture if isinstance(rules, CFG) else replace(rules.picture, direction="TB")


RULES = """
%limit 1
%limit * photo

Text  "text"  -> describe Image
               | translate Text
Image "image" -> sharpen Image
               | colour Image
               | photo

describe  "Captioning"
translate "Translation"
sharpen   "Deblurring"
colour    "Colorization"
"""
ANSWERS = (2, 1, 2)
NOT_ASKED = ("What a translation translates is not asked:", "only Captioning is left to make a text.")
#: Colours of the overview, each with that of a dark page.
DARK = {
    "fill": {
        "#ffffff": "#1a2128",
        "#dde9f6": "#223a55",
        "#f6f8fa": "#12171c",
        "#27303a": "#e4e9ee",
        "#5b6773": "#9dabb8",
    },
    "stroke": {"#c5cdd6": "#46525e", "#dde9f6": "#223a55", "#d6dce2": "#34404b", "#3b6ea5": "#7fb0e6"},
}
HEADS = (
    ("You write down what is valid", "once, as a text file"),
    ("A model answers by numbers", "only what can still be finished is offered"),
    ("The plan follows your rules", "whatever the model answered"),
)


def overview() -> str:
    """The three steps on one picture: rules, questions with their answers, the plan. All of it is a real run."""
    questions = []
    planner = Planner(CFG.from_string(RULES), "test:script=" + ",".join(map(str, ANSWERS)))
    planner.on_event = lambda event: questions.append(event.question) if isinstance(event, Asked) else None
    plan = planner.plan("Describe this blurry photo in German")
    shown, top = (
        [_text(36, 108 + 17 * row, line, 12, mono=True) for row, line in enumerate(RULES.strip().split("\n"))],
        92,
    )
    for question, answer in zip(questions, ANSWERS, strict=True):
        shown.append(_rectangle(342, top, 266, 12 + 19 * len(question.options), "#ffffff", "#c5cdd6"))
        for option in question.options:
            top += 19
            if option.number == answer:
                shown.append(_rectangle(346, top - 13, 258, 18, "#dde9f6", "#dde9f6"))
            shown.append(_text(356, top, f"{option.number}: {option.text}", 12, bold=option.number == answer))
        top += 26
    forced = [_text(342, top + 8 + 17 * row, line, 11.5, colour="#5b6773") for row, line in enumerate(NOT_ASKED)]
    for number, line in enumerate(str(plan).splitlines()):
        shown.append(_rectangle(652, 92 + 56 * number, 266, 34, "#dde9f6", "#3b6ea5"))
        shown.append(_text(662, 114 + 56 * number, line, 12))
        if number:
            shown.append(f'<path d="M785 {72 + 56 * number}v18m-4 -6l4 6l4 -6" fill="none" stroke="#7a8794"/>')
    call = _text(652, 282, str(plan.call).partition(" = ")[2], 11, mono=True)
    panels = []
    for number, (head, below) in enumerate(HEADS):
        panels.append(_rectangle(16 + 310 * number, 16, 298, 330, "#f6f8fa", "#d6dce2"))
        panels.append(_text(34 + 310 * number, 46, f"{number + 1}  {head}", 14, bold=True))
        panels.append(_text(34 + 310 * number, 68, below, 12, colour="#5b6773"))
    dark = "".join(
        f'[{name}="{light}"]{{{name}:{dark}}}' for name, shades in DARK.items() for light, dark in shades.items()
    )
    style = f"<style>@media (prefers-color-scheme:dark){{{dark}}}</style>"
    body = "\n".join([style, *panels, *shown, *forced, call])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 950 362" width="950" height="362">\n{body}\n</svg>\n'


def _rectangle(x: float, y: float, width: float, height: float, fill: str, line: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{line}"/>'


def _text(
    x: float, y: float, text: str, size: float, *, bold: bool = False, mono: bool = False, colour: str = "#27303a"
) -> str:
    family = "DejaVu Sans Mono,Menlo,Consolas,monospace" if mono else "Helvetica,Arial,sans-serif"
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" font-family="{family}" font-size="{size}"{weight} fill="{colour}" '
        f'xml:space="preserve">{escape(text, quote=False)}</text>'
    )


if __name__ == "__main__":
    main()
