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
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.quantities import format_amount, read_amount
from formal_llm.automata.models.symbols import ORDERS, Order, Symbol, quote_text, suggest_order
from formal_llm.automata.models.transition import Transition, dead_ends, find_problem, suggest_name
from formal_llm.automata.notation.limit_lines import EXAMPLES, LimitsReader, split_rule_line
from formal_llm.automata.notation.source import Place, SourceText, Token, split_tokens
from formal_llm.errors import NotationError, did_you_mean, unknown

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
_WRONG_ARROW = re.compile(r"=>|⇒|⟶|:=|[—–―]>?|<-|>")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})")
_NUMBER = re.compile(r"([^\s=]+)=(\S+)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}
_EMPTY_NAMES = ("ε", "%empty")
#: In a transition, any symbol of the stack.
_ANY = "\0any"  # no text contains a zero byte

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: floordiv, ast.FloorDiv: floordiv, ast.Mod: mod,
}  # fmt: skip


# -- writing ----------------------------------------------------------------------------------------------------------


def write_pda(pda: PDA) -> str:
    """Write an automaton in its notation, with every family spelled out.

    States that are not texts are named by their ``str``.
    """
    states = _state_names(pda.states)
    lines = [f"%name {_write_text(pda.name)}"] if pda.name else []
    lines += ["%order prefix"] if pda.order == "prefix" else []
    lines.append(f"%start {states[pda.start_state]}")
    lines.append(f"%accept {' '.join(name for state, name in states.items() if state in pda.accepting_states)}")
    lines += [f"%stack {' '.join(map(_write_name, pda.start_stack))}"] if pda.start_stack else []
    lines += [*pda.limits.lines(_write_name), "", *_write_transitions(pda, states)]
    described = list(_describe_terminals(pda))
    lines += ["", *described] if described else []
    return "\n".join(lines) + "\n"


def _write_transitions(pda: PDA, states: Mapping[State, str]) -> Iterator[str]:
    for t in pda.transitions:
        read, pop = (_write_name(name) if name is not None else "ε" for name in (t.read, t.pop))
        push = " ".join(map(_write_name, t.push)) or "ε"
        line = f"{states[t.state]}, {read}, {pop} -> {states[t.target]}, {push}"
        line += f" {_write_text(t.text)}" if t.text else ""
        yield line + (f" {'decide' if t.decision else 'ask'} {_write_text(t.question)}" if t.question else "")


def _describe_terminals(pda: PDA) -> Iterator[str]:
    """Yield the lines of terminals with labels or numbers."""
    for name, symbol in pda.symbols.items():
        if name in pda.terminals and symbol != Symbol():
            texts = f" {_write_text(symbol.label)}" if symbol.label or symbol.description else ""
            texts += f" {_write_text(symbol.description)}" if symbol.description else ""
            numbers = "".join(f" {quantity}={format_amount(value)}" for quantity, value in symbol.numbers.items())
            yield f"{_write_name(name)}{texts}{numbers}"


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
    if _BARE.fullmatch(name) and name not in (*_EMPTY_NAMES, "for", "ask", "decide"):
        return name
    inside = _write_text(name)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inside}'"


def _write_text(text: str) -> str:
    return quote_text(text).replace("\0", "\\0")


# -- lines and families -----------------------------------------------------------------------------------------------


def read_pda(text: str, file: str | None = None) -> PDA:
    """Read the automaton that ``text`` describes; see :meth:`PDA.from_string`."""
    source = SourceText.from_text(text, file, NotationError)
    reader = _PdaReader(source)
    for number, line in enumerate(source.text.split("\n"), 1):
        for tokens in _spell_out_line(source, _split_line(source, line, number)):
            reader.read_line(tokens)
    return reader.build_automaton()


def _split_line(source: SourceText, line: str, number: int) -> list[Token]:
    """Return the tokens of a line, and its end; the text of a quoted name is its content."""
    tokens = split_rule_line(line, number) or split_tokens(_TOKEN, line, number)
    if tokens and tokens[-1].kind == "wrong":
        _refuse_text(source, line, tokens[-1].place)
    for at, token in enumerate(tokens):
        if token.kind == "quoted":
            tokens[at] = token._replace(text=_unescape_text(token.text[1:-1]))
    end = tokens[-1].end if tokens else 1
    return [*tokens, Token("end", "the end of the line", Place(number, end), end)]


