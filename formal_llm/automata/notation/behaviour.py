"""Reading and writing behaviours as text.

The notation is that of Crouse et al. 2023 (arXiv 2310.08535)::

    (define react                                   # a comment; ; begins one, too
      (:states
        (Ques (:text "[Question]"))
        (Obs (:text "[Observation]") (:flags :env-input))  # or :world: whether it comes, the world decides
        (Act (:text "[Action]") (:numbers (cost €0.02) (time 10s)))
        ...)
      (:limits "%limit 5 Act" "%limit cost <= €1")  # lines as in a grammar; optional
      (:behavior (next Ques (until (next Tht Act Obs) Ans))))

``(:import "search.agent" ...)`` imports other behaviours, by paths relative to the file: formulas may name the states
of each, and its name denotes its formula. Its limits apply, too. States that no formula and no limit names are left
out.

Printing a behaviour and reading it back gives an equal behaviour; imports are written out in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from formal_llm.automata.languages.emptiness import why_no_plan
from formal_llm.automata.models.behaviour import ENV_INPUT, WORLD, Behaviour, BehaviourState
from formal_llm.automata.models.formula import And, Formula, quote_name
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.quantities import Number, format_amount, read_amount
from formal_llm.automata.models.symbols import Symbol, quote_text
from formal_llm.automata.notation.comments import add_comments, add_outer_comments, attach_comments, collect_comments
from formal_llm.automata.notation.formula import FormulaReader
from formal_llm.automata.notation.imports import MOST_FILES, read_beside, resolve_beside
from formal_llm.automata.notation.limit_lines import LimitsReader, PlacedWord, split_line
from formal_llm.automata.notation.s_expressions import Expression, SAtom, SList, read_expressions
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import AutomatonError, NotationError, did_you_mean

_SHAPE = '(define NAME (:states (STATE (:text "...")) ...) (:behavior FORMULA))'
#: The sections of a definition, in each spelling.
_SECTIONS = {":states": ":states", ":behavior": ":behavior", ":behaviour": ":behavior", ":limits": ":limits",
             ":import": ":import"}  # fmt: skip
#: The characters that require quotes around a name in a limit.
_NOT_A_WORD = re.compile(r'[\s,"]')
_FLAGS = (f":{ENV_INPUT}", f":{WORLD}")
#: The key of the comments on the first line.
_DEFINE = "(define"
#: A line up to its comment.
_CODE = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^"#;])*')


def read_behaviour(text: str, file: str | None = None) -> Behaviour:
    """Read the behaviour that ``text`` describes; see :meth:`Behaviour.from_string`."""
    source = SourceText.from_text(text, file, NotationError)
    expressions = read_expressions(source)
    reader = _BehaviourReader(source)
    behaviour = reader.read_behaviour(expressions)
    why = why_no_plan(behaviour) if behaviour.limits else None
    if why is not None:
        source.fail_at(f"no sequence of states keeps the limits: {why.reason}", reader.limits_place)
    for warning in behaviour.warnings:
        source.warn_at(warning.message, source.places.get(warning.symbol) or source.places.get(""), stacklevel=3)
    if "#" in text or ";" in text:
        found = collect_comments(
            source.text, lambda line: _CODE.findall(line)[0], _find_anchors(behaviour, expressions[0]), "#;"
        )
        return attach_comments(behaviour, found)
    return behaviour


class _BehaviourReader:
    """Reads the single definition of a file; ``way`` is the chain of files that import it."""

    def __init__(self, source: SourceText, way: tuple[Path, ...] = ()) -> None:
        self.source = source
        self.fail = source.fail_at
        self.limits_place: Place | None = None
        self.way = way or ((Path(source.file).resolve(),) if source.file else ())

    def _read_imports(self, section: SList | None) -> Iterator[tuple[Behaviour, Place]]:
        for item in section.items[1:] if section is not None else ():
            if not isinstance(item, SAtom) or not item.quoted:
                self.fail("an import is a text", item.place, suggestion='write (:import "search.agent")')
            path = resolve_beside(self.source, item.text, item.place)
            if path in self.way:
                names = " imports ".join(one.name for one in (*self.way[self.way.index(path) :], path))
                self.fail(f"a circle of imports: {names}", item.place, suggestion="leave one of them out")
            if len(self.way) > MOST_FILES:
                self.fail(f"imports more than {MOST_FILES} deep", item.place)
            other = read_beside(self.source, item.text, path, item.place)
            yield _BehaviourReader(other, (*self.way, path)).read_behaviour(read_expressions(other)), item.place

    def _split_sections(self, items: Iterable[Expression]) -> dict[str, SList]:
        found: dict[str, SList] = {}
        for item in items:
            head = self._read_keyword(item, _SECTIONS)
            section = _SECTIONS[head.text]
            if section in found:
                self.fail(f"a second {section}", head.place)
            assert isinstance(item, SList)
            found[section] = item
        return found

    def _read_keyword(self, item: Expression, known: Iterable[str]) -> SAtom:
        """Return the word that begins a group like ``(:text ...)``."""
        head = item.head if isinstance(item, SList) else None
        if head is None:
            self.fail("unexpected here", item.place, expected=[f"({word} ...)" for word in known])
        if head.text not in known:
            near = did_you_mean(head.text, known)
            self.fail(
                f"unknown: {head.text}" + (f" (did you mean {near}?)" if near else ""), head.place, expected=[*known]
            )
        return head

    def _read_state(self, item: Expression) -> tuple[BehaviourState, Place]:
        """Read ``NAME`` or ``(NAME (:text "...") (:flags ...))``."""
        name, *properties = item.items if isinstance(item, SList) else (item,)
        if not isinstance(name, SAtom):
            self.fail("a state begins with its name", name.place, suggestion='write (NAME (:text "..."))')
        if name.text.startswith(":") and not name.quoted:
            self.fail(f"{name.text} stands where a state should", name.place, suggestion='write (NAME (:text "..."))')
        text: SAtom | None = None
        flags: list[str] = []
        numbers: dict[str, Number] = {}
        for each in properties:
            head = self._read_keyword(each, (":text", ":flags", ":numbers"))
            assert isinstance(each, SList)
            values = each.items[1:]
            if head.text == ":text":
                if text is not None:
                    self.fail(f"a second text for {name.text}", head.place)
                text = self._read_text(head, values)
            elif head.text == ":numbers":
                for value in values:
                    self._read_number(name.text, value, numbers)
            else:
                flags += map(self._read_flag, values)
        return BehaviourState(name.text, text.text if text else "", frozenset(flags), numbers), name.place

    def _read_number(self, state: str, value: Expression, numbers: dict[str, Number]) -> None:
        """Read ``(cost €0.02)``."""
        words = value.items if isinstance(value, SList) else ()
        if len(words) != 2 or not all(isinstance(word, SAtom) for word in words):
            self.fail("a number is a pair of its name and how much", value.place, suggestion="write (time 15min)")
        quantity, amount = (word for word in words if isinstance(word, SAtom))
        if quantity.text in numbers:
            self.fail(f"{state} has two numbers for {quantity.text}", quantity.place)
        try:
            numbers[quantity.text] = read_amount(amount.text)
        except ValueError as error:
            self.fail(str(error), amount.place)

    def _read_limits(self, section: SList | None) -> LimitsReader:
        reader = LimitsReader(self.source)
        for item in section.items[1:] if section is not None else ():
            if not isinstance(item, SAtom) or not item.quoted:
                self.fail("a limit is a text", item.place, suggestion='write (:limits "%limit 5 NAME")')
            directive, words = split_line(item.text)
            reader.read_line(PlacedWord(directive, item.place), [PlacedWord(word, item.place) for word in words])
        return reader

    def _read_text(self, head: SAtom, values: Sequence[Expression]) -> SAtom:
        if len(values) == 1 and isinstance(values[0], SAtom) and values[0].quoted:
            return values[0]
        place = values[0].place if values else head.place
        return self.fail("a text stands in quotes, and there is one", place, suggestion='write (:text "[Thought]")')

    def _read_flag(self, value: Expression) -> str:
        if not isinstance(value, SAtom) or value.text not in _FLAGS:
            near = did_you_mean(value.text, _FLAGS) if isinstance(value, SAtom) else None
            hint = f" (did you mean {near}?)" if near else ""
            name = value.text if isinstance(value, SAtom) else "(...)"
            self.fail(f"unknown flag: {name}{hint}", value.place, expected=_FLAGS)
        return value.text.removeprefix(":")

    def read_behaviour(self, expressions: Sequence[Expression]) -> Behaviour:
        if not expressions:
            self.fail("there is no behaviour", None, suggestion=f"write {_SHAPE}")
        if len(expressions) > 1:
            self.fail("a second behaviour; a file holds one", expressions[1].place)
        definition = expressions[0]
        head = definition.head if isinstance(definition, SList) else None
        if not isinstance(definition, SList) or head is None or head.text != "define":
            self.fail("a behaviour is a definition", definition.place, suggestion=f"write {_SHAPE}")
        if len(definition.items) < 2 or not isinstance(definition.items[1], SAtom):
            self.fail("the definition has no name", head.place, suggestion=f"write {_SHAPE}")
        sections = self._split_sections(definition.items[2:])
        for needed in (":states", ":behavior"):
            if needed not in sections:
                self.fail(f"{needed} is missing", definition.place, suggestion=f"write {_SHAPE}")
        own = self._read_own_states(sections[":states"])
        limits_read = self._read_limits(sections.get(":limits"))
        self.limits_place = (sections.get(":limits") or sections[":behavior"]).place
        states, formulas_of, imported = self._add_imported_states(own, sections.get(":import"))
        if not states:
            self.fail("there are no states", sections[":states"].place, suggestion=f"write {_SHAPE}")
        formulas = sections[":behavior"].items[1:]
        if len(formulas) != 1:
            self.fail(
                f"{len(formulas) or 'no'} formulas, where one is needed",
                formulas[1].place if formulas else sections[":behavior"].place,
                suggestion="put what comes one after the other into (next ...), what holds together into (and ...)",
            )
        formula = FormulaReader(self.source, states, "state", formulas_of).read_formula(formulas[0])
        self.source.places[""] = formulas[0].place
        symbols = {name: Symbol(numbers=state.numbers) for name, state in states.items()}
        limits = limits_read.build_limits(states, symbols, called="state", imported=imported)
        try:
            named = {*own, *formula.names, *limits.at_most, *limits.at_least}
            used = [state for name, state in states.items() if name in named]
            return Behaviour(definition.items[1].text, used, formula, limits)
        except AutomatonError as error:
            self.fail(str(error), formulas[0].place)

    def _read_own_states(self, section: SList) -> dict[str, BehaviourState]:
        """The states that a behaviour declares itself."""
        states: dict[str, BehaviourState] = {}
        for item in section.items[1:]:
            state, place = self._read_state(item)
            if state.name in states:
                first = self.source.places[state.name]
                self.fail(f"a second state {state.name}; the first is in line {first.line}", place)
            states[state.name] = state
            self.source.places[state.name] = place
        return states

    def _add_imported_states(
        self, own: Mapping[str, BehaviourState], section: SList | None
    ) -> tuple[dict[str, BehaviourState], dict[str, Formula], Limits]:
        """All states, the formulas of the imported behaviours by their names, and the limits of those."""
        states, formulas, limits = dict(own), dict[str, Formula](), Limits()
        for other, place in self._read_imports(section):
            for state in other.states.values():
                if states.setdefault(state.name, state) != state:
                    self.fail(f"the state {state.name} of {other.name} is another one than that of this name", place,
                              suggestion="give one of them another name")  # fmt: skip
            formulas[other.name] = other.formula
            try:
                limits &= other.limits
            except ValueError as error:
                self.fail(str(error), place)
        for name in formulas.keys() & states.keys():
            self.fail(f"{name} is a state, and a behaviour that is imported", section.place if section else None,
                      suggestion="give one of them another name")  # fmt: skip
        return states, formulas, limits


# -- writing ----------------------------------------------------------------------------------------------------------


def write_behaviour(behaviour: Behaviour) -> str:
    """Write a behaviour in its notation, with its comments; reading it back gives an equal one."""

    def write_line(text: str, indent: int, key: str, closed: str = "") -> str:
        return add_comments(" " * indent + text + closed, behaviour.comments.get(key), " " * indent)

    lines = [write_line(f"(define {quote_name(behaviour.name)}", 0, _DEFINE), write_line("(:states", 2, "(:states")]
    last = len(behaviour.states) - 1
    lines += [
        write_line(row, 4, row, ")" * (n == last)) for n, row in enumerate(map(_write_state, behaviour.states.values()))
    ]
    if behaviour.limits:
        lines.append(write_line(f"(:limits {' '.join(map(quote_text, _limit_lines(behaviour)))})", 2, "(:limits"))
    formula = behaviour.formula.pretty(4)
    lines.append(write_line("(:behavior", 2, "(:behavior"))
    parts = [part.pretty(6) for part in behaviour.formula.parts]
    if isinstance(behaviour.formula, And) and any(part in behaviour.comments for part in parts):
        lines.append(write_line("(and", 4, formula))
        lines += [write_line(part, 6, part, ")))" * (n == len(parts))) for n, part in enumerate(parts, 1)]
    else:
        lines.append(write_line(formula, 4, formula, "))"))
    return "\n".join(add_outer_comments(lines, behaviour.comments)) + "\n"


def _write_state(state: BehaviourState) -> str:
    text = [f"(:text {quote_text(state.text)})"] if state.text else []
    flags = [f"(:flags {' '.join(f':{flag}' for flag in sorted(state.flags))})"] if state.flags else []
    pairs = " ".join(f"({quote_name(quantity)} {format_amount(value)})" for quantity, value in state.numbers.items())
    numbers = [f"(:numbers {pairs})"] if pairs else []
    return f"({' '.join([quote_name(state.name), *text, *flags, *numbers])})"


def _find_anchors(behaviour: Behaviour, definition: Expression) -> list[tuple[int, str]]:
    """Return the lines to which comments belong, with the printed forms: sections, states, the formula."""
    assert isinstance(definition, SList)
    found: list[tuple[Place, str]] = [(definition.place, _DEFINE)]
    for section in definition.items[2:]:
        assert isinstance(section, SList) and section.head is not None
        name = _SECTIONS[section.head.text]
        if name == ":import":
            continue  # imports are written out
        found.append((section.place, f"({name}"))
        for item in section.items[1:]:
            key = f"({name}"
            if name == ":states":
                first = item.items[0] if isinstance(item, SList) else item
                assert isinstance(first, SAtom)
                key = _write_state(behaviour.states[first.text])
            elif name == ":behavior":
                key = behaviour.formula.pretty(4)
            parts = item.items[1:] if isinstance(item, SList) else ()
            if (
                name == ":behavior"
                and isinstance(behaviour.formula, And)
                and len(parts) == len(behaviour.formula.parts)
            ):
                found.append((item.place, key))
                for part, formula in zip(parts, behaviour.formula.parts, strict=True):
                    found += _list_lines(part, formula.pretty(6))
            else:
                found += _list_lines(item, key)
    return [(place.line, key) for place, key in sorted(found)]


def _list_lines(expression: Expression, key: str) -> Iterator[tuple[Place, str]]:
    """List the lines of an expression, with its key."""
    yield expression.place, key
    yield from ((Place(line, 0), key) for line in range(expression.place.line + 1, _last_line(expression) + 1))


def _last_line(expression: Expression) -> int:
    parts = expression.items if isinstance(expression, SList) else ()
    return max([expression.place.line, *map(_last_line, parts)])


def _limit_lines(behaviour: Behaviour) -> list[str]:
    """Return the limits as lines; a name with a space is in quotes."""
    return behaviour.limits.lines(lambda name: quote_text(name) if _NOT_A_WORD.search(name) else name)
