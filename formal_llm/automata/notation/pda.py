"""Reading and writing pushdown automata as text, one transition per line: ``state, read, pop -> state, push ...``.

A line can stand for a family: ``q{t}, lunch, D{t} -> q{t+1}, ε for t in 1..3`` is three lines. A clause binds a name to
each value of a range or of a list of names; braces hold such names, and sums and products of those that are numbers.
What is written of an automaton reads back as the same one, with every family spelled out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from operator import add, floordiv, mod, mul, sub
from typing import ClassVar, NoReturn

from formal_llm.automata.languages.emptiness import why_no_plan
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.cfg import EMPTY_WORDS
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Symbol, quote_text, unquote_text
from formal_llm.automata.models.transition import Transition, dead_ends, find_problem, suggest_name
from formal_llm.automata.notation.source import Place, SourceText, Word
from formal_llm.automata.notation.statements import StatementReader, Token, describe_symbol, split_tokens
from formal_llm.errors import NotationError, unknown

#: The maximum number of values in a range, and of lines in a family.
MOST = 100_000
_CHARACTER = r"""(?:[^\s\x00-\x1f\x7f,"'\#{}%()<>*→-]|-(?!>))"""
_TOKEN = re.compile(
    rf"""
      (?P<blank>[ \t\f]+|\#.*)
    | (?P<name>(?:{_CHARACTER}|\{{[^{{}}]*\}})+|%empty(?!\w))
    | (?P<arrow>->|→)
    | (?P<comma>,)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<quoted>'(?:[^'\\]|\\.)*')
    | (?P<any>\*(?=[\s,\#]|$))
    | (?P<compare><=|>=)
    | (?P<directive>%\w+)
    | (?P<wrong>.+)
    """,
    re.VERBOSE,
)
_BARE = re.compile(f"{_CHARACTER}+")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})")
_NUMBER = re.compile(r"([^\s=]+)=(\S+)")
#: In a transition, any symbol of the stack.
_ANY = "\0any"  # no text contains a zero byte
_NAMES = ("name", "quoted")
_SHAPE = "a transition is: state, read, pop -> state, push ...; where nothing is read, popped or pushed stands ε"
#: What signs that cannot stand where they do were meant for.
_SIGNS = {
    **dict.fromkeys("{}", "a name with a number in it is: q{t+1}"),
    **dict.fromkeys("()", "write the transition without brackets: state, read, pop -> state, push ..."),
    "*": "* stands alone, for any symbol of the stack; a name with such a sign is written in quotes: '*'",
}

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: floordiv, ast.FloorDiv: floordiv, ast.Mod: mod,
}  # fmt: skip


# -- writing ----------------------------------------------------------------------------------------------------------


def write_pda(pda: PDA) -> str:
    """Write an automaton in its notation, with every family spelled out.

    States that are not texts are named by their ``str``.
    """
    states = _state_names(pda.states)
    lines = [f"%name {quote_text(pda.name)}"] if pda.name else []
    lines += ["%order prefix"] if pda.order == "prefix" else []
    lines.append(f"%start {states[pda.start_state]}")
    lines.append(f"%accept {' '.join(name for state, name in states.items() if state in pda.accepting_states)}")
    lines += [f"%stack {' '.join(map(_write_name, pda.start_stack))}"] if pda.start_stack else []
    lines += [*pda.limits.lines(_write_name), "", *_write_transitions(pda, states)]
    known = [(name, symbol) for name, symbol in pda.symbols.items() if name in pda.terminals and symbol != Symbol()]
    described = [f"{_write_name(name)}{describe_symbol(symbol)}" for name, symbol in known]
    lines += ["", *described] if described else []
    return "\n".join(lines) + "\n"


def _write_transitions(pda: PDA, states: Mapping[State, str]) -> Iterator[str]:
    for t in pda.transitions:
        read, pop = (_write_name(name) if name is not None else "ε" for name in (t.read, t.pop))
        push = " ".join(map(_write_name, t.push)) or "ε"
        line = f"{states[t.state]}, {read}, {pop} -> {states[t.target]}, {push}"
        line += f" {quote_text(t.text)}" if t.text else ""
        yield line + (f" {'decide' if t.decision else 'ask'} {quote_text(t.question)}" if t.question else "")


def _state_names(states: Iterable[State]) -> dict[State, str]:
    names: dict[State, str] = {}
    taken: set[str] = set()
    for state in states:
        name = str(state)
        while name in taken:
            name += "_"
        taken.add(name)
        names[state] = _write_name(name)
    return names


def _write_name(name: str) -> str:
    """Return a name in its notation: bare if possible, otherwise in single quotes."""
    if _BARE.fullmatch(name) and name not in (*EMPTY_WORDS, "for", "ask", "decide"):
        return name
    inside = quote_text(name)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inside}'"