def _refuse_text(source: SourceText, line: str, place: Place) -> NoReturn:
    sign = line[place.column - 1]
    arrow = None if re.search("->|→", line) else _WRONG_ARROW.search(line)
    if sign in "\"'":
        source.fail_at(f"a text that does not end on its line (closing {sign} is missing)", place)
    if sign in "{}":
        source.fail_at(f"the brace {sign!r} stands alone", place, suggestion="a name with a number in it is: q{t+1}")
    suggestion = f"write '->' instead of {arrow[0]!r}" if arrow else None
    if sign in "<>" and line.lstrip().startswith("%limit"):
        suggestion = f"write {sign}=, which allows that amount too"
    elif sign in "()":
        suggestion = "write the transition without brackets: state, read, pop -> state, push ..."
    elif sign == "*":
        suggestion = "* stands alone, for any symbol of the stack; a name with such a sign is written in quotes: '*'"
    source.fail_at(f"unexpected character {sign!r}", place, suggestion=suggestion)


def _is_word(token: Token, *words: str) -> bool:
    return token.kind == "name" and token.text in words


def _is_empty(token: Token) -> bool:
    return _is_word(token, *_EMPTY_NAMES)


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
        near = did_you_mean(str(error.args[0]), values)
        hint = f"its clauses name {', '.join(values)}" if values else "add a clause, such as: for t in 1..3"
        source.fail_at(
            f"unknown name {error.args[0]} in braces", place, suggestion=f"did you mean {near}?" if near else hint
        )
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


