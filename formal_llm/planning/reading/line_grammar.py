"""Reading back a plan of a grammar: which derivations are written like this?

The lines of such a plan name productions, and many of its terminals are in no line: a text speaks for them. So a second
grammar is made, one for the lines. Each of its productions is one of the grammar's, less what is not written, and where
the production is a step, with its line. The lines, in the order of the derivation, are a word of this
grammar exactly where a derivation prints so, as :func:`~formal_llm.planning.plans.steps.read_steps` prints it. Where
they are none, it determines which line cannot follow, and what could.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal, NamedTuple

from formal_llm.automata import CFG, Production, Word
from formal_llm.automata.models.repetition import Repetition, parse_repetition
from formal_llm.automata.models.symbols import selection_members
from formal_llm.errors import Undecided
from formal_llm.planning.plans.steps import Order, one_line
from formal_llm.planning.reading.candidates import CandidateWords
from formal_llm.planning.reading.line_chart import LineChart, LinePart, PartBody, PartWays, drop_dead_bodies
from formal_llm.planning.reading.phrases import ProductionPhrases
from formal_llm.planning.reading.prose import STOPS, ReadingProblem, StepLine, fold_text

_RESULT = re.compile(r"the result of step (\d+)(?: and |$)")
_RESULT_LIKE = re.compile(r"(?:the )?(?:result|output) of step (\d+)(?: and |$)")
#: Ways to write a symbol other than to begin with the step on a given line: anyhow; not as a lone terminal, which would
#: have been written with the step that it is for; only named, in a step that is in no line but could have been; as a
#: lone terminal; what is no step in no line, and the steps on theirs; in no line at all; so, and of a selection
#: several; anyhow, as the whole of a plan that is no nesting.
_ANYHOW, _UNNAMED, _NAMED, _ALONE, _ELIDED, _SILENT, _SEVERAL, _TOP = range(-1, -9, -1)
_IN_NO_LINE = (_ELIDED, _SILENT, _SEVERAL)
#: How the steps on the lines are nested: not at all, or applied to each other, as those of a prefix plan are.
_CHOSEN, _INPUTS = ", ", " and "
#: How many ways to read one line are kept.
_WAYS = 1_000


#: How the steps are understood: as they are printed, to the letter; as people write them, by name or label; so, and
#: what a step is applied to is left out.
Manner = Literal["printed", "free", "elided"]


class _StepItem(NamedTuple):
    """A step: the line with this index; or one that is in no line, as a text."""

    step: int | str


#: What becomes of a body: terminals that are not written (plain), steps, and parts that have lines of their own.
_Items = tuple[str | _StepItem | LinePart, ...]


class LineGrammar:
    """The grammar of the lines.

    Args:
        lines: in the order of the derivation, which for a prefix plan is from the last to the first.
        nested: whether the steps are applied to each other: each step is a tool, and its arguments are written with it.
        manner: what is understood.
        bent: whether only plans are meant that are no nesting of calls. A prefix plan that is one is printed so.
    """

    def __init__(
        self, cfg: CFG, lines: Sequence[StepLine], *, nested: bool, manner: Manner = "printed", bent: bool = False
    ) -> None:
        self._cfg, self._lines, self._nested, self._manner = cfg, lines, nested, manner
        self._numbers = {line.number: index for index, line in enumerate(lines)}
        printed = manner == "printed"
        self._result = _RESULT if printed else _RESULT_LIKE
        self._written_forms = [(line.text,) if printed else line.forms for line in lines]
        self._form = one_line if printed else fold_text
        self._forms = {name: [self._form(cfg.label(name))] for name in cfg.terminals}
        self._uses = {name: [f"Use {label}" for label in labels] for name, labels in self._forms.items()}
        if not printed:
            # A label goes before a name: what is printed for one terminal does not name another one.
            labels = {form for forms in self._forms.values() for form in forms}
            for name, forms in self._forms.items():
                forms += [form for form in (fold_text(name), fold_text(name.replace("_", " "))) if form not in labels]
                self._uses[name] = [use for form in forms for use in (f"use {form}", form)]
        renamings = Renamings(cfg)
        self._plain_words, self._repetitions = renamings.list_plain_words, renamings.list_repetitions
        # The first step of a nesting is its root, so it is on the first line.
        root = LinePart(cfg.start, 0 if nested else _TOP if bent else _ANYHOW, bent)
        self.chart = LineChart(drop_dead_bodies(self._fill_table(root)), root, len(lines))

    def collect_own_terminals(self) -> Word | None:
        """The terminals of the steps, one step after the other, whether or not the steps fit together.

        None where a line does not determine which, or where they enclose the contents of another line.
        """
        word: Word = ()
        terminals = () if self._nested else tuple(self._cfg.terminals)
        for index in range(len(self._lines)):
            steps = (items for p in self._cfg.productions for items, _ in self._expand_step(p, index))
            alone = chain.from_iterable(self._expand_alone(name, index) for name in terminals)
            found = {self._take_own_terminals(items) for items in chain(steps, alone) if items[0] == _StepItem(index)}
            own = found.pop() if len(found) == 1 else None
            if own is None:
                return None
            word += own
        return word

    @staticmethod
    def _take_own_terminals(items: _Items) -> Word | None:
        first = next((place for place, item in enumerate(items) if isinstance(item, LinePart)), len(items))
        late = any(isinstance(item, str) for item in items[first:])
        return None if late else tuple(item for item in items[:first] if isinstance(item, str))

    # -- the grammar of the lines -------------------------------------------------------------------------------

    def _fill_table(self, root: LinePart) -> dict[LinePart, PartWays]:
        """What each part may become that can come up."""
        table: dict[LinePart, PartWays] = {}
        todo = [root]
        while todo:
            part = todo.pop()
            if part in table:
                continue
            ways = table[part] = PartWays()
            for items in self._expand_part(part):
                step = items[0].step if items and isinstance(items[0], _StepItem) else None
                plain = tuple(item for item in items if not isinstance(item, _StepItem))
                parts = tuple(item for item in plain if isinstance(item, LinePart))
                if step is None:
                    bodies = ways.free
                else:
                    bodies = ways.on.setdefault(step, []) if isinstance(step, int) else ways.could.setdefault(step, [])
                body = PartBody(plain, parts, isinstance(step, int))
                if body not in bodies:
                    bodies.append(body)
                    todo += parts
        return table

    def _expand_part(self, part: LinePart) -> Iterator[_Items]:
        """What a part may become."""
        if not part.bent:
            yield from (items for items, _ in self._expand_symbol(part))
        elif part.symbol not in self._cfg.terminals:
            for items, bends in self._expand_symbol(part):
                if bends:
                    yield items
                    continue
                for at, item in enumerate(items):
                    if isinstance(item, LinePart):
                        yield (*items[:at], item._replace(bent=True), *items[at + 1 :])

    def _expand_symbol(self, part: LinePart) -> Iterator[tuple[_Items, bool]]:
        """What a symbol may become, and whether that is a branching which begins with no tool."""
        symbol, way, _ = part
        if symbol in self._cfg.terminals:
            if way in _IN_NO_LINE:
                yield from [((symbol,), False)] if way != _SEVERAL else []
            else:
                yield from ((items, False) for items in self._expand_alone(symbol, way))
            return
        if way == _ALONE:
            for name in dict.fromkeys(chain.from_iterable(self._plain_words(symbol))):
                yield (LinePart(name, _ANYHOW),), False
            return
        if way == _NAMED:
            if any(self._plain_words(symbol)):
                yield (), False
            way = _UNNAMED
        for production in self._cfg.by_head[symbol]:
            yield from self._expand_production(production, way)

    def _expand_production(self, production: Production, way: int) -> Iterator[tuple[_Items, bool]]:
        body = production.body
        if parse_repetition(production.head) is not None:
            # A text does not list the terminals in a repetition, and a list of steps has each.
            inner = way if way in _IN_NO_LINE else _ELIDED if self._nested else _ANYHOW
            yield from (
                [] if self._nested and way >= 0 else [(tuple(LinePart(name, inner) for name in body), way == _TOP)]
            )
            return
        if way == _TOP:
            way = _ANYHOW
            if len(body) == 1 and not production.text and body[0] in self._cfg.nonterminals:
                yield (LinePart(body[0], _TOP),), False
                return
        if way in _IN_NO_LINE and not (way == _ELIDED and self._is_step(production)):
            if not production.text:
                yield self._expand_silent(production, way), False
        elif self._is_step(production):
            yield from self._expand_step(production, way)
        elif len(body) == 1 and way != _ANYHOW:
            among = selection_members(body[0]) if self._nested else None
            if among is None and body[0] in self._cfg.by_head:
                yield (LinePart(body[0], way),), False
            elif among is not None and len(among) > 1 and way == _UNNAMED:
                yield (LinePart(body[0], _SEVERAL),), False  # no line determines which
        elif way in (_ANYHOW, _UNNAMED):
            yield from self._expand_listed(production, way)

    def _expand_listed(self, production: Production, way: int) -> Iterator[tuple[_Items, bool]]:
        """A production that is no step of its own: its parts are written one after the other."""
        body = production.body
        if selection_members(production.head) is not None:
            # Of a selection one member alone would have been written, so here is another one.
            body = body if way == _ANYHOW else tuple(name.replace("any(", "some(", 1) for name in body)
            yield tuple(LinePart(name, _ANYHOW) for name in body), False
        elif len(body) > 1 and body[0] not in self._cfg.terminals:
            rest = tuple(LinePart(name, _ANYHOW) for name in body[1:])
            yield (LinePart(body[0], _ALONE), *rest), False
            yield (LinePart(body[0], _UNNAMED), *rest), True
        else:
            yield tuple(LinePart(name, _ANYHOW) for name in body), False

    @staticmethod
    def _expand_silent(production: Production, way: int) -> _Items:
        """A production of which lines contain only the steps in it."""
        if way != _SEVERAL:
            return tuple(LinePart(name, way) for name in production.body)
        if len(production.body) == 1:
            return tuple(LinePart(name, _SEVERAL) for name in production.body)
        return tuple(LinePart(name.replace("any(", "some(", 1), _SILENT) for name in production.body)

    def _is_step(self, production: Production) -> bool:
        return bool(production.text) or (self._nested and len(production.body) > 1)

    def _expand_alone(self, terminal: str, way: int) -> Iterator[_Items]:
        """A terminal that is a step of its own."""
        for index in self._list_line_indices(way):
            if any(not rest for rest in self._match_use(index, terminal)):
                yield (_StepItem(index), terminal)
        if way == _ANYHOW:
            yield (_StepItem(f"Use {self._cfg.label(terminal)}"), terminal)

    def _expand_step(self, production: Production, way: int) -> Iterator[tuple[_Items, bool]]:
        """Place a production that is a step on each line it may be read from, and on none, to learn what was possible.

        With each, whether it is a branching that begins with no tool.
        """
        text, body = production.text, production.body
        if text:
            forms = [self._form(text)] + ([] if self._manner == "printed" else [fold_text(text).rstrip(STOPS)])
            for index in self._list_line_indices(way):
                for rest in _strip_forms(self._written_forms[index], dict.fromkeys(forms), ": "):
                    for items, heads in self._match_body(body, rest, _CHOSEN):
                        yield (
                            (_StepItem(index), *items),
                            len(body) > 1 and (heads != 1 or isinstance(items[0], LinePart)),
                        )
            yield (_StepItem(text), *self._expand_unseen(body)), False
        elif self._is_step(production):
            for tool in dict.fromkeys(chain.from_iterable(self._plain_words(body[0]))):
                for index in self._list_line_indices(way):
                    for rest in self._match_use(index, tool):
                        for items, _ in self._match_body(body[1:], rest, _INPUTS):
                            yield (_StepItem(index), tool, *items), False
                        if not rest and self._manner == "elided":
                            yield (_StepItem(index), tool, *(LinePart(name, _ELIDED) for name in body[1:])), False
                yield (_StepItem(f"Use {self._cfg.label(tool)}"), tool, *self._expand_unseen(body[1:])), False

    def _list_line_indices(self, way: int) -> Iterable[int]:
        return (way,) if way >= 0 else range(len(self._lines))

    def _match_use(self, index: int, terminal: str) -> Iterator[str]:
        return _strip_forms(self._written_forms[index], self._uses[terminal], " on ")

    # -- what is written with a step ----------------------------------------------------------------------------

    def _match_body(self, body: Word, rest: str, style: str) -> Iterable[tuple[_Items, int]]:
        """What the body of a step may become when all of ``rest``, labels and results, belongs to it.

        With each, how many of its items its first symbol became.
        """
        #: What is left to be read, what the symbols so far became, and how many items that was of the first one.
        states: dict[tuple[str, _Items, int], None] = {(rest, (), 0): None}
        for place, name in enumerate(body):
            is_tool = self._nested and style == _CHOSEN and place == 0 and len(body) > 1
            states = {
                (now, items + more, heads if place else len(more)): None
                for left, items, heads in states
                for more, now in self._match_argument(name, left, style, place == 0, is_tool)
            }
            if len(states) > _WAYS:
                raise Undecided(f"there are too many ways to read {rest!r}")
        return [(items, heads) for left, items, heads in states if not left]

    def _match_argument(
        self, name: str, rest: str, style: str, first: bool, is_tool: bool
    ) -> Iterator[tuple[_Items, str]]:
        """What one symbol may become, and what is then left to be read."""
        again = parse_repetition(name)
        if again is not None:
            if style == _INPUTS:
                yield from self._match_repetition(again, rest)
            elif not is_tool:
                yield (LinePart(name, _ELIDED if self._nested else _ANYHOW),), rest
        elif name in self._cfg.terminals and style == _CHOSEN:
            yield (name,), rest  # the text speaks for it
        elif name in self._cfg.terminals or selection_members(name):
            found = self._match_labels(selection_members(name) or (name,), rest, style)
            yield from (one for one in found if not is_tool or len(one[0]) == 1)
        elif not (self._nested or first):
            yield (LinePart(name, _ANYHOW),), rest
        elif style == _INPUTS:
            yield from self._match_input(name, rest)
        else:
            for plain in self._plain_words(name):
                yield from (one for one in self._match_labels(plain, rest, style) if len(one[0]) == 1)
            if not is_tool:
                yield (LinePart(name, _UNNAMED),), rest

    def _match_input(self, name: str, rest: str) -> Iterator[tuple[_Items, str]]:
        """What a nonterminal may become among the inputs of a tool, and what is then left to be read."""
        for plain in self._plain_words(name):
            yield from self._match_labels(plain, rest, _INPUTS)
            if not plain:
                yield (), rest
        for several in self._repetitions(name):
            yield from self._match_repetition(several, rest)
        result = self._result.match(rest)
        if result and int(result[1]) in self._numbers:
            yield (LinePart(name, self._numbers[int(result[1])]),), rest[result.end() :]

    def _match_repetition(self, again: Repetition, rest: str) -> Iterator[tuple[_Items, str]]:
        """What a repetition may become among the inputs of a tool, and what is then left to be read."""
        found: dict[tuple[_Items, str], None] = {((), rest): None}
        for count in range(len(rest) + 1 if again.most is None else again.most + 1):
            if count >= again.least:
                yield from found
            found = {
                (items + more, now): None
                for items, left in found
                for more, now in self._match_argument(again.of, left, _INPUTS, False, False)
                if now != left
            }
            if len(found) > _WAYS:
                raise Undecided(f"there are too many ways to read {rest!r}")

    def _match_labels(self, names: Word, rest: str, style: str) -> Iterator[tuple[Word, str]]:
        """The first of the labels that ``rest`` lists, as some of these terminals, in their order; and what is left."""
        found: dict[tuple[Word, str], None] = {((), rest): None}
        for name in names:
            for taken, left in list(found):
                for after in _strip_forms((left,), self._forms[name], style):
                    found[(*taken, name), after] = None
            if len(found) > _WAYS:
                raise Undecided(f"there are too many ways to read {rest!r}")
        return (one for one in found if one[0])

    def _expand_unseen(self, body: Word) -> _Items:
        """What the body of a step that is in no line becomes: it might name anything."""
        parts = (LinePart(n, _NAMED if self._nested or not at else _ANYHOW) for at, n in enumerate(body))
        return tuple(part for part in parts if part.symbol in self._cfg.nonterminals)


def _strip_forms(texts: Iterable[str], forms: Iterable[str], separator: str) -> Iterator[str]:
    """Yield the rest of each text after one of these forms, where the text ends or a separator follows."""
    forms = [form for form in forms if form]
    for text in texts:
        for form in forms:
            if text == form:
                yield ""
            elif text.startswith(form + separator) and len(text) > len(form) + len(separator):
                yield text[len(form) + len(separator) :]


class Renamings:
    """What a symbol is where it, or what it only renames, is no step: a terminal, some of a selection, a repetition."""

    def __init__(self, cfg: CFG) -> None:
        self._cfg = cfg
        self._plain: dict[str, list[Word]] = {}
        self._repetitions: dict[str, list[Repetition]] = {}

    def list_plain_words(self, symbol: str) -> list[Word]:
        """The terminals that a symbol may be, each alone; those of a selection together; nothing."""
        if symbol in self._cfg.terminals or selection_members(symbol):
            return [selection_members(symbol) or (symbol,)]
        if symbol not in self._plain:
            self._resolve_symbol(symbol)
        return self._plain[symbol]

    def list_repetitions(self, symbol: str) -> list[Repetition]:
        """The repetitions that a symbol only renames."""
        if symbol not in self._plain:
            self._resolve_symbol(symbol)
        return self._repetitions[symbol]

    def _resolve_symbol(self, symbol: str) -> None:
        words: dict[Word, None] = {}
        several: dict[Repetition, None] = {}
        renamed = [symbol] if parse_repetition(symbol) is None else []
        for name in renamed:  # it grows
            for body in (p.body for p in self._cfg.by_head[name] if not p.text and len(p.body) < 2):
                again = parse_repetition(body[0]) if body else None
                if again is not None:
                    several[again] = None
                elif not body or body[0] not in self._cfg.nonterminals:
                    words[selection_members(body[0]) or body if body else ()] = None
                elif body[0] not in renamed:
                    renamed.append(body[0])
        self._plain[symbol], self._repetitions[symbol] = list(words), list(several)


class GrammarLines:
    """The words of a grammar that lines describe.

    Args:
        lines: the steps, from first to last.
        order: whether the derivation runs from the last step to the first, as that of a prefix plan does.
        strict: whether only what is printed is understood.

    Attributes:
        candidates: the words; empty where there are none.

    Raises:
        Undecided: there are too many ways to read the lines.
    """

    def __init__(self, cfg: CFG, lines: Sequence[StepLine], order: Order, *, strict: bool) -> None:
        self._cfg, self._lines = cfg, lines
        phrases = ProductionPhrases(cfg)
        self._order = order
        manner: Manner = "printed" if strict or all(map(phrases.is_printed, lines)) else "free"
        found = self._find_candidates(manner, strict=strict)
        inputs = any(map(phrases.has_inputs, lines))
        if not found and not strict and inputs and order == "forward":
            # Only prefix plans contain what a step is applied to; where it is written, it is meant.
            self._order = "prefix"
            found = self._find_candidates(manner, strict=False)
        elif not found and not strict and not inputs and order == "prefix":
            elided = LineGrammar(cfg, lines[::-1], nested=True, manner="elided").chart.build_candidates()
            found = [elided] if elided is not None else []
        self.candidates = tuple(self._restore_line_order(one) for one in found)

    def _find_candidates(self, manner: Manner, *, strict: bool) -> list[CandidateWords]:
        self._readings = list(self._list_readings(manner, strict=strict))
        found = (reading.chart.build_candidates() for reading in self._readings)
        return [candidates for candidates in found if candidates is not None]

    def _list_readings(self, manner: Manner, *, strict: bool) -> Iterator[LineGrammar]:
        if self._order == "forward":
            yield LineGrammar(self._cfg, self._lines, nested=False, manner=manner)
            return
        yield LineGrammar(self._cfg, self._lines[::-1], nested=True, manner=manner)
        bent = strict or manner == "printed"
        yield LineGrammar(self._cfg, self._lines[::-1], nested=False, manner=manner, bent=bent)

    def _restore_line_order(self, candidates: CandidateWords) -> CandidateWords:
        """Number the lines of what was read in the order of the text."""
        if self._order == "forward":
            return candidates
        return replace(candidates, lines={move: len(self._lines) - 1 - line for move, line in candidates.lines.items()})

    def explain_failure(self) -> ReadingProblem:
        """Why there are no words: the first line that cannot follow, in the order of the derivation."""
        prefix = self._order == "prefix"
        reading = max(self._readings, key=lambda one: one.chart.longest)
        longest = reading.chart.longest
        lines = self._lines[::-1] if prefix else self._lines
        line = lines[min(longest, len(lines) - 1)]
        side = "before" if prefix else "after"
        if longest == len(lines):
            problem = f"no plan is written like this: a step is missing {side} this one"
        elif longest:
            problem = f"no plan has this step right {side} step {lines[longest - 1].number}"
        else:
            problem = f"no plan {'ends' if prefix else 'begins'} with this step"
        return ReadingProblem(problem, line, tuple(reading.chart.could))

    def guess_word(self) -> Word | None:
        """The terminals of the steps, one after the other, where that is a word, and none of the grammar's."""
        for reading in self._readings:
            word = reading.collect_own_terminals()
            if word is not None and not self._cfg.accepts(word):
                return word
        return None
