"""Which fact of a procedure a sentence of a policy states, by its words.

A fact is known by the words of its name, its description, and the values, fields, constants and texts in its condition.
A rare word counts more. The sentence must quote, count and narrow nothing that the fact does not know, and no other
fact may fit almost as well; otherwise nothing is read.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction
from functools import cached_property

from formal_llm.guard.rules.expressions import BinaryOperation, Constant, Expression, FieldPath
from formal_llm.llms.builtin import content_words, stem
from formal_llm.procedures.procedure import (
    ConditionNeed,
    FactNeed,
    Hole,
    Need,
    NeedGroup,
    NotNeed,
    Procedure,
    ProcedureTool,
)
from formal_llm.procedures.terms import CallValue

#: How much better than the second the best fact has to fit.
_MARGIN = 1.1
#: How much of what its name is worth has to be found in the sentence.
_LEAST = 0.65
#: How many facts a model chooses from.
_MOST_OPTIONS = 10

# -- sentences ---------------------------------------------------------------------------------------------------------

_NUMBER_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
_UNITS = "|".join(_SECONDS)
#: A number in digits or as a word; "one" is a number only before a unit.
_NUMBER = rf"(?:\d[\d,]*(?:\.\d+)?|\b(?:zero|{'|'.join(_NUMBER_WORDS[2:])}|one(?= (?:{_UNITS})))\b)"
_QUOTED = re.compile(r"[\"“`]([^\"“”`]+)[\"”`]|(?<!\w)['‘]([^'’]+)['’](?!\w)|\b([a-z]+(?:_[a-z]+)+)\b")
#: Usual words for others that hide a "not" or a comparison.
_USUAL = (
    (r"\bnot (?:null|empty|missing)\b", "present"), (r"\b(?:null|empty|missing)\b", "not present"),
    (r"\bat least one\b", "some"), (r"\b(?:sufficient|adequate)(?:ly)?\b", "enough"),
    (r"\b(\w+ not) (?:and|or) \w+ not\b", r"\1"),
)  # fmt: skip
#: Words that are no content of a sentence or a name.
_IGNORED = ("not", "no", "must", "may", "shall", "check", "internal", "call", "present")
_NEGATIVE = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|lacks?|lacking|fails?|cannot)\b|n['’]t\b"
)
_MORE = "more|greater|higher|larger|bigger|older|longer|later|above|over"
_LESS = "less|lower|fewer|smaller|younger|shorter|earlier|newer|below|under"
#: Words that compare, with the sign that they state; the right side is what follows.
_COMPARING: Sequence[tuple[str, str]] = (
    (rf"(?={_NUMBER}(?: \w+)? or (?:{_MORE})\b)", ">"), (rf"(?={_NUMBER}(?: \w+)? or (?:{_LESS})\b)", "<"),
    (rf"\b(?:{_MORE})\b[^.,;]{{0,30}}? than\b|\bexceeds?\b|\bat least\b|\bminimum of\b|\babove\b", ">"),
    (rf"\b(?:{_LESS})\b[^.,;]{{0,30}}? than\b|\bat most\b|\bup to\b|\bmaximum of\b|\bbelow\b", "<"),
)  # fmt: skip
#: These compare only if the fact does.
_WEAKLY: Sequence[tuple[str, str]] = (
    (r"\b(?:after|beyond|outside|over)\b", ">"),
    (r"\b(?:before|within|under)\b", "<"),
)
_INCLUSIVE = re.compile(rf"\b(?:or equal|equal to or|at least|at most|up to|m\w+imum of|or (?:{_MORE}|{_LESS}))\b")
_SAME = re.compile(r"\b(?:same|identical|equals?|match(?:es)?)\b")
_DIFFERENT = re.compile(r"\b(?:differ\w*|other than)\b")
_CONDITIONAL = re.compile(r"\b(?:if|unless|except|otherwise|either|depending)\b")
_SECOND_CLAUSE = re.compile(
    r"\b(?:and|or|but) (?=(?:the|an?|their|its|his|her|it|they|he|she|you|no|all|every|each|there)\b"
    r"[^.]*\b(?:is|are|was|were|has|have|had|must|may|can|does|do|did|be)\b)"
)
#: A sentence behind the first that requires something, too.
_REQUIRING = re.compile(
    r"\b(?:must|shall|should|may|can|cannot|needs?|ha[sv]e? to|only|required|enough)\b"
    r"(?! be (?:determined|calculated|computed|considered|interpreted|based|retrieved|found|seen)\b)"
)
#: A clause that narrows what is before it, or adds to it.
_NARROWING = re.compile(
    r"\b(?:that|which|who|whose|whom|where|by|during|until|since|while"
    r"|(?:and|or|but)(?= (?:is|are|was|were|has|have|had|must|may|can|does|do)\b))\b ([^,.;)]*)"
)
#: Words after which a value is not a certain one: "one user's".
_INDEFINITE = re.compile(r"\b(?:one|any|some|another|other|no) (\w+)")


@dataclass(frozen=True)
class _SentenceWords:
    """A sentence of a policy, perhaps with others that explain it."""

    text: str

    @cached_property
    def plain(self) -> str:
        """The first sentence in lower case, with usual words."""
        plain = self._parts[0].casefold()
        for pattern, usual in _USUAL:
            plain = re.sub(pattern, usual, plain)
        return plain

    @cached_property
    def _parts(self) -> list[str]:
        return re.split(r"(?<=[a-z\d\")][.!?])[\"']*\s*(?=[\"']?[A-Z])", self.text.replace("*", ""))

    @property
    def rest(self) -> list[_SentenceWords]:
        """The sentences behind the first that require something."""
        return [_SentenceWords(part) for part in self._parts[1:] if _REQUIRING.search(part.casefold())]

    @cached_property
    def words(self) -> Mapping[str, float]:
        """The stems of its words, without those that compare; those only behind the first sentence count half."""
        first = self.plain
        for pattern, _ in _COMPARING:
            first = re.sub(pattern, _strip_comparing, first)
        return {**dict.fromkeys(_find_stems(" ".join(self._parts[1:])), 0.5), **dict.fromkeys(_find_stems(first), 1.0)}

    @cached_property
    def quotes(self) -> list[str]:
        """The texts in quotes, and the names with underscores."""
        return ["".join(found) for found in _QUOTED.findall(self.text)]

    @cached_property
    def numbers(self) -> list[frozenset[str]]:
        """The numbers in it."""
        return _find_numbers(self.text)

    @cached_property
    def negative(self) -> bool | None:
        """Whether it says "not" outside of quotes; None if it says so twice."""
        found = len(_NEGATIVE.findall(re.sub(r"\"[^\"]*\"", "", self.plain)))
        return None if found > 1 else bool(found)

    @property
    def clauses(self) -> list[tuple[str, ...]]:
        """The first stems of each clause that narrows the sentence or adds to it."""
        found = (_find_stems(clause)[:3] for clause in _NARROWING.findall(self.plain))
        return [clause for clause in found if clause]

    def find_comparison(self, weakly: bool = False) -> tuple[str, str, str] | None:
        """Return what it compares: the left side, the sign ("?" for both signs), and the right side."""
        for patterns in (_COMPARING, _WEAKLY if weakly else ()):
            found = [(match, sign) for pattern, sign in patterns for match in re.finditer(pattern, self.plain)]
            if found:
                match, sign = found[0]
                left = self.plain[: match.start()] + _strip_comparing(match)
                return left, sign if len({one for _, one in found}) == 1 else "?", self.plain[match.end() :]
        return None


def _strip_comparing(match: re.Match[str]) -> str:
    """Return what is between the words that compare: the balance in "more balance than"."""
    return re.sub(r"^\w+|\w+$", "", match[0])


def _find_stems(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in content_words(text) if not word.isdigit() and word.casefold() not in _IGNORED)


def _find_numbers(text: str) -> list[frozenset[str]]:
    """Return the numbers in a text, each without and with its unit; not those that are part of a name: "ISO 8601"."""
    found = re.findall(rf"(?<![A-Z] )(?<![\w.])({_NUMBER})(?: ({_UNITS})s?\b)?", text)
    values = [_NUMBER_WORDS.index(one) if one.isalpha() else float(one.replace(",", "")) for one, _ in found]
    return [frozenset({f"{value:g}", f"{value:g} {unit}"}) for value, (_, unit) in zip(values, found, strict=True)]


def _match_word(word: str, words: Mapping[str, float]) -> float:
    """Return the weight of a word among others that are the same or nearly the same, 0 if there is none."""
    if word in words:
        return words[word]
    return max((0.8 * weight for other, weight in words.items() if _are_alike(word, other)), default=0.0)


def _are_alike(one: str, other: str) -> bool:
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return same >= 4 and (same == min(len(one), len(other)) or same >= 0.7 * max(len(one), len(other)))


# -- facts -------------------------------------------------------------------------------------------------------------

_EQUALITIES, _ORDERS = ("==", "!=", "contains", "in"), ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class _Statement:
    """A fact, or a check that answers yes or no: what a sentence may state.

    Attributes:
        parameters: the names of the values that it is about.
        description: what it means, in words.
        conditions: the conditions in it, each with whether it is negated.
    """

    name: str
    parameters: tuple[str, ...]
    description: str
    is_fact: bool
    conditions: tuple[tuple[Expression, bool], ...]
    procedure: Procedure

    @cached_property
    def terms(self) -> tuple[tuple[Expression, bool], ...]:
        """All expressions in it, each with whether its condition is negated."""
        return tuple((term, negated) for condition, negated in self.conditions for term in condition.walk())

    @cached_property
    def calls(self) -> list[ProcedureTool]:
        """The tools that it names."""
        return [self.procedure.tools[term.tool] for term, _ in self.terms if isinstance(term, CallValue)]

    def list_tests(self, signs: Sequence[str]) -> list[tuple[BinaryOperation, bool]]:
        """Return the comparisons in it with one of some signs, each with whether it is negated."""
        return [(one, negated) for one, negated in self.terms if isinstance(one, BinaryOperation) and one.sign in signs]

    @cached_property
    def orders(self) -> list[tuple[BinaryOperation, bool]]:
        """Its comparisons by size."""
        return self.list_tests(_ORDERS)

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The stems of the words of its name."""
        initials = {"".join(word[:1] for word in name.split("_")): name for name in self.names}
        return frozenset(_find_stems(" ".join(initials.get(word, word) for word in self.name.split("_"))))

    @cached_property
    def words(self) -> Mapping[str, float]:
        """The stems of the words that it may be stated with, each with its weight."""
        by_weight = {
            0.3: _find_stems(" ".join(tool.description for tool in self.calls)),
            0.5: _find_stems(" ".join(self.names | self.texts)),
            0.8: _find_stems(self.description),
            1.0: self.name_words,
        }
        return {word: weight for weight, words in by_weight.items() for word in words}

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of values, fields, tools and constants in it."""
        return frozenset({*self.parameters, *(name for one, _ in self.terms for name in _list_names(one))})

    @cached_property
    def texts(self) -> frozenset[str]:
        """The texts that it compares with, in lower case."""
        return frozenset(str(one.value).casefold() for one, _ in self.terms if isinstance(one, Constant))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers that it compares with, and its constants; a duration with its unit."""
        tests = self.list_tests((*_EQUALITIES, *_ORDERS))
        return frozenset(number for test, _ in tests for side in test.parts for number in self._list_numbers(side))

    def _list_numbers(self, side: Expression) -> Iterator[str]:
        if isinstance(side, Constant):
            yield from _to_numbers(side.value)
        for one in side.walk():
            if isinstance(one, FieldPath) and one.steps[0] in self.procedure.constants:
                yield from _to_numbers(self.procedure.constants[str(one.steps[0])])

    def find_tokens(self, side: Expression) -> frozenset[str]:
        """Return the stems and numbers that one side of a comparison may be called by."""
        names = [name for one in side.walk() for name in _list_names(one)]
        return frozenset(_find_stems(" ".join(names))).union(self._list_numbers(side))

    def make_need(self, sentence: _SentenceWords, positive: bool) -> Need:
        """Make the need, about the values that a sentence quotes."""
        values = self.find_values(sentence)
        need = FactNeed(self.name, values) if self.is_fact else ConditionNeed(CallValue(self.name, values))
        return need if positive else NotNeed(need)

    def find_values(self, sentence: _SentenceWords) -> tuple[FieldPath, ...]:
        """Return the values: those of its parameters' names, or others that a sentence quotes for them."""
        quoted = [name for name in sentence.quotes if name in self.procedure.names]
        others = [name for name in quoted if name not in self.names]
        values = []
        for one in self.parameters:
            longer = (name for name in others if {*one.split("_")} <= {*name.split("_")})
            values.append(one if one in quoted else next(longer, one))
        if len(values) == 1 and len({*quoted}) == len({*others}) == 1:
            values = others[:1]
        return tuple(FieldPath((value,)) for value in values)


