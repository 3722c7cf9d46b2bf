"""The lines of the notation for pushdown automata: their tokens, and the families of lines that ``for`` generates.

``q{t}, lunch, D{t} -> q{t+1}, ε for t in 1..3`` is three lines. A clause binds a name to each value of a range or a
list of names; braces contain such names, and expressions of them if they are numbers or times
(:mod:`formal_llm.automata.notation.pda_lines`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from operator import add, floordiv, mod, mul, sub
from typing import NamedTuple, NoReturn

from formal_llm.automata.models.quantities import TIME, Amount, clock_text, read_amount, read_clock
from formal_llm.automata.models.symbols import quote_text
from formal_llm.automata.notation.limit_lines import EXAMPLES
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import did_you_mean

#: The maximum number of values in a range.
MOST = 100_000

_CLOCK = r"\d{1,2}:\d\d"
_DURATION = r"\d+h\d\d|\d+h|\d+m(?:in)?|\d+s"
#: A time of day is never multiplied or divided: the end of {n/4:02} is a width.
_LITERAL = re.compile(rf"(?<![\w:.])(?:(?<![*/%])(?<![*/%] ){_CLOCK}|{_DURATION})(?![\w:])")
_FORMAT = re.compile(r"(.*\S)\s*:\s*(0?[0-9]{1,2})\s*")
_RANGE = re.compile(rf"(-?\d{{1,9}}|{_CLOCK})\.\.(-?\d{{1,9}}|{_CLOCK})")


class Time(int):
    """A time of day, or a duration, in seconds."""

    is_clock: bool

    @classmethod
    def from_seconds(cls, seconds: int, *, is_clock: bool) -> Time:
        """Create a time from seconds."""
        time = cls(seconds)
        time.is_clock = is_clock
        return time

    def __str__(self) -> str:
        if self < 0:
            raise ValueError("before midnight" if self.is_clock else "a negative time")
        return clock_text(int(self)) if self.is_clock else str(Amount(int(self), TIME))

    __repr__ = __str__


#: The value of a name in braces.
Value = int | str


def parse_literal(text: str) -> Value:
    """Parse a number, a time of day, a duration, or a name."""
    if re.fullmatch(r"-?\d{1,9}", text):
        return int(text)
    if re.fullmatch(_CLOCK, text):
        return Time.from_seconds(read_clock(text), is_clock=True)
    if re.fullmatch(_DURATION, text):
        return Time.from_seconds(int(read_amount(text)), is_clock=False)
    return text


def compute_expression(text: str, values: Mapping[str, Value]) -> str:
    """Return the text of an expression's value.

    Raises:
        KeyError: a name is unknown.
        TypeError: it computes with a name that is no number, or with incompatible times.
        ZeroDivisionError: it divides by zero.
        ValueError, SyntaxError, RecursionError, MemoryError: it is not an expression.
    """
    times: dict[str, Value] = {}

    def name_time(found: re.Match[str]) -> str:
        times[f"_time{len(times)}"] = parse_literal(found[0])
        return f" _time{len(times) - 1} "

    plain = _LITERAL.sub(name_time, text.strip())
    form = _FORMAT.fullmatch(plain)
    value = _evaluate_node(ast.parse((form[1] if form else plain).strip(), mode="eval").body, {**values, **times})
    if form is None:
        return str(value)
    if isinstance(value, (str, Time)):
        raise TypeError("only whole numbers have a width")
    return format(value, form[2])


def parse_range(text: str, step: str | None) -> Sequence[Value] | None:
    """Return the values of a range such as ``1..3`` or ``8:00..20:00``, with a step such as ``15min``, or None.

    Raises:
        ValueError: it is empty or too long, or its ends or step are incompatible; with the reason.
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        return None
    low, high = parse_literal(found[1]), parse_literal(found[2])
    by = 1 if step is None else parse_literal(step)
    clocks = isinstance(low, Time), isinstance(high, Time)
    if clocks[0] != clocks[1]:
        raise ValueError(f"the ends of {text} are a time of day and a number")
    if clocks[0] and not isinstance(by, Time):
        raise ValueError(f"the range {text} needs a step; write, for instance: {text} by 15min")
    if isinstance(by, str) or (isinstance(by, Time) and (by.is_clock or not clocks[0])) or by <= 0:
        raise ValueError(f"{step} is no step for {text}")
    assert isinstance(low, int)
    assert isinstance(high, int)
    if low > high:
        raise ValueError(f"the range {text} is empty; write {found[2]}..{found[1]}")
    if (high - low) // by >= MOST:
        raise ValueError(f"this range stands for more than {MOST:,} numbers")
    if clocks[0]:
        return [Time.from_seconds(seconds, is_clock=True) for seconds in range(low, high + 1, by)]
    return range(low, high + 1, by)


