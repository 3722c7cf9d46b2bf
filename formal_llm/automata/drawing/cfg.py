"""Pictures of grammars."""

from __future__ import annotations

from collections.abc import Mapping

from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.symbols import Order, Production, selection_members
from formal_llm.pictures.captions import WIDTH, cut_lines, number_text, shorten, wrap_text
from formal_llm.pictures.picture import Arrow, Box, BoxKind, Picture, Tone, printable

#: The productions (head, body) and selections (name, chosen members) of a derivation, with the numbers of its steps.
Used = Mapping[tuple[str, tuple[str, ...]], tuple[int, ...]]


def cfg_picture(cfg: CFG, *, most: int = 12, used: Used | None = None) -> Picture:
    """Draw a grammar: each nonterminal a rounded box that lists its productions, arrows to the symbols they use.

    A nonterminal that is a choice of one terminal (see :attr:`CFG.classes`), and a selection, is one green box
    that lists the labels of its terminals. Other terminals are plain boxes. An arrow without a source marks the start.
    The title says if words are read from the last step to the first.

    Args:
        cfg: the grammar.
        most: how many productions or terminals a box lists before it counts the rest.
        used: the parts that a plan uses: marked, with the numbers of its steps; the rest is faded. Used rows are always
            listed, and come first in a box that cannot list all rows.
    """
    sheet = _Sheet(cfg, most, used)
    boxes = [Box("", "", "point", tone=sheet.get_tone(True))]
    arrows = [Arrow("", cfg.start, tone=sheet.get_tone(True))]
    productions: dict[str, list[Production]] = {}
    for production in cfg.productions:
        productions.setdefault(production.head, []).append(production)
    leaves: dict[str, None] = {}
    for head, group in productions.items():
        if head in cfg.classes:
            one_of = ": one of" if len(group) > 1 else ""
            rows = [
                (shorten(cfg.label(production.body[0])), sheet.get_step_numbers(production)) for production in group
            ]
            boxes.append(sheet.draw_box(head, _write_heading(cfg, head) + one_of, "class", rows))
            continue
        kind: BoxKind = "start" if head == cfg.start else "nonterminal"
        boxes.append(
            sheet.draw_box(
                head, _write_heading(cfg, head), kind, [(_write_body(p), sheet.get_step_numbers(p)) for p in group]
            )
        )
        taken = {
            name for production in group if sheet.get_step_numbers(production) is not None for name in production.body
        }
        for name in dict.fromkeys(name for production in group for name in production.body):
            arrows.append(Arrow(head, name, tone=sheet.get_tone(name in taken)))
            if name not in cfg.nonterminals:
                leaves[name] = None
    terminals = {name for _, body in used or () for name in body}
    for name in leaves:
        chosen = selection_members(name)
        if chosen is None:
            boxes.append(Box(name, shorten(cfg.label(name)), "terminal", tone=sheet.get_tone(name in terminals)))
        else:
            rows = [(shorten(cfg.label(member)), sheet.get_chosen_steps(name, member)) for member in chosen]
            boxes.append(sheet.draw_box(name, "some of", "class", rows))
    return Picture(tuple(boxes), tuple(arrows), "LR", describe_order(cfg.order))


def describe_order(order: Order) -> str | None:
    """Describe the order of words for a picture's title; None if steps are carried out as they are read."""
    return None if order == "forward" else "Words are read from the last step to the first"


class _Sheet:
    """The shared settings of a grammar's boxes: how many rows they list, and which parts are used."""

    def __init__(self, cfg: CFG, most: int, used: Used | None) -> None:
        self.cfg, self.most, self.used = cfg, most, used

    def get_tone(self, used: bool) -> Tone:
        if self.used is None:
            return "plain"
        return "marked" if used else "faded"

    def get_step_numbers(self, production: Production) -> tuple[int, ...] | None:
        """Return the numbers of the steps that use a production; None if it is not used."""
        return None if self.used is None else self.used.get((production.head, production.body))

    def get_chosen_steps(self, selection: str, member: str) -> tuple[int, ...] | None:
        """Return the numbers of the steps that choose a member of a selection; None if none does."""
        found = [numbers for (head, body), numbers in (self.used or {}).items() if head == selection and member in body]
        return tuple(sorted({number for numbers in found for number in numbers})) if found else None

    def draw_box(self, name: str, label: str, kind: BoxKind, rows: list[tuple[str, tuple[int, ...] | None]]) -> Box:
        if len(rows) > self.most + 1:
            rows = sorted(rows, key=lambda row: row[1] is None)
        strong = tuple(place for place, (_, numbers) in enumerate(rows) if numbers is not None)
        details = cut_lines([number_text(numbers or (), text) for text, numbers in rows], max(self.most, len(strong)))
        return Box(name, label, kind, details, self.get_tone(bool(strong)), strong)


def _write_heading(cfg: CFG, name: str) -> str:
    label = shorten(cfg.label(name))
    return name if label in (name, name.replace("_", " ")) else f"{label}  ({name})"


def _write_body(production: Production) -> str:
    body = "→ " + (" ".join("some(…)" if selection_members(name) else name for name in production.body) or "ε")
    if not production.text:
        return shorten(body)
    both = printable(f"{body}   “{production.text}”")
    rows = wrap_text(f"“{shorten(production.text, 4 * WIDTH)}”", WIDTH).splitlines()
    indented = "\n".join("\u00a0" * 5 + row for row in rows)
    return both if len(both) <= WIDTH else f"{shorten(body)}\n{indented}"