def _list_names(one: Expression) -> tuple[str, ...]:
    if isinstance(one, FieldPath):
        return tuple(str(step) for step in one.steps if isinstance(step, str))
    return (one.tool, *(step for step in one.steps if isinstance(step, str))) if isinstance(one, CallValue) else ()


def _to_numbers(value: object) -> tuple[str, ...]:
    if isinstance(value, timedelta):
        return tuple(f"{value.total_seconds() / seconds:g} {unit}" for unit, seconds in _SECONDS.items())
    return (f"{float(value):g}",) if isinstance(value, int | float | Fraction) and not isinstance(value, bool) else ()


def _list_conditions(
    procedure: Procedure, need: Need, negated: bool, seen: frozenset[str]
) -> Iterator[tuple[Expression, bool]]:
    """Yield the conditions in a need and in the facts that it names, each with whether it is negated."""
    match need:
        case ConditionNeed(condition):
            yield condition, negated
        case FactNeed(fact, _) if fact not in seen:
            yield from _list_conditions(procedure, procedure.facts[fact].need, negated, seen | {fact})
        case NotNeed() | NeedGroup():
            turned = negated ^ (isinstance(need, NotNeed) or need.grouping == "none of")
            for part in need.parts:
                yield from _list_conditions(procedure, part, turned, seen)