# -- lines and families -----------------------------------------------------------------------------------------------


def read_pda(text: str, file: str | None = None) -> PDA:
    """Read the automaton that ``text`` describes; see :meth:`PDA.from_string`."""
    source = SourceText.from_text(text, file, NotationError)
    reader = _PdaReader(source)
    for number, line in enumerate(source.text.split("\n"), 1):
        for tokens in _spell_out_line(source, _split_line(line, number)):
            reader.read_statement(tokens)
    return reader.build_automaton()


def _split_line(line: str, number: int) -> list[Token]:
    """Return the tokens of a line, and its end; the text of a quoted name is its content."""
    tokens = [
        token._replace(text=unquote_text(token.text)) if token.kind == "quoted" else token
        for token in split_tokens(_TOKEN, line, number)
    ]
    end = tokens[-1].end if tokens else 1
    return [*tokens, Token("end", "the end of the line", Place(number, end), end)]


def _is_word(token: Token, *words: str) -> bool:
    return token.kind == "name" and token.text in words


def _is_empty(token: Token) -> bool:
    return _is_word(token, *EMPTY_WORDS)


def _begins_clause(tokens: Sequence[Token]) -> bool:
    named = len(tokens) > 2 and tokens[1].kind in ("name", "quoted")
    return named and _is_word(tokens[0], "for") and _is_word(tokens[2], "in")


