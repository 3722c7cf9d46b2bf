"""Reader of rule files: from a text to letters and rules, or to an error with its position and a suggestion."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, time
from fractions import Fraction
from functools import cache
from importlib import resources
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast
from zlib import crc32

from formal_llm.automata.models.symbols import unquote_text
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.control.machines import OTHERS
from formal_llm.errors import NotationError, did_you_mean
from formal_llm.guard.rules import rule_set as bodies
from formal_llm.guard.rules.data import Undetermined, Value, read_duration
from formal_llm.guard.rules.expressions import (
    BinaryOperation,
    Constant,
    Expression,
    FieldPath,
    ForAll,
    FunctionCall,
    ItemChoice,
    ItemField,
    LastValue,
    Negation,
    PastLetter,
    StemsFrom,
    Steps,
    ValueRange,
    ValueSet,
    join_conditions,
)  # fmt: skip
from formal_llm.guard.rules.functions import FUNCTIONS
from formal_llm.guard.rules.rule_set import (
    UNSURE,
    WORDS,
    EventPattern,
    GuardRule,
    GuardRuleSet,
    Kind,
    Letter,
    Names,
    Severity,
    Unsure,
    list_named_letters,
)

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

#: The maximum nesting depth of conditions, and the maximum number of digits.
_DEEPEST, _DIGITS = 60, 100
_WORDS: Mapping[str, Value] = {"true": True, "false": False, "null": None}
_SIGNS = {
    "contains": "contains",
    "starts": "starts with",
    "ends": "ends with",
    "like": "like",
}


class ConditionReader:
    """A reader of the conditions in one file.

    Args:
        letters: the declared letters, each with its fields.
    """

    def __init__(self, source: SourceText, letters: Mapping[str, tuple[str, ...]]) -> None:
        self.source = source
        self.letters = letters
        self._among_items = False

    def read_condition(self, tree: object, depth: int = 0) -> Expression:
        """Read the expression in a part of the syntax tree.

        Raises:
            NotationError: an unknown function, a wrong number of values, an invalid date, too deep a nesting.
        """
        if depth > _DEEPEST:
            self._raise_error(f"a condition nested more than {_DEEPEST} deep", tree)
        if not hasattr(tree, "data"):
            return Constant(self._read_constant(cast("Token", tree)))
        branch = cast("Tree[Token]", tree)
        kind, parts = str(branch.data), branch.children
        match kind:
            case "path" | "item":
                return self._read_path(branch)
            case "apply":
                return self._read_function_call(branch, depth)
            case "call_path":
                self._raise_error("a value in what a letter gives is written last(LETTER(...).FIELD)", tree)
            case "set":
                return ValueSet(tuple(self._read_set_item(part, depth) for part in parts))
            case "or_" | "and_":
                return join_conditions(kind[:-1], [self.read_condition(part, depth + 1) for part in parts])
            case "negated":
                return Negation(self.read_condition(parts[0], depth + 1))
            case "group":
                return self.read_condition(parts[0], depth + 1)
            case "sum" | "product" | "minus":
                return self._read_arithmetic(kind, parts, depth)
            case "compare":
                return BinaryOperation(
                    str(parts[1]), self.read_condition(parts[0], depth + 1), self.read_condition(parts[2], depth + 1)
                )
        return self._read_relation(kind, parts, depth)

    def _read_relation(self, kind: str, parts: Sequence[object], depth: int) -> Expression:
        left, right = (self.read_condition(part, depth + 1) for part in parts)
        match kind:
            case "from_to":
                return ValueRange(left, right)
            case "among":
                return BinaryOperation("in", left, right)
            case "not_among":
                return Negation(BinaryOperation("in", left, right))
        return BinaryOperation(_SIGNS[kind], left, right)

    def _read_arithmetic(self, kind: str, parts: Sequence[object], depth: int) -> Expression:
        if kind == "minus":
            inner = self.read_condition(parts[1], depth + 1)
            if isinstance(inner, Constant) and isinstance(inner.value, int | Fraction):
                return Constant(-inner.value)
            return BinaryOperation("-", Constant(Fraction(0)), inner)
        found = self.read_condition(parts[0], depth + 1)
        for sign, part in zip(parts[1::2], parts[2::2], strict=True):
            found = BinaryOperation(str(sign), found, self.read_condition(part, depth + 1))
        return found

    def _read_set_item(self, part: object, depth: int) -> Expression:
        """Read an item of a set, in which a bare word is a text."""
        item = self.read_condition(part, depth + 1)
        return Constant(str(item.steps[0])) if isinstance(item, FieldPath) and len(item.steps) == 1 else item

    def _read_path(self, tree: Tree[Token]) -> Expression:
        first, steps = str(tree.children[0]), self._read_steps(tree.children[1:])
        if tree.data == "item":
            if not self._among_items:
                self._raise_error(f"{first} of which item?", tree, f"choose items of a list: items[.{first} == 1]")
            return ItemField((first, *steps))
        return Constant(_WORDS[first]) if not steps and first in _WORDS else FieldPath((first, *steps))

    def _read_steps(self, parts: Sequence[object]) -> Steps:
        return tuple(self._read_step(cast("Tree[Token]", part)) for part in parts)

    def _read_step(self, tree: Tree[Token]) -> str | int | Expression | None:
        part = tree.children[-1]
        kind = part.data if hasattr(part, "data") else part.type
        match kind:
            case "path":
                return self.read_condition(part)
            case "INT":
                if len(str(part)) > 6:
                    self._raise_error(f"{part} is too large a place in a list", part)
                return int(str(part))
            case "STAR":
                return None
            case "ARG":
                return str(part)
        return self._read_choice(part, every=len(tree.children) > 1)

    def _read_choice(self, part: object, *, every: bool) -> ItemChoice:
        if self._among_items:
            self._raise_error("a choice of items within another one", part)
        self._among_items = True
        condition = self.read_condition(part)
        self._among_items = False
        if not any(isinstance(one, ItemField) for one in condition.walk()):
            self._raise_error(
                "this chooses no items by their fields", part, "a field of an item has a dot: items[.number == 1]"
            )
        return ItemChoice(condition, every)

    def _read_function_call(self, tree: Tree[Token], depth: int) -> Expression:
        name = str(tree.children[0])
        if name == "last":
            return self._read_last_value(tree)
        if name == "stems_from":
            return self._read_stem(tree, depth)
        if name == "all":
            return self._read_for_all(tree, depth)
        arguments = tuple(self.read_condition(part, depth + 1) for part in tree.children[1:])
        if name in FUNCTIONS:
            function = FUNCTIONS[name]
            if len(arguments) < function.least or (function.most is not None and len(arguments) > function.most):
                self._raise_error(
                    f"{name} takes {function.least} value{'s' if function.least > 1 else ''}", tree.children[0]
                )
            return FunctionCall(name, arguments)
        fields = self.letters.get(name)
        if fields is None:
            known = (*FUNCTIONS, "last", "stems_from", "all")
            near = did_you_mean(name, (*known, *self.letters))
            self._raise_error(
                f"unknown function or letter: {name}", tree.children[0],
                suggestion=f"did you mean {near}?" if near else f"functions are {', '.join(known)}",
            )  # fmt: skip
        if len(arguments) > len(fields):
            field_list = ", ".join(fields) or "none"
            self._raise_error(f"{name} gives fewer fields ({field_list}) than it is asked for", tree.children[0])
        return PastLetter(name, arguments)

    def _read_stem(self, tree: Tree[Token], depth: int) -> StemsFrom:
        given = [self.read_condition(part, depth + 1) for part in tree.children[1:]]
        if len(given) != 2 or not self.letters.get(str(given[1])):
            way_out = "stems_from(body, web), with web: fetch.result with text = returned"
            self._raise_error("stems_from takes a value, and a letter that gives fields", tree, way_out)
        return StemsFrom(str(given[1]), (given[0],))

    def _read_for_all(self, tree: Tree[Token], depth: int) -> ForAll:
        names: dict[str, Expression] = {}
        given = [self.read_condition(part, depth + 1) for part in tree.children[1:]]
        for one in given[:-1]:
            if isinstance(one, BinaryOperation) and one.sign == "in" and isinstance(one.left, FieldPath):
                names.setdefault(str(one.left), one.right)
        if not names or len(names) < len(given) - 1 or not all(map(str.isidentifier, names)):
            way_out = "all(item in items, item.price < 5)"
            self._raise_error("all takes different names for items of lists, and a condition", tree, way_out)
        return ForAll(tuple(names), tuple(names.values()), given[-1])

    def _read_last_value(self, tree: Tree[Token]) -> Expression:
        inner = tree.children[1] if len(tree.children) == 2 else None
        keys: tuple[Expression, ...] = ()
        steps: Steps = ()
        if getattr(inner, "data", "") == "call_path":
            parts = cast("Tree[Token]", inner).children
            arguments = [part for part in parts[1:] if getattr(part, "data", "") != "step"]
            keys = tuple(self.read_condition(part) for part in arguments)
            steps = (str(parts[0]), *self._read_steps(parts[1 + len(arguments) :]))
        elif getattr(inner, "data", "") == "path":
            path = self.read_condition(inner)
            steps = path.steps if isinstance(path, FieldPath) else ()
        choice = steps[1] if len(steps) > 1 else None
        if isinstance(choice, ItemChoice) and not choice.every:
            steps = (steps[0], *steps[2:])
        else:
            choice = None
        if len(steps) < 2 or not isinstance(steps[1], str):
            self._raise_error("last takes a field of a letter", tree.children[0], suggestion="write last(LETTER.FIELD)")
        letter, name = str(steps[0]), steps[1]
        fields = self.letters.get(letter, ())
        if name not in fields:
            near = did_you_mean(letter, self.letters)
            problem = f"{letter} gives no {name}" if letter in self.letters else f"unknown letter: {letter}"
            self._raise_error(
                problem, tree.children[0], suggestion=f"did you mean {near}?" if near and near != letter else None
            )
        for one in choice.walk() if choice is not None else ():
            if isinstance(one, ItemField) and one.steps[0] not in fields:
                self._raise_error(f"{letter} gives no {one.steps[0]}", inner, f"it gives {', '.join(fields)}")
        if len(keys) > len(fields):
            self._raise_error(f"{letter} gives fewer fields ({', '.join(fields)}) than it is asked for", inner)
        return LastValue(letter, name, keys, steps[2:], choice)

    def _read_constant(self, token: Token) -> Value:
        text = str(token)
        try:
            match token.type:
                case "INT" | "NUMBER":
                    if len(text) > _DIGITS:
                        self._raise_error(f"a number of {len(text)} digits", token)
                    return Fraction(text)
                case "DATE":
                    return date.fromisoformat(text)
                case "DATETIME":
                    return datetime.fromisoformat(text)
                case "TIME":
                    return time.fromisoformat(text.rjust(len(text) + text.find(":") % 2, "0"))
                case "DURATION":
                    return read_duration(text)
        except (ValueError, Undetermined):
            self._raise_error(f"{text} is no date, time or duration that there is", token)
        return unquote_text(text)

    def _raise_error(self, problem: str, part: object, suggestion: str | None = None) -> NoReturn:
        at = part if hasattr(part, "line") else getattr(part, "meta", None)
        place = Place(getattr(at, "line", 1), getattr(at, "column", 1))
        self.source.fail_at(problem, place, suggestion=suggestion)


#: The names of the terminals of ``guard.lark`` in messages.
_CALLED = {
    "LETTER": "a name", "ARG": "a name", "TOOL": "a tool", "STRING": 'a "text"', "LONG": '"""a long text"""',
    "INT": "a number", "NUMBER": "a number", "DURATION": "a duration such as 10min", "DATE": "a date",
    "DATETIME": "a date", "TIME": "a time of day", "_NL": "the end of the line", "$END": "the end of the file",
    "LIMIT_LINE": "%limit or %unsure", "SIGN": "a comparison", "PLUS": "'+'", "TIMES": "'*'", "MINUS": "'-'",
    "STAR": "'*'",
    "LSQB": "'['", "RSQB": "']'", "LPAR": "'('", "RPAR": "')'", "LBRACE": "'{'", "RBRACE": "'}'", "COMMA": "','",
    "COLON": "':'", "VBAR": "'|'", "DOT": "'.'", "EQUAL": "'='",
}  # fmt: skip


@cache
def load_parser(extension: str = "", starts: tuple[str, ...] = ("start",)) -> Lark:
    """Load the parser of rule files.

    Args:
        extension: further rules of the grammar, for notations that contain conditions.
        starts: the rules that a text may be parsed as.
    """
    from lark import Lark

    text = resources.files("formal_llm.guard.rules").joinpath("guard.lark").read_text(encoding="utf-8") + extension
    # The tables are kept beside the compiled modules: whoever can write there can change the code as well.
    place = cache_from_source(str(Path(__file__).with_name(f"guard-{crc32(f'{text} {starts}'.encode()):08x}.py")))
    cache = False if sys.dont_write_bytecode else place.removesuffix("pyc") + "lark"
    options = {"maybe_placeholders": False, "propagate_positions": True}
    return Lark(text, parser="lalr", start=list(starts), cache=cache, **options)


def read_rules(text: str, file: str | None = None, folder: str = "") -> GuardRuleSet:
    """Read letters and rules from a text.

    Args:
        text: the text.
        file: the file name for messages.
        folder: the folder of the files that its rules name.

    Raises:
        NotationError: with line, column, a caret, the expected tokens, and the nearest name.
    """
    source = SourceText.from_text(text, file, NotationError)
    return _GuardFileReader(source, folder).read_rule_set(parse_source(source, load_parser().parse, WORDS))


def parse_source(
    source: SourceText, parse: Callable[[str], Tree[Token]], words: Collection[str], text: str | None = None
) -> Tree[Token]:
    """Parse a text.

    Args:
        source: the text, for messages.
        parse: the parser.
        words: the words of the notation, for suggestions.
        text: the text to parse, if it is not all of the source; its places must be those of the source.

    Raises:
        NotationError: with line, column, a caret, the expected tokens, and the nearest word.
    """
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    try:
        return parse(source.text if text is None else text)
    except UnexpectedToken as error:
        place, word = Place(error.line, error.column), str(error.token).strip()
        if error.token.type == "$END" or error.token.type == "_NL" or place.line < 1:
            line = _find_last_line(source, error.line if error.token.type == "_NL" else None)
            place, word = Place(line, len(source.text.split("\n")[line - 1].rstrip()) + 1), ""
        near = did_you_mean(word, words) if word.isalpha() else None
        source.fail_at(
            f"unexpected {word!r}" if word else "the line ends too early", place,
            expected=_describe_expected(error.accepts or error.expected),
            suggestion=f"did you mean {near}?" if near and near != word else _suggest_fix(source, place),
        )  # fmt: skip
    except UnexpectedCharacters as error:
        place = Place(error.line, error.column)
        rest = source.text.split("\n")[error.line - 1][error.column - 1 :]
        problem = 'a text that does not end on its line (closing " is missing)' if rest[:1] == '"' else (
            f"unexpected {rest.split()[0] if rest.split() else error.char!r}"
        )  # fmt: skip
        source.fail_at(
            problem, place, expected=_describe_expected(error.allowed or ()), suggestion=_suggest_fix(source, place)
        )
    except UnexpectedInput as error:
        source.fail_at("this cannot be read", Place(error.line, error.column))


def _find_last_line(source: SourceText, line: int | None) -> int:
    lines = source.text.split("\n")
    number = min(line or len(lines), len(lines))
    while number > 1 and not lines[number - 1].split("#")[0].strip():
        number -= 1
    return number


def _describe_expected(names: object) -> list[str]:
    words = [_CALLED.get(name, name.lower()) for name in sorted(cast("set[str]", names))]
    return [name for name in dict.fromkeys(words) if not name.startswith("_") and name not in ("blank", "comment")]


def _suggest_fix(source: SourceText, place: Place) -> str | None:
    rest = source.text.split("\n")[place.line - 1][place.column - 1 :]
    if re.match(r"=(?!=)", rest):
        return "equality is written =="
    if rest.startswith(("&&", "||", "!")):
        return "write and, or, not"
    if rest.startswith("'"):
        return 'texts stand in double quotes: "..."'
    return None


class _GuardFileReader:
    """A reader that builds letters and rules from the syntax tree."""

    def __init__(self, source: SourceText, folder: str) -> None:
        self.source = source
        self.folder = folder
        self.letters: dict[str, Letter] = {}
        self.places: dict[str, Place] = {}
        self.fields: dict[str, tuple[str, ...]] = {}

    def read_rule_set(self, tree: Tree[Token]) -> GuardRuleSet:
        rules: dict[str, GuardRule] = {}
        statements = cast("list[Tree[Token]]", tree.children)
        for one in statements:
            if one.data in ("letter", "tools"):
                self._declare_letters(one)
        conditions = ConditionReader(self.source, self.fields)
        for one in statements:
            if one.data == "letter":
                self._read_letter(one, conditions)
        unsure: set[Unsure] = set()
        for one in statements:
            if one.data == "limit_line" and str(one.children[0]).split()[0] == "%unsure":
                unsure.add(self._read_unsure(one))
            elif one.data in ("rule", "limit_line"):
                rule, place = self._read_rule(one) if one.data == "rule" else self._read_limit(one)
                if rule.name in rules:
                    self.source.fail_at(f"a second rule {rule.name}", place, suggestion="give it another name")
                rules[rule.name] = rule
        if not rules:
            self.source.fail_at(
                "there are no rules", None, suggestion="write, for instance, rule first: approve before pay"
            )
        # Of several lines, as those of imported files are, the strictest counts.
        strictest = min(unsure, key=UNSURE.index, default=None)
        return GuardRuleSet(tuple(self.letters.values()), tuple(rules.values()), self.folder, strictest)

    def _declare_letters(self, tree: Tree[Token]) -> None:
        names = (
            [self._get_name_token(one) for one in tree.children]
            if tree.data == "tools"
            else [_require_token(tree.children[0])]
        )
        for name in names:
            text = _unquote_token(name)
            if text in self.letters:
                self.source.fail_at(f"a second {text}; the first is in line {self.places[text].line}", find_place(name))
            if text.startswith(OTHERS):
                self.source.fail_at(f"no letter begins with {OTHERS!r}", find_place(name))
            self.places[text] = find_place(name)
            self.letters[text] = Letter(text, (EventPattern("call", text),))
            self.fields[text] = ()
        if tree.data == "letter":
            first = cast("Tree[Token]", tree.children[1])
            items = [field for part in first.find_data("fields") for field in cast("list[Tree[Token]]", part.children)]
            self.fields[_unquote_token(names[0])] = tuple(str(_require_token(field.children[0])) for field in items)

    def _get_name_token(self, tree: object) -> Token:
        return _require_token(cast("Tree[Token]", tree).children[0])

    def _read_letter(self, tree: Tree[Token], conditions: ConditionReader) -> None:
        name = _unquote_token(_require_token(tree.children[0]))
        branches = [one for one in tree.children[1:] if _is_branch(one, "pattern")]
        patterns = tuple(self._read_pattern(cast("Tree[Token]", one), conditions) for one in branches)
        until = [self._read_letters(cast("Tree[Token]", one).children[0]) for one in tree.children[1:]
                 if _is_branch(one, "ending")]  # fmt: skip
        for one, branch in zip(patterns, branches, strict=True):
            if tuple(field for field, _ in one.fields) != self.fields[name]:
                field_list = ", ".join(self.fields[name]) or "none"
                self.source.fail_at(
                    f"all patterns of {name} give the same fields, here {field_list}", find_place(branch),
                    suggestion="write with ... behind each pattern",
                )  # fmt: skip
        self.letters[name] = Letter(name, patterns, *until)

    def _read_pattern(self, tree: Tree[Token], conditions: ConditionReader) -> EventPattern:
        source, *rest = cast("list[Tree[Token]]", tree.children)
        tool = _unquote_token(self._get_name_token(source.children[0])) if source.children else ""
        condition: Expression | None = None
        fields: list[tuple[str, Expression]] = []
        for part in rest:
            if part.data == "condition":
                condition = conditions.read_condition(part.children[0])
            else:
                for field in cast("list[Tree[Token]]", part.children):
                    name = _require_token(field.children[0])
                    if str(name) in dict(fields):
                        self.source.fail_at(f"a second {name}", find_place(name))
                    fields.append((str(name), conditions.read_condition(field.children[1])))
        return EventPattern(cast("Kind", str(source.data)), tool, condition, tuple(fields))

    # -- rules --------------------------------------------------------------------------------------------------

    def _read_rule(self, tree: Tree[Token]) -> tuple[GuardRule, Place]:
        title, *rest = cast("list[Tree[Token]]", tree.children)
        name, severity, says = _require_token(title.children[0]), "block", ""
        keys: tuple[str, ...] = ()
        body: bodies.Body | None = None
        for part in rest:
            if not hasattr(part, "data"):
                says = unquote_text(str(part))
            elif part.data == "severity":
                severity = str(_require_token(part.children[0]))
            elif part.data == "keys":
                keys = tuple(str(each) for each in part.children)
                self._check_known_keys(cast("list[Token]", part.children))
            else:
                body = self._read_body(part)
        assert body is not None
        rule = GuardRule(_unquote_token(name), body, cast("Severity", severity), keys, says)
        self._check_rule_keys(rule, find_place(name))
        return rule, find_place(name)

    def _check_known_keys(self, keys: Sequence[Token]) -> None:
        known = {field for fields in self.fields.values() for field in fields}
        for key in keys:
            if str(key) not in known:
                near = did_you_mean(str(key), known)
                self.source.fail_at(
                    f"no letter gives {key}", find_place(key),
                    suggestion=f"did you mean {near}?" if near else f"write ... with {key} = ... behind a letter",
                )  # fmt: skip

    def _check_rule_keys(self, rule: GuardRule, place: Place) -> None:
        """Check that each letter of a rule ``for each`` has all of its keys or none."""
        for name in dict.fromkeys(list_named_letters(rule.body)):
            own_keys = [key for key in rule.keys if key in self.fields[name]]
            if own_keys and len(own_keys) < len(rule.keys):
                missing = next(key for key in rule.keys if key not in own_keys)
                self.source.fail_at(
                    f"{name} gives {own_keys[0]} and not {missing}; it gives all keys of the rule, or none", place
                )
        if isinstance(rule.body, bodies.OnlyBody):
            if rule.keys:
                self.source.fail_at("'only' is about all calls", place, suggestion="leave out for each")
            for name in rule.body.names:
                if all(pattern.kind != "call" for pattern in self.letters[name].patterns):
                    self.source.fail_at(f"no call is {name}; 'only' names calls", place)
        in_words = not isinstance(rule.body, bodies.NotationBody | bodies.BudgetBody)
        if (
            rule.keys
            and in_words
            and not any(rule.keys[0] in self.fields[name] for name in list_named_letters(rule.body))
        ):
            self.source.fail_at(f"no letter of this rule gives {rule.keys[0]}", place)

    def _read_letters(self, tree: object) -> Names:
        names = []
        for token in cast("list[Token]", cast("Tree[Token]", tree).children):
            name = _unquote_token(token)
            if name not in self.letters:
                near = did_you_mean(name, self.letters)
                self.source.fail_at(
                    f"unknown letter: {name}", find_place(token),
                    suggestion=f"did you mean {near}?" if near else f"declare it: {token}: TOOL, or tools {token}",
                )  # fmt: skip
            names.append(name)
        return tuple(dict.fromkeys(names))

    def _read_body(self, tree: Tree[Token]) -> bodies.Body:
        parts = tree.children
        match str(tree.data):
            case "never":
                return bodies.NeverBody(self._read_letters(parts[0]))
            case "never_after":
                return bodies.NeverBody(self._read_letters(parts[0]), self._read_letters(parts[1]))
            case "only":
                return bodies.OnlyBody(self._read_letters(parts[0]))
            case "before":
                count = self._read_count(_require_token(parts[0])) if not hasattr(parts[0], "data") else 1
                letters = [self._read_letters(part) for part in parts if _is_branch(part, "letters")]
                return bodies.BeforeBody(letters[0], letters[1], count, any(_is_branch(part, "each") for part in parts))
            case "after" | "within":
                token = _require_token(parts[1]) if tree.data == "within" else None
                is_time = token is not None and token.type == "DURATION"
                within = None if token is None else read_duration(token) if is_time else self._read_count(token)
                return bodies.AfterBody(self._read_letters(parts[0]), self._read_letters(parts[-1]), within)
            case "at_least":
                return bodies.AtLeastBody(self._read_count(_require_token(parts[0])), self._read_letters(parts[1]))
            case "at_most" | "at_most_since" | "at_most_within":
                return self._read_at_most(str(tree.data), parts)
            case "apart":
                return bodies.ApartBody(read_duration(str(parts[0])), self._read_letters(parts[1]))
            case "budget":
                quantity = _require_token(parts[0])
                if not any(str(quantity) in fields for fields in self.fields.values()):
                    self._check_known_keys([quantity])
                return bodies.BudgetBody(str(quantity), Fraction(str(parts[1])))
        return self._read_notation_body(tree)

    def _read_at_most(self, kind: str, parts: Sequence[Tree[Token] | Token]) -> bodies.AtMostBody:
        count, letters = self._read_count(_require_token(parts[0])), self._read_letters(parts[1])
        if kind == "at_most_within":
            return bodies.AtMostBody(count, letters, within=read_duration(str(parts[2])))
        return bodies.AtMostBody(count, letters, self._read_letters(parts[2]) if kind == "at_most_since" else ())

    def _read_notation_body(self, tree: Tree[Token]) -> bodies.NotationBody:
        parts = tree.children
        notation = "file" if tree.data == "file" else str(parts[0])
        text = str(parts[-1])
        text = text[3:-3] if text.startswith('"""') else unquote_text(text)
        return bodies.NotationBody(notation, text)

    def _read_count(self, token: Token) -> int:
        if len(token) > 5:
            self.source.fail_at(f"{token} is too large a count", find_place(token), suggestion="the most is 99999")
        return int(token)

    def _read_unsure(self, tree: Tree[Token]) -> Unsure:
        token = _require_token(tree.children[0])
        words = str(token).split("#")[0].split()[1:]
        found = next((one for one in UNSURE if words == [one]), None)
        if found is None:
            problem = f"%unsure says one of {', '.join(UNSURE)}"
            self.source.fail_at(problem, find_place(token), suggestion="%unsure ask")
        return found

    def _read_limit(self, tree: Tree[Token]) -> tuple[GuardRule, Place]:
        from formal_llm.automata.notation.limit_lines import read_line  # loads the automata, which few rules need

        token = _require_token(tree.children[0])
        text = str(token).split("#")[0].strip()
        try:
            limits = read_line(text)
        except NotationError as error:
            self.source.fail_at(error.problem, find_place(token), suggestion=error.suggestion)
        if limits.times or limits.default is not None or not limits:
            self.source.fail_at(
                "here a limit names its letters, or a sum", find_place(token), suggestion="%limit 3 search"
            )
        for name in (*limits.at_most, *limits.at_least):
            if name not in self.letters:
                near = did_you_mean(name, self.letters)
                self.source.fail_at(f"unknown letter: {name}", find_place(token),
                                 suggestion=f"did you mean {near}?" if near else None)  # fmt: skip
        for bound in limits.sums:
            if not any(bound.quantity in fields for fields in self.fields.values()):
                self.source.fail_at(f"no letter gives {bound.quantity}", find_place(token))
            if bound.at_least is not None:
                self.source.fail_at(
                    "a sum has no least here", find_place(token), suggestion=f"%limit {bound.quantity} <= 5"
                )
        return GuardRule(text, bodies.NotationBody("limit", text)), find_place(token)


def _is_branch(part: object, data: str) -> bool:
    return getattr(part, "data", None) == data


def _require_token(part: object) -> Token:
    assert not hasattr(part, "data"), part
    return cast("Token", part)


def _unquote_token(token: Token) -> str:
    return unquote_text(str(token)) if str(token).startswith('"') else str(token)


def find_place(part: object) -> Place:
    """Find the position at which a token or a part of the tree begins."""
    at = part if hasattr(part, "line") else getattr(part, "meta", None)
    return Place(getattr(at, "line", None) or 1, getattr(at, "column", None) or 1)