def _list_statements(procedure: Procedure) -> list[_Statement]:
    """Return all facts, and the checks that answer yes or no and that no fact names."""
    facts = [
        _Statement(fact.name, fact.parameters, fact.description, True,
                   tuple(_list_conditions(procedure, fact.need, False, frozenset({fact.name}))), procedure)
        for fact in procedure.facts.values()
    ]  # fmt: skip
    used = {tool.name for fact in facts for tool in fact.calls}
    checks = [
        _Statement(tool.name, tuple(one.name for one in tool.parameters), tool.description, False, (), procedure)
        for tool in procedure.tools.values()
        if not tool.acts and tool.name not in used and tool.description.casefold().startswith("whether")
    ]
    return facts + checks


# -- which fact a sentence states --------------------------------------------------------------------------------------


class SentenceReader:
    """Finds the facts that sentences state before the call of a tool."""

    def __init__(self, procedure: Procedure) -> None:
        self.statements = _list_statements(procedure)
        self.values = procedure.names
        counts = Counter(
            word for one in self.statements for word in (*one.words, *one.numbers, *["<"] * bool(one.orders))
        )
        self.rarity = {word: math.log(1 + len(self.statements) / count) for word, count in counts.items()}

    def read_sentence(self, text: str, tool: ProcedureTool) -> tuple[Need, str]:
        """Return the need that a sentence states, and what is doubtful; a hole if it is not clear."""
        sentence = _SentenceWords(text)
        if _CONDITIONAL.search(sentence.plain) or _SECOND_CLAUSE.search(sentence.plain):
            return Hole(text), ""
        fitting = [(self._rate(one, sentence), one) for one in self.statements if self._may_state(one, sentence, tool)]
        ranked = sorted((pair for pair in fitting if pair[0] > 0), key=lambda pair: -pair[0])
        if not ranked or (len(ranked) > 1 and ranked[0][0] < _MARGIN * ranked[1][0]):
            return Hole(text), ""
        best = ranked[0][1]
        positive = _find_polarity(best, sentence)
        if positive is None or any(
            _find_polarity(best, one) != positive or not self._rate(best, one) for one in sentence.rest
        ):
            return Hole(text), ""
        return best.make_need(sentence, positive), _find_doubt(best, sentence, positive)

    def list_options(self, text: str) -> list[tuple[str, Need]]:
        """Return what a sentence may state, for a model to choose from, what is most like it first."""
        sentence = _SentenceWords(text)
        ranked = sorted(self.statements, key=lambda one: -self._sum_found(one, sentence) / self._sum_squares(one))
        likely = ranked[:_MOST_OPTIONS]
        needs = [(one, one.make_need(sentence, positive)) for one in likely for positive in (True, False)]
        return [(f"{need}: {one.description}" if one.description else str(need), need) for one, need in needs]

    def _may_state(self, one: _Statement, sentence: _SentenceWords, tool: ProcedureTool) -> bool:
        """Return whether a statement accounts for all that a sentence quotes, counts and narrows."""
        values = [str(value) for value in one.find_values(sentence)]
        owned = {**one.words, **dict.fromkeys(_find_stems(" ".join(each.name for each in tool.parameters)), 1.0)}
        return (
            all(
                quote in one.names or quote in values or quote.casefold() in one.texts
                or (quote not in self.values and one.words.keys() >= {*_find_stems(quote)})
                for quote in sentence.quotes
            )
            and all(value in sentence.quotes or _is_meant(value, sentence, tool) for value in values)
            and all(number & one.numbers for number in sentence.numbers)
            and all(any(_match_word(word, owned) for word in clause) for clause in sentence.clauses)
            and (_find_polarity(one, sentence) is not None or not sentence.find_comparison())
        )  # fmt: skip

    def _rate(self, one: _Statement, sentence: _SentenceWords) -> float:
        """Return how well a statement fits; 0 if too little of it is in the sentence, or too little of that in it."""
        compares = bool(one.orders and sentence.find_comparison())
        known = [word for word, weight in sentence.words.items() if weight == 1 and _match_word(word, self.rarity)]
        covered = self._sum_rarity(word for word in known if _match_word(word, one.words))
        wanted = self._sum_rarity(one.name_words)
        found = self._sum_found(one, sentence) + (self.rarity["<"] if compares else 0)
        if not self._is_named(one, sentence) or found * covered < _LEAST * wanted * self._sum_rarity(known):
            return 0
        return found / self._sum_squares(one)

    def _sum_found(self, one: _Statement, sentence: _SentenceWords) -> float:
        words = sum(
            weight * self.rarity[word] * _match_word(word, sentence.words) for word, weight in one.words.items()
        )
        return words + sum(self.rarity[token] for number in sentence.numbers for token in number & one.numbers)

    def _sum_squares(self, one: _Statement) -> float:
        return math.sqrt(sum((weight * self.rarity[word]) ** 2 for word, weight in one.words.items()))

    def _sum_rarity(self, words: Iterable[str]) -> float:
        return sum(self.rarity.get(word, 1.0) for word in words)

    def _is_named(self, one: _Statement, sentence: _SentenceWords) -> bool:
        """Return whether a sentence has a word of the name, most of the description, or what is compared."""
        named = [word for word in one.name_words if _match_word(word, sentence.words)]
        if one.orders and not sentence.find_comparison(weakly=True):
            return len(named) == len(one.name_words)
        described = _find_stems(one.description)
        found = self._sum_rarity(word for word in described if _match_word(word, sentence.words))
        counted = one.orders and any(number & one.numbers for number in sentence.numbers)
        return bool(named or counted) or found > 0.75 * self._sum_rarity(described) > 0


