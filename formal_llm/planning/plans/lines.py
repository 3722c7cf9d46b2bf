"""Reading back a plan of a grammar whose productions have texts: which derivation is told like this?

The lines of such a plan name productions, and most of its terminals are in no line: a text speaks for them. So a second
grammar is made, one for the lines. Each of its productions is one of the grammar's, less what is not told, and where
the production is a step, with the line that tells it. The lines, in the order of the derivation, are a word of this
grammar exactly where a derivation prints so, as :func:`~formal_llm.planning.plans.plan.read_steps` prints it (but a
backward list of steps is not asked whether it would be printed as a nesting). Where they are none, it tells which line
cannot follow, and what could.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from formal_llm.automata import CFG, Production, Word
from formal_llm.automata.models.symbols import members
from formal_llm.errors import NotationError, Undecided
from formal_llm.planning.plans.lines_earley import Body, LineChart, Part, Ways, alive
from formal_llm.planning.plans.steps import Order

_RESULT = re.compile(r"(?:the )?(?:result|output) of step (\d+)(?: and |$)")
#: What may stand at the end of a line and be no part of a name.
STOPS = ".;,"
#: Ways to tell a symbol other than to begin with the step on a given line: anyhow; not as a lone terminal, which would
#: have been told with the step that it is for; only named, in a step that is in no line but could have been.
_ANYHOW, _UNNAMED, _NAMED = -1, -2, -3
#: How the steps on the lines are nested: not at all, or applied to each other, as those of a backward plan are.
_CHOSEN, _INPUTS = ", ", " and "
#: How many ways to read one line are kept.
_WAYS = 1_000


class Line(NamedTuple):
    """A line of a plan: the number of its step, its place in the text, the text, and what it may say, folded."""

    number: int
    place: int
    source: str
    forms: tuple[str, ...]


class _Said(NamedTuple):
    """A step: the line with this index; or one that is in no line, as a text."""

    step: int | str


#: What becomes of a body: terminals that are not told (plain), steps, and parts that are told on their own.
_Items = tuple[str | _Said | Part, ...]


def folded(text: str) -> str:
    """A text as it is compared: blanks and capitals do not count."""
    return " ".join(text.casefold().split())


class Retelling:
    """The grammar of the lines.

    Args:
        cfg: the grammar of the plan.
        lines: in the order of the derivation, which for a backward plan is from the last to the first.
        nested: whether the steps are applied to each other: each step is a tool, and its arguments are told with it.
        printed: whether only "Use" and labels are understood, as a plan is printed; else also names, and no "Use".
    """

    def __init__(self, cfg: CFG, lines: Sequence[Line], *, nested: bool, printed: bool) -> None:
        self._cfg, self._lines, self._nested = cfg, lines, nested
        self._numbers = {line.number: index for index, line in enumerate(lines)}
        self._forms = {name: [folded(cfg.label(name))] for name in cfg.terminals}
        self._uses = {name: [f"use {label}" for label in labels] for name, labels in self._forms.items()}
        if not printed:
            for name, forms in self._forms.items():
                forms += [folded(name), folded(name.replace("_", " "))]
                self._uses[name] = [use for form in forms for use in (f"use {form}", form)]
        self._plain: dict[str, list[Word]] = {}
        # The first step of a nesting is its root, so it stands on the first line.
        root = Part(cfg.start, 0 if nested else _ANYHOW)
        self.chart = LineChart(alive(self._fill(root)), root, len(lines))

    def own_terminals(self) -> Word | None:
        """The terminals of the steps, one step after the other, whether or not the steps fit together.

        None where a line does not tell which, or where they stand around what another line tells.
        """
        word: Word = ()
        terminals = () if self._nested else tuple(self._cfg.terminals)
        for index in range(len(self._lines)):
            steps = chain.from_iterable(self._step(p, index) for p in self._cfg.productions)
            alone = chain.from_iterable(self._alone(name, index) for name in terminals)
            found = {self._own(items) for items in chain(steps, alone) if items[0] == _Said(index)}
            own = found.pop() if len(found) == 1 else None
            if own is None:
                return None
            word += own
        return word

    @staticmethod
    def _own(items: _Items) -> Word | None:
        first = next((place for place, item in enumerate(items) if isinstance(item, Part)), len(items))
        late = any(isinstance(item, str) for item in items[first:])
        return None if late else tuple(item for item in items[:first] if isinstance(item, str))

    # -- the grammar of the lines -------------------------------------------------------------------------------

    def _fill(self, root: Part) -> dict[Part, Ways]:
        """What each part may become that can come up."""
        table: dict[Part, Ways] = {}
        todo = [root]
        while todo:
            part = todo.pop()
            if part in table:
                continue
            ways = table[part] = Ways()
            for items in self._ways(part):
                step = items[0].step if items and isinstance(items[0], _Said) else None
                plain = tuple(item for item in items if not isinstance(item, _Said))
                parts = tuple(item for item in plain if isinstance(item, Part))
                if step is None:
                    bodies = ways.free
                else:
                    bodies = ways.on.setdefault(step, []) if isinstance(step, int) else ways.could.setdefault(step, [])
                # Of bodies that are told alike one is enough.
                if all(body.parts != parts for body in bodies):
                    bodies.append(Body(plain, parts))
                    todo += parts
        return table

    def _ways(self, part: Part) -> Iterator[_Items]:
        """What a symbol may become."""
        symbol, way = part
        if symbol in self._cfg.terminals:
            yield from self._alone(symbol, _ANYHOW)
            return
        if way == _NAMED:
            if any(self._plain_words(symbol)):
                yield ()
            way = _UNNAMED
        for production in self._cfg.by_head[symbol]:
            body = production.body
            if self._is_step(production):
                yield from self._step(production, way)
            elif way == _ANYHOW:
                yield tuple(Part(name, _ANYHOW) for name in body)
            elif len(body) == 1 and body[0] in self._cfg.by_head:
                among = members(body[0]) if self._nested else None
                if among is None:
                    yield (Part(body[0], way),)
                elif len(among) > 1 and way == _UNNAMED:
                    yield among[:2]  # no line tells which
            elif len(body) != 1 and way == _UNNAMED:
                # Of a selection one member alone would have been told, so here is another one.
                some = [name.replace("any(", "some(", 1) if members(symbol) else name for name in body]
                yield tuple(Part(name, _ANYHOW) for name in some)

    def _is_step(self, production: Production) -> bool:
        return bool(production.text) or (self._nested and len(production.body) > 1)

    def _alone(self, terminal: str, way: int) -> Iterator[_Items]:
        """A terminal that is a step of its own."""
        for index in self._where(way):
            if any(not rest for rest in self._used(index, terminal)):
                yield (_Said(index), terminal)
        yield (_Said(f"Use {self._cfg.label(terminal)}"), terminal)

    def _step(self, production: Production, way: int) -> Iterator[_Items]:
        """A production that is a step, on each line that may tell it; and on none, to know what could have stood."""
        text, body = production.text, production.body
        if text:
            forms = dict.fromkeys((folded(text), folded(text).rstrip(STOPS)))
            for index in self._where(way):
                for rest in _after(self._lines[index].forms, forms, ": "):
                    for items in self._told(body, rest, _CHOSEN):
                        yield (_Said(index), *items)
            yield (_Said(text), *self._untold(body))
        elif self._is_step(production):
            for tool in dict.fromkeys(chain.from_iterable(self._plain_words(body[0]))):
                for index in self._where(way):
                    for rest in self._used(index, tool):
                        for items in self._told(body[1:], rest, _INPUTS):
                            yield (_Said(index), tool, *items)
                yield (_Said(f"Use {self._cfg.label(tool)}"), tool, *self._untold(body[1:]))

    def _where(self, way: int) -> Iterable[int]:
        return (way,) if way >= 0 else range(len(self._lines))

    def _used(self, index: int, terminal: str) -> Iterator[str]:
        return _after(self._lines[index].forms, self._uses[terminal], " on ")

    # -- what is told with a step -------------------------------------------------------------------------------

    def _told(self, body: Word, rest: str, style: str) -> Iterable[_Items]:
        """What the body of a step may become when all of ``rest``, labels and results, is told of it."""
        #: What is left to be told, with the parts so far: ways that differ in neither are one.
        states: dict[tuple[str, _Items], _Items] = {(rest, ()): ()}
        for place, name in enumerate(body):
            after: dict[tuple[str, _Items], _Items] = {}
            is_tool = self._nested and style == _CHOSEN and place == 0 and len(body) > 1
            for (left, parts), items in states.items():
                for more, now in self._argument(name, left, style, place == 0, is_tool):
                    new = tuple(item for item in more if isinstance(item, Part))
                    after.setdefault((now, parts + new), items + more)
            states = after
            if len(states) > _WAYS:
                raise Undecided(f"there are too many ways to read {rest!r}")
        return [items for (left, _), items in states.items() if not left]

    def _argument(self, name: str, rest: str, style: str, first: bool, is_tool: bool) -> Iterator[tuple[_Items, str]]:
        """What one symbol may become, and what is then left to be told."""
        if name in self._cfg.terminals and style == _CHOSEN:
            yield (name,), rest  # the text speaks for it
        elif name in self._cfg.terminals or members(name):
            yield from self._some(members(name) or (name,), rest, style)
        elif not (self._nested or first):
            yield (Part(name, _ANYHOW),), rest
        else:
            for plain in self._plain_words(name):
                for taken, left in self._some(plain, rest, style):
                    if style == _INPUTS or len(taken) == 1:
                        yield taken, left
                if not plain and style == _INPUTS:
                    yield (), rest
            result = _RESULT.match(rest) if style == _INPUTS else None
            if result and int(result[1]) in self._numbers:
                yield (Part(name, self._numbers[int(result[1])]),), rest[result.end() :]
            elif style == _CHOSEN and not is_tool:
                yield (Part(name, _UNNAMED),), rest

    def _some(self, names: Word, rest: str, style: str) -> Iterator[tuple[Word, str]]:
        """The first of the labels that ``rest`` lists, as some of these terminals, in their order; and what is left."""
        found: dict[str, Word] = {rest: ()}
        for name in names:
            for left, taken in list(found.items()):
                for after in _after((left,), self._forms[name], style):
                    found.setdefault(after, (*taken, name))
        return ((taken, left) for left, taken in found.items() if taken)

    def _untold(self, body: Word) -> _Items:
        """What the body of a step that is in no line becomes: it might name anything."""
        parts = (Part(n, _NAMED if self._nested or not at else _ANYHOW) for at, n in enumerate(body))
        return tuple(part for part in parts if part.symbol in self._cfg.nonterminals)

    def _plain_words(self, symbol: str) -> list[Word]:
        """What a symbol is where it, or what it only renames, is no step: a terminal, some of a selection, nothing."""
        if symbol in self._cfg.terminals or members(symbol):
            return [members(symbol) or (symbol,)]
        if symbol not in self._plain:
            words: dict[Word, None] = {}
            renamed = [symbol]
            for name in renamed:  # it grows
                for body in (p.body for p in self._cfg.by_head[name] if not p.text and len(p.body) < 2):
                    if not body or body[0] not in self._cfg.nonterminals:
                        words[members(body[0]) or body if body else ()] = None
                    elif body[0] not in renamed:
                        renamed.append(body[0])
            self._plain[symbol] = list(words)
        return self._plain[symbol]


# -- what the reader of plans asks ------------------------------------------------------------------------------


def tells(cfg: CFG, lines: Sequence[Line]) -> bool:
    """Whether a line tells a production by its text."""
    forms = {form for p in cfg.productions if p.text for form in (folded(p.text), folded(p.text).rstrip(STOPS))}
    return any(text in forms or any(_after((text,), forms, ": ")) for line in lines for text in line.forms)


def read_back(cfg: CFG, lines: Sequence[Line], order: Order) -> Word | None:
    """The word of a plan that is told in these lines, in ``order`` or else in the other one; None where there is none.

    Raises:
        Undecided: there are too many ways to read the lines.
    """
    # As people write it may be mistaken for another step as it is printed, so what is printed comes first.
    readings = (reading for printed in (True, False) for _, reading in _readings(cfg, lines, order, printed=printed))
    words = (reading.chart.word() for reading in readings)
    return next((word for word in words if word is not None), None)


def own_terminals(cfg: CFG, lines: Sequence[Line], order: Order) -> Word:
    """The terminals of the steps of lines that tell no plan: a word that is none of the grammar's.

    Raises:
        NotationError: the lines do not tell such a word; with the first line that cannot follow, and what could.
    """
    backward, reading = max(_readings(cfg, lines, order, printed=False), key=lambda found: found[1].chart.longest)
    longest = reading.chart.longest
    word = reading.own_terminals()
    if word is not None and not cfg.accepts(word):
        return word
    told = lines[::-1] if backward else lines
    line = told[min(longest, len(told) - 1)]
    side = "before" if backward else "after"
    if longest == len(told):
        problem = f"no plan is told like this: a step is missing {side} this one"
    elif longest:
        problem = f"no plan has this step right {side} step {told[longest - 1].number}"
    else:
        problem = f"no plan {'ends' if backward else 'begins'} with this step"
    raise NotationError(
        problem, file="<plan>", line=line.place, source_line=line.source, expected=tuple(reading.chart.could)
    )


def _readings(cfg: CFG, lines: Sequence[Line], order: Order, *, printed: bool) -> Iterator[tuple[bool, Retelling]]:
    """The ways in which a plan may be printed: whether backward, and the grammar of the lines."""
    for backward in (order == "backward", order != "backward"):
        if backward:
            yield True, Retelling(cfg, lines[::-1], nested=True, printed=printed)
        yield backward, Retelling(cfg, lines[::-1] if backward else lines, nested=False, printed=printed)


def _after(texts: Iterable[str], forms: Iterable[str], separator: str) -> Iterator[str]:
    """What is left of the texts behind one of these forms, at whose end they end or a separator stands."""
    forms = [form for form in forms if form]
    for text in texts:
        for form in forms:
            if text == form:
                yield ""
            elif text.startswith(form + separator) and len(text) > len(form) + len(separator):
                yield text[len(form) + len(separator) :]
