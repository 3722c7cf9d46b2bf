"""Reading and writing behaviours as text.

The notation is that of Crouse et al. 2023 (arXiv 2310.08535)::

    (define react                                   # a comment; ; begins one, too
      (:states
        (Ques (:text "[Question]"))
        (Obs (:text "[Observation]") (:flags :env-input))
        (Act (:text "[Action]") (:numbers (cost €0.02) (time 10s)))
        ...)
      (:limits "%limit 5 Act" "%limit cost <= €1")  # lines as in a grammar; optional
      (:behavior (next Ques (until (next Tht Act Obs) Ans))))

Printing a behaviour and reading it back gives an equal behaviour. What messages shall name in words is a rule about
order: ``(:limits "%rule never Act after Ans")``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from formal_llm.automata.languages.emptiness import why_no_plan
from formal_llm.automata.models.behaviour import ENV_INPUT, Behaviour, BehaviourState
from formal_llm.automata.models.formula import quote_name
from formal_llm.automata.models.quantities import Number, format_amount
from formal_llm.automata.models.symbols import Symbol, quote_text
from formal_llm.automata.notation.formula import FormulaReader
from formal_llm.automata.notation.limit_lines import LimitsReader, read_numbers, split_line
from formal_llm.automata.notation.s_expressions import Expression, SAtom, SList, read_expressions
from formal_llm.automata.notation.sentences import read_sentences
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import AutomatonError, NotationError

_SHAPE = '(define NAME (:states (STATE (:text "...")) ...) (:behavior FORMULA))'
#: The sections of a definition, in each spelling.
_SECTIONS = {":states": ":states", ":behavior": ":behavior", ":behaviour": ":behavior", ":limits": ":limits"}
#: The characters that require quotes around a name in a limit.
_NOT_A_WORD = re.compile(r'[\s,"]')
#: What a text of sentences begins with, which no definition does.
_SENTENCES = re.compile(r"\ufeff?(?:\s|#.*\n)*steps\s*:", re.IGNORECASE)
_FLAGS = (f":{ENV_INPUT}",)


def read_behaviour(text: str, file: str | None = None) -> Behaviour:
    """Read the behaviour that ``text`` describes, also in sentences; see :meth:`Behaviour.from_string`."""
    if _SENTENCES.match(text):
        return read_sentences(text, file)
    source = SourceText.from_text(text, file, NotationError)
    expressions = read_expressions(source)
    reader = _BehaviourReader(source)
    behaviour = reader.read_behaviour(expressions)
    why = why_no_plan(behaviour) if behaviour.limits else None
    if why is not None:
        source.fail_at(f"no sequence of states keeps the limits: {why.reason}", reader.limits_place)
    for warning in behaviour.warnings:
        source.warn_at(warning.message, source.places.get(warning.symbol) or source.places.get(""), stacklevel=3)
    return behaviour


class _BehaviourReader:
    """Reads the single definition of a file."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.fail = source.fail_at
        self.limits_place: Place | None = None

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
            self.source.fail_near(f"unknown: {head.text}", head.place, head.text, known, expected=[*known])
        return head

    def _read_state(self, item: Expression) -> tuple[BehaviourState, Place]:
        """Read ``NAME`` or ``(NAME (:text "...") (:flags ...))``."""
        name, *properties = item.items or (item,) if isinstance(item, SList) else (item,)
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
                numbers = read_numbers(self.source, name.text, map(self._read_number, values), numbers)
            else:
                flags += map(self._read_flag, values)
        return BehaviourState(name.text, text.text if text else "", frozenset(flags), numbers), name.place

    def _read_number(self, value: Expression) -> tuple[SAtom, SAtom]:
        """Read ``(cost €0.02)``."""
        match value:
            case SList((SAtom() as quantity, SAtom() as amount)):
                return quantity, amount
        return self.fail("a number is a pair of its name and how much", value.place, suggestion="write (time 15min)")

    def _read_limits(self, section: SList | None) -> LimitsReader:
        reader = LimitsReader(self.source)
        for item in section.items[1:] if section is not None else ():
            if not isinstance(item, SAtom) or not item.quoted:
                self.fail("a limit is a text", item.place, suggestion='write (:limits "%limit 5 NAME")')
            if item.text.startswith("%rule "):
                reader.read_rule(item.text[5:], Place(item.place.line, item.place.column + len('"%rule')))
                continue
            reader.read_line(*split_line(item.text, Place(item.place.line, item.place.column + 1)))
        return reader

    def _read_text(self, head: SAtom, values: Sequence[Expression]) -> SAtom:
        if len(values) == 1 and isinstance(values[0], SAtom) and values[0].quoted:
            return values[0]
        place = values[0].place if values else head.place
        return self.fail("a text stands in quotes, and there is one", place, suggestion='write (:text "[Thought]")')

    def _read_flag(self, value: Expression) -> str:
        if not isinstance(value, SAtom) or value.text not in _FLAGS:
            name = value.text if isinstance(value, SAtom) else "(...)"
            self.source.fail_near(f"unknown flag: {name}", value.place, name, _FLAGS, expected=_FLAGS)
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
        states = self._read_states(sections[":states"])
        limits_read = self._read_limits(sections.get(":limits"))
        self.limits_place = (sections.get(":limits") or sections[":behavior"]).place
        if not states:
            self.fail("there are no states", sections[":states"].place, suggestion=f"write {_SHAPE}")
        formulas = sections[":behavior"].items[1:]
        if len(formulas) != 1:
            self.fail(
                f"{len(formulas) or 'no'} formulas, where one is needed",
                formulas[1].place if formulas else sections[":behavior"].place,
                suggestion="put what comes one after the other into (next ...), what holds together into (and ...)",
            )
        formula = FormulaReader(self.source, states, "state").read_formula(formulas[0])
        self.source.places[""] = formulas[0].place
        symbols = {name: Symbol(state.text, numbers=state.numbers) for name, state in states.items()}
        limits = limits_read.build_limits(states, symbols, called="state")
        try:
            return Behaviour(definition.items[1].text, states.values(), formula, limits)
        except AutomatonError as error:
            self.fail(str(error), formulas[0].place)

    def _read_states(self, section: SList) -> dict[str, BehaviourState]:
        """The states that are declared."""
        states: dict[str, BehaviourState] = {}
        for item in section.items[1:]:
            state, place = self._read_state(item)
            if state.name in states:
                first = self.source.places[state.name]
                self.fail(f"a second state {state.name}; the first is in line {first.line}", place)
            states[state.name] = state
            self.source.places[state.name] = place
        return states


# -- writing ----------------------------------------------------------------------------------------------------------


def write_behaviour(behaviour: Behaviour) -> str:
    """Write a behaviour in its notation; reading it back gives an equal one."""
    states = "\n".join(f"    {_write_state(state)}" for state in behaviour.states.values())
    lines = [f"(define {quote_name(behaviour.name)}", "  (:states", f"{states})"]
    if behaviour.limits:
        written = behaviour.limits.lines(lambda name: quote_text(name) if _NOT_A_WORD.search(name) else name)
        lines.append(f"  (:limits {' '.join(map(quote_text, written))})")
    return "\n".join([*lines, "  (:behavior", f"    {behaviour.formula.pretty(4)}))"]) + "\n"


def _write_state(state: BehaviourState) -> str:
    text = [f"(:text {quote_text(state.text)})"] if state.text else []
    flags = [f"(:flags {' '.join(f':{flag}' for flag in sorted(state.flags))})"] if state.flags else []
    pairs = " ".join(f"({quote_name(quantity)} {format_amount(value)})" for quantity, value in state.numbers.items())
    numbers = [f"(:numbers {pairs})"] if pairs else []
    return f"({' '.join([quote_name(state.name), *text, *flags, *numbers])})"