def _is_meant(name: str, sentence: _SentenceWords, tool: ProcedureTool) -> bool:
    """Return whether a value that is not quoted is meant: words name it, or it is the only such value of the tool."""
    stems = {*_find_stems(name)}
    found = [word for word in stems if _match_word(word, sentence.words)]
    if any(_are_alike(word, stem(other)) for word in found for other in _INDEFINITE.findall(sentence.plain)):
        return False
    owned = [parameter.name for parameter in tool.parameters]
    if name not in owned:
        return len(found) == len(stems)
    return bool(found) or not any(stems & {*_find_stems(other)} for other in owned if other != name)


def _find_polarity(one: _Statement, sentence: _SentenceWords) -> bool | None:
    """Return whether a sentence states a fact or its opposite; None if that is not clear."""
    compared = sentence.find_comparison(weakly=bool(one.orders))
    if compared is not None:
        stated = _compare_sides(one, *compared)
    else:
        signs = _find_signs(one, sentence) or {_has_positive_name(one)}
        stated = signs.pop() if len(signs) == 1 else None
    return None if stated is None or sentence.negative is None else stated != sentence.negative


def _find_signs(one: _Statement, sentence: _SentenceWords) -> set[bool]:
    """Return how a fact compares what a sentence mentions: a text, a number, or that two values are the same."""
    words = {*re.findall(r"\w+", sentence.plain), *("".join(found) for found in _QUOTED.findall(sentence.plain))}
    numbers = frozenset[str]().union(*sentence.numbers)
    same, different = _SAME.search(sentence.plain), _DIFFERENT.search(sentence.plain)
    signs: set[bool] = set()
    for test, negated in one.list_tests(_EQUALITIES):
        values = [term.value for term in test.walk() if isinstance(term, Constant)]
        positive = (test.sign != "!=") != negated
        if any(str(value).casefold() in words or numbers.intersection(_to_numbers(value)) for value in values):
            signs.add(positive)
        elif not values and (same or different):
            signs.add(positive if same else not positive)
    return signs


