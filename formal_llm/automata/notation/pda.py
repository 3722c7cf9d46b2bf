"""Reading pushdown automata as text, one transition per line: ``state, read, pop -> state, push ...``.

:mod:`formal_llm.automata.notation.pda_lines` reads the lines; this module defines their meaning. The output of
:mod:`formal_llm.automata.notation.pda` for an automaton reads back as the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, NoReturn

from formal_llm.automata.languages.emptiness import why_no_plan
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.quantities import format_amount
from formal_llm.automata.models.symbols import ORDERS, Order, Symbol, suggest_order
from formal_llm.automata.models.tabulation import some_run_accepts
from formal_llm.automata.models.transition import Transition, dead_ends, find_problem, suggest_name
from formal_llm.automata.notation import pda_lines
from formal_llm.automata.notation.limit_lines import EXAMPLES, LimitsReader
from formal_llm.automata.notation.pda_lines import (
    ANY,
    DIRECTIVES,
    PdaLine,
    PdaToken,
    PlainTransition,
    fields,
    quoted_name,
    quoted_text,
    unquoted,
)
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError, did_you_mean, unknown


def write_pda(pda: PDA) -> str:
    """Write an automaton in its notation, with every family expanded.

    States that are not texts are named by their ``str``.
    """
    states = _state_names(pda.states)
    lines = [f"%name {quoted_text(pda.name)}"] if pda.name else []
    lines += ["%order prefix"] if pda.order == "prefix" else []
    lines.append(f"%start {states[pda.start_state]}")
    lines.append(f"%accept {' '.join(name for state, name in states.items() if state in pda.accepting_states)}")
    lines += [f"%stack {' '.join(map(quoted_name, pda.start_stack))}"] if pda.start_stack else []
    lines += [*pda.limits.lines(quoted_name), "", *_write_transitions(pda, states)]
    described = list(_describe_terminals(pda))
    lines += ["", *described] if described else []
    return "\n".join(lines) + "\n"


def _write_transitions(pda: PDA, states: Mapping[State, str]) -> Iterator[str]:
    for t in pda.transitions:
        read, pop = (quoted_name(name) if name is not None else "ε" for name in (t.read, t.pop))
        push = " ".join(map(quoted_name, t.push)) or "ε"
        line = f"{states[t.state]}, {read}, {pop} -> {states[t.target]}, {push}"
        line += f" {quoted_text(t.text)}" if t.text else ""
        yield line + (f" {'decide' if t.decision else 'ask'} {quoted_text(t.question)}" if t.question else "")


def _describe_terminals(pda: PDA) -> Iterator[str]:
    """Yield the lines of terminals with labels or numbers."""
    for name, symbol in pda.symbols.items():
        if name in pda.terminals and symbol != Symbol():
            texts = f" {quoted_text(symbol.label)}" if symbol.label or symbol.description else ""
            texts += f" {quoted_text(symbol.description)}" if symbol.description else ""
            numbers = "".join(f" {quantity}={format_amount(value)}" for quantity, value in symbol.numbers.items())
            yield f"{quoted_name(name)}{texts}{numbers}"


def _state_names(states: Iterable[State]) -> dict[State, str]:
    names: dict[State, str] = {}
    taken: set[str] = set()
    for state in states:
        name = str(state)
        while name in taken:
            name += "_"
        taken.add(name)
        names[state] = quoted_name(name)
    return names


_ASKING = ("ask", "decide")


def read_pda(text: str, file: str | None = None) -> PDA:
    """Read the automaton that ``text`` describes; see :meth:`PDA.from_string`."""
    source = SourceText.from_text(text, file, NotationError)
    reader = _PdaReader(source)
    for line in pda_lines.statements(source):
        reader.read_line(line)
    return reader.build_automaton()


class _PdaReader:
    """Collects the lines of a file."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        #: Each transition with the tokens of its state and of what it pops; ``*`` is not yet replaced.
        self.transitions: list[tuple[Transition, PdaToken, PdaToken]] = []
        self.start: PdaToken | None = None
        self.order: Order | None = None
        self.accepting: list[PdaToken] = []
        self.stack: list[str] = []
        self.name = ""
        self.symbols: dict[str, Symbol] = {}
        self.labelled: list[PdaToken] = []
        self.limits = LimitsReader(source)
        self.asked: dict[str, tuple[PdaToken, str, bool]] = {}

    def fail_at(
        self, problem: str, at: PdaToken, *, suggestion: str | None = None, expected: Sequence[str] = ()
    ) -> NoReturn:
        self.source.fail_at(problem, at.place, suggestion=suggestion, expected=expected)

    def read_line(self, line: PdaLine | PlainTransition) -> None:
        if isinstance(line, PlainTransition):
            state, read, pop, target, push = line
            transition = Transition(state.text, read, None if pop.is_empty else pop.text, target, push)
            self.transitions.append((transition, state, pop))
            return
        first = line.tokens[0]
        if first.kind == "directive":
            if first.text not in DIRECTIVES:
                near = did_you_mean(first.text, DIRECTIVES)
                hint = f"did you mean {near}?" if near else f"directives are {', '.join(DIRECTIVES)}"
                self.fail_at(f"unknown directive {first.text}", first, suggestion=hint)
            self._READERS[first.text](self, first, line.tokens[1:])
        elif any(token.kind in ("comma", "arrow") for token in line.tokens):
            self._read_transition(line)
        else:
            self._read_label(line)

    # -- lines --------------------------------------------------------------------------------------------------

    def _read_transition(self, line: PdaLine) -> None:
        arrows = [place for place, token in enumerate(line.tokens) if token.kind == "arrow"]
        if len(arrows) != 1:
            at = line.tokens[arrows[1]] if arrows else line.end
            what = "a second arrow" if arrows else "the arrow is missing"
            self.fail_at(what, at, expected=("state, read, pop -> state, push",))
        left = fields(self.source, line.tokens[: arrows[0]], line.tokens[arrows[0]])
        if len(left) != 3:
            self.fail_at(f"{len(left)} parts before the arrow; there are three: state, read, pop", line.tokens[0],
                      suggestion="write ε where nothing is read or popped")  # fmt: skip
        for field in left:
            if len(field) > 1:
                self.fail_at(f"unexpected {field[1].text!r}", field[1], expected=("','",))
        right, strings = self._read_texts(list(line.tokens[arrows[0] + 1 :]))
        parts = fields(self.source, right, line.end)
        if len(parts) != 2 or len(parts[0]) > 1:
            at = parts[0][1] if parts and len(parts[0]) > 1 else parts[2][0] if len(parts) > 2 else line.end
            self.fail_at("behind the arrow stand a state, a comma, and what is pushed, with blanks between", at,
                      expected=("state, push ...",), suggestion="write ε where nothing is pushed")  # fmt: skip
        state, read, pop = (field[0] for field in left)
        target, push = parts[0][0], parts[1]
        for token in (state, target):
            if token.is_empty or token.kind == "any":
                self.fail_at(f"{token.text} is no state", token)
        if read.kind == "any":
            self.fail_at("* stands for any symbol of the stack; what is read must be named", read)
        if len(push) > 1 and any(token.is_empty for token in push):
            self.fail_at("ε stands alone, where nothing is pushed", next(token for token in push if token.is_empty))
        if pop.kind != "any" and any(token.kind == "any" for token in push):
            star = next(token for token in push if token.kind == "any")
            self.fail_at("* behind the arrow is the symbol that * before it pops", star)
        text, question, decision = strings
        transition = Transition(
            state.text,
            None if read.is_empty else read.text,
            ANY if pop.kind == "any" else None if pop.is_empty else pop.text,
            target.text,
            tuple(ANY if token.kind == "any" else token.text for token in push if not token.is_empty),
            text,
            question=question,
            decision=decision,
        )
        self.transitions.append((transition, state, pop))

    def _read_texts(self, tokens: list[PdaToken]) -> tuple[list[PdaToken], tuple[str, str, bool]]:
        """Return the tokens after the arrow without the text and the question at the end, and these texts."""
        text = question = ""
        decision = False
        if len(tokens) > 1 and tokens[-1].kind == "string" and tokens[-2].is_word(*_ASKING):
            question, decision = unquoted(tokens[-1]), tokens[-2].text == "decide"
            tokens = tokens[:-2]
        if tokens and tokens[-1].kind == "string":
            text = unquoted(tokens.pop())
        return tokens, (text, question, decision)

    def _read_label(self, line: PdaLine) -> None:
        name, *rest = line.tokens
        if (
            name.kind != "name"
            or not rest
            or (rest[0].kind != "string" and not pda_lines.NUMBER.fullmatch(rest[0].text))
        ):
            self.fail_at("this is neither a transition nor a label", rest[0] if name.kind == "name" and rest else name,
                      expected=("state, read, pop -> state, push", 'terminal "label"'))  # fmt: skip
        texts: list[str] = []
        while rest and rest[0].kind == "string" and len(texts) < 2:
            texts.append(unquoted(rest.pop(0)))
        old = self.symbols.get(name.text)
        numbers = dict(old.numbers) if old else {}
        for token in rest:
            quantity, amount = pda_lines.number_of(self.source, token)
            if quantity in numbers:
                self.fail_at(f"{name.text} has two numbers for {quantity}", token)
            numbers[quantity] = amount
        if texts and old and old.label:
            self.fail_at(f"{name.text} has two labels: {old.label!r} and {texts[0]!r}", name)
        label, description = (*texts, "", "")[:2] if texts or old is None else (old.label, old.description)
        self.symbols[name.text] = Symbol(label, description, numbers)
        self.labelled.append(name)

    # -- directives ---------------------------------------------------------------------------------------------

    def _read_names(self, directive: PdaToken, tokens: Sequence[PdaToken], example: str) -> list[PdaToken]:
        names = [token for token in tokens if token.kind != "comma"]
        for token in names:
            if token.kind != "name" or token.is_empty:
                self.fail_at(f"unexpected {token.text!r}", token, expected=("a name",))
        if not names:
            self.fail_at(f"{directive.text} names nothing", directive, suggestion=f"write: {directive.text} {example}")
        return names

    def _read_start(self, directive: PdaToken, tokens: Sequence[PdaToken]) -> None:
        names = self._read_names(directive, tokens, "STATE")
        if self.start is not None or len(names) > 1:
            self.fail_at("a second initial state; there is one", names[-1])
        self.start = names[0]

    def _read_accepting(self, directive: PdaToken, tokens: Sequence[PdaToken]) -> None:
        self.accepting += self._read_names(directive, tokens, "STATE ...")

    def _read_stack(self, directive: PdaToken, tokens: Sequence[PdaToken]) -> None:
        self.stack += [token.text for token in self._read_names(directive, tokens, "SYMBOL ...")]

    def _read_name(self, directive: PdaToken, tokens: Sequence[PdaToken]) -> None:
        if len(tokens) != 1 or tokens[0].kind != "string":
            self.fail_at("%name is followed by a text", directive, suggestion='write: %name "working hours"')
        self.name = unquoted(tokens[0])

    def _read_order(self, directive: PdaToken, tokens: Sequence[PdaToken]) -> None:
        names = self._read_names(directive, tokens, "forward")
        if self.order is not None or len(names) > 1:
            self.fail_at("a second order; there is one", names[-1])
        if names[0].text not in ORDERS:
            order = names[0].text
            self.fail_at(unknown("order", order, ORDERS), names[0], suggestion=suggest_order(order))
        self.order = names[0].text

    def _read_question(self, directive: PdaToken, tokens: Sequence[PdaToken]) -> None:
        if [token.kind for token in tokens] != ["name", "string"]:
            self.fail_at(f"{directive.text} is followed by a state and a question", directive,
                      suggestion=f'write: {directive.text} STATE "Which one?"')  # fmt: skip
        state, question = tokens
        if state.text in self.asked:
            self.fail_at(f"a second question for the state {state.text}", state)
        self.asked[state.text] = (state, unquoted(question), directive.text == "%decide")

    def _read_limit(self, directive: PdaToken, tokens: Sequence[PdaToken]) -> None:
        for token in tokens:
            if token.kind in ("string", "directive"):
                self.fail_at(f"unexpected {token.text!r}", token, expected=("a name",))
        self.limits.read_line(directive, [token for token in tokens if token.kind != "comma"])

    def _read_order_rule(self, _: PdaToken, tokens: Sequence[PdaToken]) -> None:
        self.limits.read_rule(tokens[0].text, tokens[0].place)

    #: How each directive is read.
    _READERS: ClassVar[Mapping[str, Callable[[_PdaReader, PdaToken, Sequence[PdaToken]], None]]] = {
        "%start": _read_start,
        "%order": _read_order,
        "%accept": _read_accepting,
        "%stack": _read_stack,
        "%name": _read_name,
        "%rule": _read_order_rule,
        **dict.fromkeys(("%ask", "%decide"), _read_question),
        **dict.fromkeys(("%limit", "%require", *EXAMPLES), _read_limit),
    }

    # -- the whole automaton ------------------------------------------------------------------------------------

    def build_automaton(self) -> PDA:
        if not self.transitions:
            self.source.fail_at(
                "the automaton has no transition", None, suggestion="write, for instance: p, a, ε -> q, ε"
            )
        if not self.accepting:
            self.source.fail_at("no final state: no run can accept", None, suggestion="write: %accept STATE ...")
        transitions, origin = self._build_transitions()
        pda = PDA(
            transitions,
            start=self.start.text if self.start is not None else transitions[0].state,
            accepting=[token.text for token in self.accepting],
            stack=self.stack,
            symbols=self.symbols,
            name=self.name,
            order=self.order or "forward",
            check=False,
        )
        self._check_names(pda)
        pda = pda.with_limits(self.limits.build_limits(pda.terminals, pda.symbols))
        problem = find_problem(pda.transitions, pda.start_state, pda.accepting_states, pda.stack_symbols)
        if problem is not None:
            named = [*origin.get(problem.transition, ()), *self.accepting, *([self.start] if self.start else [])]
            at = next((token for token in named if token.text == problem.name), named[0])
            self.source.fail_at(problem.message, at.place)
        self._check_runs(pda)
        return pda

    def _build_transitions(self) -> tuple[list[Transition], dict[Transition | None, tuple[PdaToken, PdaToken]]]:
        """Return the transitions with questions, ``*`` replaced by each stack symbol, and the tokens of each."""
        named = [name for made, *_ in self.transitions for name in (*made.push, made.pop) if name not in (None, ANY)]
        stack = [str(name) for name in dict.fromkeys([*self.stack, *named])]
        made: list[Transition] = []
        origin: dict[Transition | None, tuple[PdaToken, PdaToken]] = {}
        for transition, state, pop in self.transitions:
            if not transition.question and transition.state in self.asked:
                _, question, decision = self.asked[transition.state]
                transition = replace(transition, question=question, decision=decision)
            expanded = [transition]
            if pop.kind == "any":
                pushes = [tuple(symbol if name is ANY else name for name in transition.push) for symbol in stack]
                expanded = [replace(transition, pop=s, push=push) for s, push in zip(stack, pushes, strict=True)]
            for one in expanded:
                made.append(one)
                origin.setdefault(one, (state, pop))
        return made, origin

    def _check_names(self, pda: PDA) -> None:
        for token in self.labelled:
            if token.text not in pda.terminals:
                self.fail_at(unknown("terminal", token.text, pda.terminals), token)
        for token in [token for token, *_ in self.asked.values()]:
            if token.text not in pda.states:
                self.fail_at(f"unknown state {token.text}" + suggest_name(token.text, pda.states), token)

    def _check_runs(self, pda: PDA) -> None:
        """Raise an error if nothing is accepted, and warn if some runs are lost."""
        why = why_no_plan(pda) if pda.limits else None
        if why is not None or not some_run_accepts(pda):
            reason = "what is popped never lies there" if why is None else why.reason
            self.source.fail_at(f"no run accepts: {reason}", self.accepting[0].place,
                             suggestion="follow the transitions from the initial state to a final one")  # fmt: skip
        for state in dead_ends(pda.transitions, pda.start_state, pda.accepting_states):
            others = (other for other in pda.states if other != state)
            message = f"no transition leaves the state {state}, and it is not final{suggest_name(state, others)}"
            self.source.warn_at(message, None, stacklevel=4)