_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: floordiv, ast.FloorDiv: floordiv, ast.Mod: mod,
}  # fmt: skip

#: The kind of result of an operation by its operands: None is a number, True a time of day, False a duration.
_Kind = bool | None
_MADE: Mapping[Callable[[int, int], int], Mapping[tuple[_Kind, _Kind], _Kind]] = {
    add: {(True, False): True, (False, True): True, (False, False): False},
    sub: {(True, False): True, (True, True): False, (False, False): False},
    mul: {(None, False): False, (False, None): False},
    floordiv: {(False, None): False, (False, False): None},
    mod: {(False, False): False, (True, False): False},
}


def _evaluate_node(node: ast.expr, values: Mapping[str, Value]) -> Value:
    match node:
        case ast.Name(id=name):
            return values[name]
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _apply_operator(sub, 0, _evaluate_node(inner, values))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _apply_operator(_OPERATORS[type(sign)], _evaluate_node(left, values), _evaluate_node(right, values))
    raise ValueError("not covered")


def _apply_operator(operator: Callable[[int, int], int], one: Value, other: Value) -> int:
    if isinstance(one, str) or isinstance(other, str):
        raise TypeError("it computes with a name that is no number")
    value = operator(int(one), int(other))
    if not isinstance(one, Time) and not isinstance(other, Time):
        return value
    kinds = one.is_clock if isinstance(one, Time) else None, other.is_clock if isinstance(other, Time) else None
    kinds_made = _MADE[operator]
    if kinds not in kinds_made:
        raise TypeError("it computes with times that do not fit: 9:15 + 30min, 10:00 - 9:15, 2 * 15min, 1h / 15min do")
    kind = kinds_made[kinds]
    return value if kind is None else Time.from_seconds(value, is_clock=kind)


#: In a transition, any symbol of the stack.
ANY = "\0any"  # no text contains a zero byte
DIRECTIVES = ("%start", "%order", "%accept", "%stack", "%name", "%ask", "%decide", "%limit", "%require", "%rule",
              *EXAMPLES)  # fmt: skip