def _has_positive_name(one: _Statement) -> bool:
    return re.search(r"(?:^|_)(?:no|not|never|without)_", one.name) is None


def _compare_sides(one: _Statement, left: str, sign: str, right: str) -> bool | None:
    """Return whether a comparison in words agrees with those of a fact; None if a side is not the fact's."""
    before, after = (frozenset(_find_stems(text)).union(*_find_numbers(text)) for text in (left, right))
    number = re.match(rf"\W*(?:the |an? |to |of )?({_NUMBER}(?: (?!percent)\w+)?)\b(?! ?%| percent)", right)
    if number:  # "fewer than 3 returns": what is counted is behind the number
        after = frozenset[str]().union(*_find_numbers(number[1]))
        before |= frozenset(_find_stems(number[1] + right[number.end() :])) - after
    agree: set[bool | None] = set()
    for test, negated in one.orders:
        first, second = one.find_tokens(test.left), one.find_tokens(test.right)
        first, second = first - second, second - first
        straight = _count_shared((before, first), (after, second))
        turned = _count_shared((before, second), (after, first))
        agrees = (sign == test.sign[0]) == (straight > turned)
        agree.add(None if straight == turned or sign == "?" else agrees != negated)
    return agree.pop() if len(agree) == 1 else None


def _count_shared(*sides: tuple[frozenset[str], frozenset[str]]) -> int:
    """Return how many words the sides of two comparisons share; 0 if one side shares none."""
    counts = [sum(_match_word(word, dict.fromkeys(said, 1.0)) > 0 for word in known) for said, known in sides]
    return sum(counts) if all(count or not known for count, (_, known) in zip(counts, sides, strict=True)) else 0


def _find_doubt(one: _Statement, sentence: _SentenceWords, positive: bool) -> str:
    """Return what is doubtful: whether the boundary itself is allowed."""
    inclusive = (_INCLUSIVE.search(sentence.plain) is not None) != sentence.negative
    signs = {(test.sign in ("<=", ">=")) == positive for test, negated in one.orders if not negated}
    if sentence.find_comparison() is None or not signs or inclusive in signs:
        return ""
    return f"the sentence {'includes' if inclusive else 'excludes'} the boundary, {one.name} does the opposite"