def _unescape_text(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


# -- what lines mean --------------------------------------------------------------------------------------------------


class _PdaReader:
    """Collects the lines of a file."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        #: Each transition with the tokens of its state and of what it pops; ``*`` is not yet replaced.
        self.transitions: list[tuple[Transition, Token, Token]] = []
        self.start: Token | None = None
        self.order: Order | None = None
        self.accepting: list[Token] = []
        self.stack: list[str] = []
        self.name = ""
        self.symbols: dict[str, Symbol] = {}
        self.labelled: list[Token] = []
        self.limits = LimitsReader(source)
        self.asked: dict[str, tuple[Token, str, bool]] = {}

    def fail_at(
        self, problem: str, at: Token, *, suggestion: str | None = None, expected: Sequence[str] = ()
    ) -> NoReturn:
        self.source.fail_at(problem, at.place, suggestion=suggestion, expected=expected)

    def read_line(self, tokens: Sequence[Token]) -> None:
        first = tokens[0]
        if first.kind == "directive":
            if first.text not in self._READERS:
                near = did_you_mean(first.text, self._READERS)
                hint = f"did you mean {near}?" if near else f"directives are {', '.join(self._READERS)}"
                self.fail_at(f"unknown directive {first.text}", first, suggestion=hint)
            self._READERS[first.text](self, first, tokens[1:-1])
        elif any(token.kind in ("comma", "arrow") for token in tokens):
            self._read_transition(tokens)
        else:
            self._read_label(tokens)

    def _split_fields(self, tokens: Sequence[Token]) -> list[list[Token]]:
        """Split tokens at commas; the last token ends them."""
        found: list[list[Token]] = [[]]
        for token in tokens:
            if token is tokens[-1] or token.kind == "comma":
                if not found[-1]:
                    self.fail_at("a name is missing here", token, suggestion="write ε for nothing")
                found.append([])
            elif token.kind in ("name", "quoted", "any"):
                found[-1].append(token)
            else:
                self.fail_at(f"unexpected {token.text!r}", token, expected=("a name", "ε", "','"))
        return found[:-1]

    def _read_transition(self, tokens: Sequence[Token]) -> None:
        end = tokens[-1]
        arrows = [place for place, token in enumerate(tokens) if token.kind == "arrow"]
        if len(arrows) != 1:
            at = tokens[arrows[1]] if arrows else end
            what = "a second arrow" if arrows else "the arrow is missing"
            self._check_decimal_comma(tokens)
            self.fail_at(what, at, expected=("state, read, pop -> state, push",))
        left = self._split_fields(tokens[: arrows[0] + 1])
        if len(left) != 3:
            self.fail_at(f"{len(left)} parts before the arrow; there are three: state, read, pop", tokens[0],
                         suggestion="write ε where nothing is read or popped")  # fmt: skip
        for field in left:
            if len(field) > 1:
                self.fail_at(f"unexpected {field[1].text!r}", field[1], expected=("','",))
        right, (text, question, decision) = self._read_texts(list(tokens[arrows[0] + 1 : -1]))
        parts = self._split_fields([*right, end])
        if len(parts) != 2 or len(parts[0]) > 1:
            at = parts[0][1] if parts and len(parts[0]) > 1 else parts[2][0] if len(parts) > 2 else end
            self.fail_at("behind the arrow stand a state, a comma, and what is pushed, with blanks between", at,
                         expected=("state, push ...",), suggestion="write ε where nothing is pushed")  # fmt: skip
        (state,), (read,), (pop,) = left
        target, push = parts[0][0], parts[1]
        for token in (state, target):
            if _is_empty(token) or token.kind == "any":
                self.fail_at(f"{token.text} is no state", token)
        if read.kind == "any":
            self.fail_at("* stands for any symbol of the stack; what is read must be named", read)
        for token in push:
            if len(push) > 1 and _is_empty(token):
                self.fail_at("ε stands alone, where nothing is pushed", token)
            if pop.kind != "any" and token.kind == "any":
                self.fail_at("* behind the arrow is the symbol that * before it pops", token)
        transition = Transition(
            state.text,
            None if _is_empty(read) else read.text,
            _ANY if pop.kind == "any" else None if _is_empty(pop) else pop.text,
            target.text,
            tuple(_ANY if token.kind == "any" else token.text for token in push if not _is_empty(token)),
            text,
            question=question,
            decision=decision,
        )
        self.transitions.append((transition, state, pop))

    def _read_texts(self, tokens: list[Token]) -> tuple[list[Token], tuple[str, str, bool]]:
        """Return the tokens after the arrow without the text and the question at the end, and these texts."""
        text = question = ""
        decision = False
        if len(tokens) > 1 and tokens[-1].kind == "text" and _is_word(tokens[-2], "ask", "decide"):
            question, decision = _unescape_text(tokens[-1].text[1:-1]), tokens[-2].text == "decide"
            tokens = tokens[:-2]
        if tokens and tokens[-1].kind == "text":
            text = _unescape_text(tokens.pop().text[1:-1])
        return tokens, (text, question, decision)

    def _check_decimal_comma(self, tokens: Sequence[Token]) -> None:
        """Raise if a number has a decimal comma, as in ``kg=1,5``; in a transition commas separate names."""
        for token, comma, rest in zip(tokens, tokens[1:], tokens[2:], strict=False):
            quantity, sign, number = token.text.rpartition("=")
            if comma.kind == "comma" and quantity and sign and number.isdigit() and rest.text[:1].isdigit():
                self.fail_at(f"'{number},{rest.text}' has a comma for a decimal point", token,
                             suggestion=f"write {token.text}.{rest.text}")  # fmt: skip

    def _read_label(self, tokens: Sequence[Token]) -> None:
        name, *rest = tokens[:-1]
        named = name.kind in ("name", "quoted")
        if not named or not rest or (rest[0].kind != "text" and not _NUMBER.fullmatch(rest[0].text)):
            self.fail_at("this is neither a transition nor a label", rest[0] if named and rest else name,
                         expected=("state, read, pop -> state, push", 'terminal "label"'))  # fmt: skip
        texts: list[str] = []
        while rest and rest[0].kind == "text" and len(texts) < 2:
            texts.append(_unescape_text(rest.pop(0).text[1:-1]))
        old = self.symbols.get(name.text)
        numbers = dict(old.numbers) if old else {}
        for token in rest:
            pair = _NUMBER.fullmatch(token.text) if token.kind in ("name", "quoted") else None
            if pair is None:
                self.fail_at(f"unexpected {token.text!r}", token, expected=("a number such as minutes=20",))
            if pair[1] in numbers:
                self.fail_at(f"{name.text} has two numbers for {pair[1]}", token)
            try:
                numbers[pair[1]] = read_amount(pair[2])
            except ValueError as error:
                self.fail_at(str(error), token)
        if texts and old and old.label:
            self.fail_at(f"{name.text} has two labels: {old.label!r} and {texts[0]!r}", name)
        label, description = (*texts, "", "")[:2] if texts or old is None else (old.label, old.description)
        self.symbols[name.text] = Symbol(label, description, numbers)
        self.labelled.append(name)

    # -- directives ---------------------------------------------------------------------------------------------

    def _read_names(self, directive: Token, tokens: Sequence[Token], example: str) -> list[Token]:
        names = [token for token in tokens if token.kind != "comma"]
        for token in names:
            if token.kind not in ("name", "quoted") or _is_empty(token):
                self.fail_at(f"unexpected {token.text!r}", token, expected=("a name",))
        if not names:
            self.fail_at(f"{directive.text} names nothing", directive, suggestion=f"write: {directive.text} {example}")
        return names

    def _read_start(self, directive: Token, tokens: Sequence[Token]) -> None:
        names = self._read_names(directive, tokens, "STATE")
        if self.start is not None or len(names) > 1:
            self.fail_at("a second initial state; there is one", names[-1])
        self.start = names[0]

    def _read_accepting(self, directive: Token, tokens: Sequence[Token]) -> None:
        self.accepting += self._read_names(directive, tokens, "STATE ...")

    def _read_stack(self, directive: Token, tokens: Sequence[Token]) -> None:
        self.stack += [token.text for token in self._read_names(directive, tokens, "SYMBOL ...")]

    def _read_name(self, directive: Token, tokens: Sequence[Token]) -> None:
        if len(tokens) != 1 or tokens[0].kind != "text":
            self.fail_at("%name is followed by a text", directive, suggestion='write: %name "working hours"')
        self.name = _unescape_text(tokens[0].text[1:-1])

    def _read_order(self, directive: Token, tokens: Sequence[Token]) -> None:
        names = self._read_names(directive, tokens, "forward")
        if self.order is not None or len(names) > 1:
            self.fail_at("a second order; there is one", names[-1])
        if names[0].text not in ORDERS:
            order = names[0].text
            self.fail_at(unknown("order", order, ORDERS), names[0], suggestion=suggest_order(order))
        self.order = names[0].text

    def _read_question(self, directive: Token, tokens: Sequence[Token]) -> None:
        if [token.kind for token in tokens] not in (["name", "text"], ["quoted", "text"]):
            self.fail_at(f"{directive.text} is followed by a state and a question", directive,
                         suggestion=f'write: {directive.text} STATE "Which one?"')  # fmt: skip
        state, question = tokens
        if state.text in self.asked:
            self.fail_at(f"a second question for the state {state.text}", state)
        self.asked[state.text] = (state, _unescape_text(question.text[1:-1]), directive.text == "%decide")

    def _read_limit(self, directive: Token, tokens: Sequence[Token]) -> None:
        for token in tokens:
            if token.kind in ("text", "directive"):
                self.fail_at(f"unexpected {token.text!r}", token, expected=("a name",))
        self.limits.read_line(directive, [token for token in tokens if token.kind != "comma"])

    def _read_order_rule(self, _: Token, tokens: Sequence[Token]) -> None:
        self.limits.read_rule(tokens[0].text, tokens[0].place)

    #: How each directive is read.
    _READERS: ClassVar[Mapping[str, Callable[[_PdaReader, Token, Sequence[Token]], None]]] = {
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
        for token in self.labelled:
            if token.text not in pda.terminals:
                self.fail_at(unknown("terminal", token.text, pda.terminals), token)
        for token, *_ in self.asked.values():
            if token.text not in pda.states:
                self.fail_at(f"unknown state {token.text}" + suggest_name(token.text, pda.states), token)

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