def _spell_out_line(source: SourceText, tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """Yield the lines that one with clauses ``for NAME in ...`` stands for; each ends with the end of the line.

    Raises:
        NotationError: a clause cannot be read, or a name in braces is unknown.
    """
    *tokens, end = tokens
    at = next((n for n in range(len(tokens)) if _begins_clause(tokens[n:])), len(tokens))
    if not tokens:
        return
    if at == 0:
        source.fail_at("a clause stands behind a statement, on its line", tokens[0].place)
    clauses = list(_read_clauses(source, tokens[at:], end))
    size = 1
    for name, values in clauses:
        size *= len(values)
        if size > MOST:
            source.fail_at(f"this line stands for more than {MOST:,} lines", name.place)
    for chosen in product(*(values for _, values in clauses)):
        named = {name.text: value for (name, _), value in zip(clauses, chosen, strict=True)}
        yield [*(_fill_braces(source, token, named) for token in tokens[:at]), end]


def _read_clauses(
    source: SourceText, tokens: Sequence[Token], end: Token
) -> Iterator[tuple[Token, Sequence[int | str]]]:
    """Yield the clauses ``for NAME in 1..3`` or ``for NAME in a, b``, each as its name and values."""
    known: set[str] = set()
    while tokens:
        name, *rest = tokens[1:]
        if not name.text.isidentifier():
            source.fail_at(f"{name.text!r} cannot be a name in braces", name.place, expected=("a word",))
        if name.text in known:
            source.fail_at(f"a second clause for {name.text}", name.place)
        known.add(name.text)
        size = next((n for n in range(1, len(rest)) if _begins_clause(rest[n:])), len(rest))
        values = [token for token in rest[1:size] if token.kind != "comma"]
        if not values:
            source.fail_at("the clause has no values", end.place, expected=("1..3", "names such as: supper, lunch"))
        for token in values:
            if token.kind not in ("name", "quoted"):
                source.fail_at(f"unexpected {token.text!r} in a clause", token.place, expected=("1..3", "a name"))
        yield name, list(_read_values(source, values))
        tokens = rest[size:]


def _read_values(source: SourceText, tokens: Sequence[Token]) -> Iterator[int | str]:
    """Yield the values of a clause: names, numbers, and the numbers of ranges such as ``0..40 by 5``."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token.kind == "quoted" or ".." not in token.text:
            number = token.kind == "name" and re.fullmatch(r"-?\d{1,9}", token.text)
            yield int(token.text) if number else token.text
            continue
        found, step = _RANGE.fullmatch(token.text), 1
        if found is None:
            source.fail_at(f"{token.text} is no range", token.place, expected=("1..3", "0..40 by 5"),
                           suggestion="times of day are counted by a clock: %clock time 8:00-20:00"
                           if ":" in token.text else None)  # fmt: skip
        low, high = int(found[1]), int(found[2])
        if at + 1 < len(tokens) and _is_word(tokens[at], "by"):
            by = tokens[at + 1]
            step = int(by.text) if re.fullmatch(r"\d{1,9}", by.text) else 0
            if not step:
                source.fail_at(f"{by.text} is no step for {token.text}", by.place, expected=("a number from 1",))
            at += 2
        if low > high:
            source.fail_at(f"the range {token.text} is empty", token.place, suggestion=f"write {found[2]}..{found[1]}")
        if (high - low) // step >= MOST:
            source.fail_at(f"this range stands for more than {MOST:,} numbers", token.place)
        yield from range(low, high + 1, step)


def _fill_braces(source: SourceText, token: Token, values: Mapping[str, int | str]) -> Token:
    """Replace the braces in a token; a text may contain other braces, which the task fills in."""
    if "{" not in token.text or token.kind not in ("name", "text"):
        return token

    def compute_value(match: re.Match[str]) -> str:
        names = re.findall(r"(?<!\w)[^\W\d]\w*", match[1])
        if token.kind == "text" and (not names or not set(names) <= set(values)):
            return match[0]
        return _compute_text(source, match[1], values, Place(token.place.line, token.place.column + match.start()))

    return token._replace(text=_BRACES.sub(compute_value, token.text))


def _compute_text(source: SourceText, text: str, values: Mapping[str, int | str], place: Place) -> str:
    try:
        return str(_evaluate_node(ast.parse(text.strip(), mode="eval").body, values))
    except KeyError as error:
        hint = f"its clauses name {', '.join(values)}" if values else "add a clause, such as: for t in 1..3"
        name = str(error.args[0])
        source.fail_near(f"unknown name {name} in braces", place, name, values, hint)
    except ZeroDivisionError:
        source.fail_at(f"{{{text}}} divides by zero", place)
    except TypeError:
        source.fail_at(f"{{{text}}}: it computes with a name that is no number", place)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        source.fail_at(f"{{{text}}} cannot be read", place, expected=("{t}", "{t-1}", "{2*t+1}"))


def _evaluate_node(node: ast.expr, values: Mapping[str, int | str]) -> int | str:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_whole(_evaluate_node(inner, values))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            one, other = _whole(_evaluate_node(left, values)), _whole(_evaluate_node(right, values))
            return _OPERATORS[type(sign)](one, other)
    raise ValueError("not covered")


def _whole(value: int | str) -> int:
    if isinstance(value, str):
        raise TypeError(value)
    return value


# -- what lines mean --------------------------------------------------------------------------------------------------


class _PdaReader(StatementReader):
    """Collects the lines of a file."""

    start_called = "initial state"

    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        #: Each transition with the tokens of its state and of what it pops; ``*`` is not yet replaced.
        self.transitions: list[tuple[Transition, Token, Token]] = []
        self.accepting: list[Token] = []
        self.stack: list[str] = []
        self.name = ""
        #: By state its token, its question, and whether that is a decision.
        self.asked: dict[str, tuple[Token, str, bool]] = {}

    def refuse(self, *expected: str, suggestion: str | None = None) -> NoReturn:
        """Raise for the next token, with what its sign was probably meant for."""
        sign = self.next.text[:1] if self.next.kind == "wrong" else ""
        super().refuse(*expected, suggestion=suggestion or _SIGNS.get(sign))

    def read_plain(self) -> None:
        """Read a transition or a label."""
        if any(token.kind in ("comma", "arrow") for token in self.tokens):
            self._read_transition()
            return
        name = self._take_name("a transition", 'a terminal with its "label"')
        if self.next.kind != "text" and not _NUMBER.fullmatch(self.next.text):
            self.refuse("state, read, pop -> state, push", 'terminal "label"')
        self.describe(name, self.read_texts(), self._read_numbers())

    def _take_name(self, *expected: str, empty: bool = False, any_symbol: bool = False) -> Token:
        """Take a name; where ``empty``, ``ε`` may stand there, where ``any_symbol``, ``*``."""
        token, allowed = self.next, (*_NAMES, "any") if any_symbol else _NAMES
        if token.kind not in allowed or (_is_empty(token) and not empty):
            self.refuse(*expected, suggestion=_SHAPE if self.tokens[0].kind != "directive" else None)
        return self.take()

    def _read_transition(self) -> None:
        def skip(kind: str, sign: str) -> None:
            if self.next.kind != kind:
                self.refuse(sign, suggestion=_SHAPE)
            self.take()

        state = self._take_name("a state")
        skip("comma", "','")
        read = self._take_name("what is read: a name, or ε", empty=True)
        skip("comma", "','")
        pop = self._take_name("what is popped: a name, ε, or * for any symbol", empty=True, any_symbol=True)
        skip("arrow", "'->'")
        target = self._take_name("a state")
        skip("comma", "','")
        push: list[Token] = []
        while self.next.kind in (*_NAMES, "any") and not self._asks():
            push.append(self._take_name("what is pushed: names, or ε", empty=not push, any_symbol=pop.kind == "any"))
            if _is_empty(push[0]):
                break
        if not push:
            self.refuse("what is pushed: names, or ε", suggestion=_SHAPE)
        text = self.expect_text() if self.next.kind == "text" else ""
        decision = self.next.text == "decide"
        question = self.expect_text() if self._asks() and self.take() else ""
        if self.next.kind != "end":
            self.refuse("the end of the line", suggestion=_SHAPE)
        transition = Transition(
            state.text,
            None if _is_empty(read) else read.text,
            _ANY if pop.kind == "any" else None if _is_empty(pop) else pop.text,
            target.text,
            tuple(_ANY if token.kind == "any" else token.text for token in push if not _is_empty(token)),
            text,
            question=question,
            decision=bool(question) and decision,
        )
        self.transitions.append((transition, state, pop))

    def _asks(self) -> bool:
        """Return whether the question of a transition is next."""
        return _is_word(self.next, "ask", "decide") and self.tokens[self.at + 1].kind == "text"

    def _read_numbers(self) -> Iterator[tuple[Word, Word]]:
        while self.next.kind != "end":
            pair = _NUMBER.fullmatch(self.next.text) if self.next.kind in _NAMES else None
            if pair is None:
                self.refuse("a number such as minutes=20")
            token = self.take()
            yield token._replace(text=pair[1]), token._replace(text=pair[2])

    # -- directives ---------------------------------------------------------------------------------------------

    def _read_names(self) -> list[Token]:
        names = [self._take_name("a name")]
        while self.next.kind != "end":
            if self.next.kind == "comma":
                self.take()
            names.append(self._take_name("a name"))
        return names

    def _read_accepting(self, _: Token) -> None:
        self.accepting += self._read_names()

    def _read_stack(self, _: Token) -> None:
        self.stack += [token.text for token in self._read_names()]

    def _read_name(self, _: Token) -> None:
        self.name = self.expect_text('a text, such as %name "working hours"')
        if self.next.kind != "end":
            self.refuse("the end of the line")

    def _read_question(self, directive: Token) -> None:
        state = self._take_name("a state")
        if state.text in self.asked:
            self.fail(f"a second question for the state {state.text}", state)
        question = self.expect_text(f'a question, such as {directive.text} {state.text} "Which one?"')
        if self.next.kind != "end":
            self.refuse("the end of the line")
        self.asked[state.text] = state, question, directive.text == "%decide"

    readers: ClassVar[Mapping[str, Callable[[_PdaReader, Token], None]]] = {
        **StatementReader.readers,
        "%accept": _read_accepting,
        "%stack": _read_stack,
        "%name": _read_name,
        "%ask": _read_question,
        "%decide": _read_question,
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

    def _build_transitions(self) -> tuple[list[Transition], dict[Transition | None, tuple[Token, Token]]]:
        """Return the transitions with questions, ``*`` replaced by each stack symbol, and the tokens of each."""
        named = [name for made, *_ in self.transitions for name in (*made.push, made.pop) if name not in (None, _ANY)]
        stack = [str(name) for name in dict.fromkeys([*self.stack, *named])]
        made: list[Transition] = []
        origin: dict[Transition | None, tuple[Token, Token]] = {}
        for transition, state, pop in self.transitions:
            if not transition.question and transition.state in self.asked:
                _, question, decision = self.asked[transition.state]
                transition = replace(transition, question=question, decision=decision)
            expanded = [transition]
            if pop.kind == "any":
                pushes = [tuple(symbol if name is _ANY else name for name in transition.push) for symbol in stack]
                expanded = [replace(transition, pop=s, push=push) for s, push in zip(stack, pushes, strict=True)]
            for one in expanded:
                made.append(one)
                origin.setdefault(one, (state, pop))
        return made, origin

    def _check_names(self, pda: PDA) -> None:
        for token in self.described:
            if token.text not in pda.terminals:
                self.fail(unknown("terminal", token.text, pda.terminals), token)
        for token, *_ in self.asked.values():
            if token.text not in pda.states:
                self.fail(f"unknown state {token.text}" + suggest_name(token.text, pda.states), token)

    def _check_runs(self, pda: PDA) -> None:
        """Raise an error if nothing is accepted, and warn if some runs are lost."""
        why = why_no_plan(pda) if pda.limits else None
        if why is not None or not pda.has_accepting_run:
            reason = "what is popped never lies there" if why is None else why.reason
            self.source.fail_at(f"no run accepts: {reason}", self.accepting[0].place,
                                suggestion="follow the transitions from the initial state to a final one")  # fmt: skip
        for state in dead_ends(pda.transitions, pda.start_state, pda.accepting_states):
            others = (other for other in pda.states if other != state)
            message = f"no transition leaves the state {state}, and it is not final{suggest_name(state, others)}"
            self.source.warn_at(message, None, stacklevel=4)