#: The notation of a terminal's number.
NUMBER = re.compile(r"([^\s=]+)=(\S+)")
EMPTY_NAMES = ("ε", "%empty")

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\f]+|\#[^\n]*)
    | (?P<arrow>->|→)
    | (?P<comma>,)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<quoted>'(?:[^'\\\n]|\\.)*')
    | (?P<any>\*(?=[\s,\#]|$))
    | (?P<compare><=|>=)
    | (?P<directive>%\w+)
    | (?P<name>(?:\{[^{}\n]*\}|(?!->|→)[^\s\x00-\x1f\x7f,"'\#{}%()<>*])+)
    """,
    re.VERBOSE,
)
#: A transition of bare names, like nearly all lines of a long file; names as above, without those with braces.
_PLAIN_NAME = r"""((?:[^\s\x00-\x1f\x7f,"'\#{}%()<>*→-]|-(?!>))+)"""
_PLAIN = re.compile(
    rf"[ \t\f]*{_PLAIN_NAME}[ \t\f]*,[ \t\f]*{_PLAIN_NAME}[ \t\f]*,[ \t\f]*{_PLAIN_NAME}[ \t\f]*(?:->|→)[ \t\f]*"
    rf"{_PLAIN_NAME}[ \t\f]*,[ \t\f]*({_PLAIN_NAME}(?:[ \t\f]+{_PLAIN_NAME})*)[ \t\f]*"
)
_RULE = re.compile(r"""[ \t\f]*(%rule)(?!\w)((?:"(?:[^"\\\n]|\\.)*"|[^"\#\n])*)(?:\#.*)?""")
_BARE = re.compile(r"""(?:(?!->|→)[^\s\x00-\x1f\x7f,"'#{}%()<>*])+""")
_WRONG_ARROW = re.compile(r"=>|⇒|⟶|:=|[—–―]>?|<-|>")
_BRACES = re.compile(r"\{([^{}]*)\}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


class PdaToken(NamedTuple):
    """A token of a line. The text of a quoted name is its content; that of a string includes the quotes."""

    kind: str
    text: str
    place: Place
    quoted: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether it is ε."""
        return self.kind == "name" and not self.quoted and self.text in EMPTY_NAMES

    def is_word(self, *words: str) -> bool:
        """Return whether it is one of these words of the notation."""
        return self.kind == "name" and not self.quoted and self.text in words


class PdaLine(NamedTuple):
    """The tokens of a statement, and its end."""

    tokens: tuple[PdaToken, ...]
    end: PdaToken


class PlainTransition(NamedTuple):
    """A transition of bare names; None means ε. The state and the popped symbol have places."""

    state: PdaToken
    read: str | None
    pop: PdaToken
    target: str
    push: tuple[str, ...]


def statements(source: SourceText) -> Iterator[PdaLine | PlainTransition]:
    """Yield the statements of a file, with every family expanded.

    Raises:
        NotationError: a sign has no meaning, a text does not end, a clause cannot be read, or a name in braces is
            unknown.
    """
    for number, text in enumerate(source.text.split("\n"), 1):
        plain = _read_plain_line(text, number)
        if plain is not None:
            yield plain
            continue
        if rule := _RULE.fullmatch(text):
            directive = PdaToken("directive", rule[1], Place(number, rule.start(1) + 1))
            sentence = PdaToken("string", rule[2], Place(number, rule.start(2) + 1))
            yield PdaLine((directive, sentence), sentence)
            continue
        tokens, end = _tokenize_line(source, text, number)
        if not tokens:
            continue
        at = next((n for n, token in enumerate(tokens) if _begins_clause(tokens[n:])), len(tokens))
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
            line = PdaLine(tuple(_fill_braces(source, token, named) for token in tokens[:at]), end)
            _check_decimal_comma(source, line)
            yield line


def _read_plain_line(text: str, number: int) -> PlainTransition | None:
    """Return the transition of a line; None if the line is not a plain one."""
    found = _PLAIN.fullmatch(text)
    if found is None:
        return None
    state, read, pop, target, push = found[1], found[2], found[3], found[4], found[5].split()
    if state == "ε" or target == "ε" or "for" in push or (len(push) > 1 and "ε" in push):
        return None
    return PlainTransition(
        PdaToken("name", state, Place(number, found.start(1) + 1)),
        None if read == "ε" else read,
        PdaToken("name", pop, Place(number, found.start(3) + 1)),
        target,
        () if push[0] == "ε" else tuple(push),
    )


def _tokenize_line(source: SourceText, text: str, number: int) -> tuple[list[PdaToken], PdaToken]:
    tokens: list[PdaToken] = []
    at = end = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        place = Place(number, at + 1)
        if match is None:
            _refuse_text(source, text, place)
        at = match.end()
        kind = str(match.lastgroup)
        if kind == "blank":
            continue
        end = at
        if kind == "quoted":
            tokens.append(PdaToken("name", _unescape_text(match[0][1:-1]), place, quoted=True))
        elif match[0] == "%empty":
            tokens.append(PdaToken("name", "ε", place))
        else:
            tokens.append(PdaToken(kind, match[0], place))
    return tokens, PdaToken("end", "the end of the line", Place(number, end + 1))


def _refuse_text(source: SourceText, text: str, place: Place) -> NoReturn:
    sign = text[place.column - 1]
    arrow = None if re.search("->|→", text) else _WRONG_ARROW.search(text)
    if sign in "\"'":
        source.fail_at(f"a text that does not end on its line (closing {sign} is missing)", place)
    if sign in "{}":
        source.fail_at(f"the brace {sign!r} stands alone", place, suggestion="a name with a number in it is: q{t+1}")
    suggestion = f"write '->' instead of {arrow[0]!r}" if arrow else None
    if sign in "<>" and text.lstrip().startswith("%limit"):
        suggestion = f"write {sign}=, which allows that amount too"
    elif sign in "()":
        suggestion = "write the transition without brackets: state, read, pop -> state, push ..."
    elif sign == "*":
        suggestion = "* stands alone, for any symbol of the stack; a name with such a sign is written in quotes: '*'"
    source.fail_at(f"unexpected character {sign!r}", place, suggestion=suggestion)


def number_of(source: SourceText, token: PdaToken) -> tuple[str, int | Decimal]:
    """Return the quantity and the amount of a token such as ``minutes=20``."""
    pair = NUMBER.fullmatch(token.text) if token.kind == "name" else None
    if pair is None:
        source.fail_at(f"unexpected {token.text!r}", token.place, expected=("a number such as minutes=20",))
    try:
        return pair[1], read_amount(pair[2])
    except ValueError as error:
        source.fail_at(str(error), token.place)


def _check_decimal_comma(source: SourceText, line: PdaLine) -> None:
    """Raise an error if a number has a decimal comma, as in ``kg=1,5``; in a transition commas separate names."""
    if any(token.kind == "arrow" for token in line.tokens):
        return
    for token, comma, rest in zip(line.tokens, line.tokens[1:], line.tokens[2:], strict=False):
        quantity, sign, number = token.text.rpartition("=")
        if comma.kind == "comma" and quantity and sign and number.isdigit() and rest.text[:1].isdigit():
            source.fail_at(f"'{number},{rest.text}' has a comma for a decimal point", token.place,
                        suggestion=f"write {token.text}.{rest.text}")  # fmt: skip


# -- families ---------------------------------------------------------------------------------------------------------


def fields(source: SourceText, tokens: Sequence[PdaToken], end: PdaToken) -> list[list[PdaToken]]:
    """Split tokens at commas."""
    found: list[list[PdaToken]] = [[]]
    for token in [*tokens, end]:
        if token is end or token.kind == "comma":
            if not found[-1]:
                source.fail_at("a name is missing here", token.place, suggestion="write ε for nothing")
            found.append([])
        elif token.kind in ("name", "any"):
            found[-1].append(token)
        else:
            source.fail_at(f"unexpected {token.text!r}", token.place, expected=("a name", "ε", "','"))
    return found[:-1]


def _begins_clause(tokens: Sequence[PdaToken]) -> bool:
    return len(tokens) > 2 and tokens[0].is_word("for") and tokens[1].kind == "name" and tokens[2].is_word("in")


def _read_clauses(
    source: SourceText, tokens: Sequence[PdaToken], end: PdaToken
) -> Iterator[tuple[PdaToken, Sequence[Value]]]:
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
            if token.kind != "name":
                source.fail_at(f"unexpected {token.text!r} in a clause", token.place, expected=("1..3", "a name"))
        yield name, list(_read_values(source, values))
        tokens = rest[size:]


def _read_values(source: SourceText, tokens: Sequence[PdaToken]) -> Iterator[Value]:
    """Yield the values of a clause: names, numbers, times, and the values of ranges."""
    at = 0
    while at < len(tokens):
        token, step = tokens[at], None
        at += 1
        if token.quoted or ".." not in token.text:
            yield token.text if token.quoted else parse_literal(token.text)
            continue
        if at + 1 < len(tokens) and tokens[at].is_word("by"):
            step = tokens[at + 1].text
            at += 2
        try:
            values = parse_range(token.text, step)
        except ValueError as error:
            problem, _, hint = str(error).partition("; ")
            source.fail_at(problem, token.place, suggestion=hint or None)
        if values is None:
            source.fail_at(f"{token.text} is no range", token.place, expected=("1..3", "8:00..20:00 by 15min"))
        yield from values


def _fill_braces(source: SourceText, token: PdaToken, values: Mapping[str, Value]) -> PdaToken:
    """Replace the braces in a token; a text may contain other braces, which the task fills in."""
    if token.quoted or "{" not in token.text or token.kind not in ("name", "string"):
        return token

    def compute_value(match: re.Match[str]) -> str:
        names = re.findall(r"(?<!\w)[^\W\d]\w*", match[1])
        if token.kind == "string" and (not names or not set(names) <= set(values)):
            return match[0]
        place = Place(token.place.line, token.place.column + match.start())
        return _compute_text(source, match[1], values, place)

    return token._replace(text=_BRACES.sub(compute_value, token.text))


def _compute_text(source: SourceText, text: str, values: Mapping[str, Value], place: Place) -> str:
    try:
        return compute_expression(text, values)
    except KeyError as error:
        near = did_you_mean(str(error.args[0]), values)
        hint = f"its clauses name {', '.join(values)}" if values else "add a clause, such as: for t in 1..3"
        source.fail_at(
            f"unknown name {error.args[0]} in braces", place, suggestion=f"did you mean {near}?" if near else hint
        )
    except ZeroDivisionError:
        source.fail_at(f"{{{text}}} divides by zero", place)
    except TypeError as error:
        source.fail_at(f"{{{text}}}: {error}", place)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        source.fail_at(f"{{{text}}} cannot be read", place, expected=("{t}", "{t-1}", "{2*t+1}", "{t+15min}"))


# -- names and texts --------------------------------------------------------------------------------------------------


def unquoted(token: PdaToken) -> str:
    """Return the text of a string token."""
    return _unescape_text(token.text[1:-1])


def _unescape_text(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), text)


def quoted_name(name: str) -> str:
    """Return a name in its notation: bare if possible, otherwise in single quotes."""
    words = (*EMPTY_NAMES, "for", "ask", "decide")
    if _BARE.fullmatch(name) and name not in words:
        return name
    inside = quoted_text(name)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inside}'"


def quoted_text(text: str) -> str:
    """Return a text in its notation, in double quotes."""
    return quote_text(text).replace("\0", "\\0")
