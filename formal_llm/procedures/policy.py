"""Reader of the usual text of a policy: from "ALL of these conditions must be met: ..." to the needs of tools.

The groups are read by rules: headings, bullets, numbers, indentation, parentheses. Each sentence is compared with the
facts that a procedure declares, by their words, and becomes the fact that it states. What is not clear stays a
:class:`~formal_llm.procedures.Hole`: another fact that fits almost as well, a number or a quoted text that the fact
does not mention, a condition or a second clause in the sentence, a "not" whose meaning is not clear.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from functools import cached_property

from formal_llm.errors import InputError
from formal_llm.guard.rules.expressions import BinaryOperation, Constant, Expression, FieldPath
from formal_llm.llms.builtin import content_words, stem
from formal_llm.llms.llm import LLMLike, answered, resolve
from formal_llm.llms.question import Question
from formal_llm.procedures.procedure import (
    NO_NEED,
    ConditionNeed,
    FactNeed,
    Grouping,
    Hole,
    Need,
    NeedGroup,
    NotNeed,
    Procedure,
    ProcedureTool,
    walk_need,
    walk_terms,
)  # fmt: skip
from formal_llm.procedures.terms import CallValue

#: How much better than the second the best fact has to fit, and which share of its name the sentence has to mention.
MARGIN, LEAST = 1.1, 0.65

# -- groups ------------------------------------------------------------------------------------------------------------

_MARK = re.compile(r"(?:[-*–—•◦‣]|\(?(?:\d+|[a-zA-Z]|[ivx]+)[.)])\s+")
_TITLE = re.compile(r"[#*\s]*[`*]*(?P<name>[A-Za-z][\w ]*?)[`*]*:?[`*]*(?:\s+|(?<=:))(?P<rest>.*)$")
#: The words of a heading that only says how its parts count; the first pattern that fits decides.
_GROUPS: Sequence[tuple[str, Grouping]] = (
    (r"\b(order|sequence)\b", "in order"), (r"\b(none|neither)\b", "none of"), (r"\bfirst\b", "first of"),
    (r"\b(any|one|either)\b", "any of"), (r"\b(all|each|every|both|following)\b", "all of"),
)  # fmt: skip
_HEADING = frozenset(
    "all any one of these the following condition conditions requirement requirements criterion criteria step steps check"
    " checks must may need needs to have has should shall be is are met satisfied fulfilled hold holds true apply applies"
    " completed done made taken passed in this that order sequence listed below given each every both either at least"
    " none neither first can determined decides which required before you can it and".split()
)
_CONNECTIVES: Mapping[str, Grouping] = {"and": "all of", "or": "any of", "then": "in order", "and then": "in order"}


@dataclass
class _Item:
    """A line of a policy with those below it; ``text`` is empty for a pair of parentheses."""

    level: int
    text: str
    children: list[_Item] = field(default_factory=list)

    def join_texts(self) -> str:
        """Return the text with that of the items below."""
        return " ".join(filter(None, (self.text, *(child.join_texts() for child in self.children))))

    @property
    def is_heading(self) -> bool:
        return not self.text or self.text.endswith(":") or find_grouping(self.text) is not None


def find_grouping(heading: str) -> Grouping | None:
    """Return how the parts below a heading count; None if it says anything else as well."""
    words = re.findall(r"\w+", heading.casefold())
    if not {"of", "following", "these", "order", "sequence"} & {*words} or not _HEADING.issuperset(words):
        return None
    return next((grouping for pattern, grouping in _GROUPS if re.search(pattern, heading.casefold())), None)


def _read_items(text: str) -> list[_Item]:
    top: list[_Item] = []
    above: list[_Item] = []
    depth, blank = 0, True
    for line in text.expandtabs(4).splitlines():
        bare = line.strip()
        marked = _MARK.match(bare)
        level = 1000 * depth + 2 * (len(line) - len(line.lstrip())) + bool(marked)
        words = bare[marked.end() :] if marked else bare
        if bare == ")":
            depth -= 1
        elif bare and above and above[-1].text and not (marked or blank or bare == "(" or _is_connective(bare)) and (
            not re.search(r"[.:;!?)\"']$", above[-1].text) or (level > above[-1].level and not above[-1].is_heading)
        ):  # fmt: skip
            above[-1].text += f" {bare}"
        elif bare:
            while above and above[-1].level >= level:
                above.pop()
            item = _Item(level, "" if bare == "(" else words)
            (above[-1].children if above else top).append(item)
            above.append(item)
            depth += bare == "("
        blank = not bare
    return top


def _is_connective(text: str) -> bool:
    return text.casefold().strip(" ,.") in _CONNECTIVES


# -- facts -------------------------------------------------------------------------------------------------------------

_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}
#: A number in digits or as a word; "one" is a number only before a unit.
_NUMBER = rf"(?:\d[\d,]*(?:\.\d+)?|\b(?!one (?!{'|'.join(_SECONDS)}))(?:{'|'.join(_NUMBER_WORDS)})\b)"
_QUOTED = re.compile(r"[\"“`]([^\"“”`]+)[\"”`]|(?<!\w)['‘]([^'’]+)['’](?!\w)|\b([a-z]+(?:_[a-z]+)+)\b")
_NEGATIVE = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|neither|nor|without|lacks?|lacking|fails?|cannot)\b|n['’]t\b"
)
#: Words that compare, with the sign that they state; the right side is what follows.
_COMPARING: Sequence[tuple[str, str]] = (
    (rf"(?={_NUMBER}(?: \w+)? or (?:more|higher|greater|above|later|older|over)\b)", ">"),
    (rf"(?={_NUMBER}(?: \w+)? or (?:less|lower|fewer|below|earlier|under)\b)", "<"),
    (r"\b(?:more|greater|higher|larger|older|longer|later)\b[^.,;]{0,30}? than\b|\bexceeds?\b|\bat least\b"
     r"|\bminimum of\b|\babove\b", ">"),
    (r"\b(?:less|lower|fewer|smaller|younger|shorter|earlier|newer)\b[^.,;]{0,30}? than\b|\bat most\b|\bup to\b"
     r"|\bmaximum of\b|\bbelow\b", "<"),
)  # fmt: skip
#: These compare only if the fact does.
_WEAKLY: Sequence[tuple[str, str]] = ((r"\b(?:after|beyond|outside|over)\b", ">"), (r"\b(?:before|within|under)\b", "<"))
_CONDITIONAL = re.compile(r"\b(?:if|unless|except|otherwise|either|depending)\b")
_SECOND_CLAUSE = re.compile(
    r"\b(?:and|or|but) (?=(?:the|an?|their|its|his|her|it|they|he|she|you|no|all|every|each|there)\b"
    r"[^.]*\b(?:is|are|was|were|has|have|had|must|may|can|does|do|did|be)\b)"
)
#: A sentence behind the first that requires something, too.
_REQUIRING = re.compile(r"\b(?:must|shall|should|may|can|cannot|needs?|ha[sv]e? to|only|required)\b|\bnot enough\b")
#: A clause that narrows what is before it.
_NARROWING = re.compile(r"\b(?:that|which|who|whose|whom|where|by|during|until|since|while)\b ([^,.;)]*)")
#: Stems in the names of facts that a comparison in a sentence states.
_COMPARATIVES = frozenset(map(stem, "minimum minimal min maximum maximal max limit enough sufficient few many".split()))
_PREFIXES = ("un", "in", "im", "ir", "il", "non", "dis")
_TESTS = ("==", "!=", "contains", "in")


@dataclass(frozen=True)
class _Statement:
    """A fact, or a check that answers yes or no: what a sentence may state.

    Attributes:
        name: its name.
        parameters: the names of the values that it is about.
        description: what it means, in words.
        tests: the conditions in it, each with whether it is negated.
        is_fact: whether it is a fact.
        action: the action that establishes it, if one does.
        source: what the tools that it looks at do, in words.
        constants: the constants of the procedure.
    """

    name: str
    parameters: tuple[str, ...]
    description: str
    tests: tuple[tuple[BinaryOperation, bool], ...]
    body: tuple[Expression, ...]
    is_fact: bool
    constants: Mapping[str, object]
    action: str = ""
    source: str = ""

    @cached_property
    def name_words(self) -> frozenset[str]:
        """The stems of the words of its name."""
        return frozenset(_find_stems(self.name)) - {"check", "intern", "not", "no", "call"}

    @cached_property
    def words(self) -> Mapping[str, float]:
        """The stems of the words that it may be stated with, each with its weight."""
        return {
            **dict.fromkeys(_find_stems(self.source), 0.3),
            **dict.fromkeys(_find_stems(" ".join(self.names | self.texts)), 0.5),
            **dict.fromkeys(_find_stems(f"{self.description} {self.action}"), 0.8), **dict.fromkeys(self.name_words, 1.0),
        }  # fmt: skip

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of values, fields, tools and constants in it."""
        return frozenset({*self.parameters, *(name for one in self.body for name in _list_names(one))})

    @cached_property
    def texts(self) -> frozenset[str]:
        """The texts that it compares with, in lower case."""
        return frozenset(str(one.value).casefold() for one in self.body if isinstance(one, Constant))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers that it compares with, and its constants; a duration with its unit."""
        return frozenset(n for test, _ in self.tests for side in test.parts for n in self.list_numbers(side))

    def list_numbers(self, side: Expression) -> Iterator[str]:
        """Yield the numbers that one side of a comparison may be called by: a constant, or one that it is made of."""
        if isinstance(side, Constant):
            yield from _to_numbers(side.value)
        for one in side.walk():
            if isinstance(one, FieldPath) and one.steps[0] in self.constants:
                yield from _to_numbers(self.constants[str(one.steps[0])])

    @property
    def orders(self) -> list[tuple[BinaryOperation, bool]]:
        """Its comparisons by size."""
        return [(test, negated) for test, negated in self.tests if test.sign not in _TESTS]

    def find_tokens(self, side: Expression) -> frozenset[str]:
        """Return the stems and numbers that one side of a comparison may be called by."""
        names = [name for one in side.walk() for name in _list_names(one)]
        return frozenset(_find_stems(" ".join(names))).union(self.list_numbers(side))

    def make_need(self, names: Sequence[str], positive: bool) -> Need:
        """Make the need, about the values that a sentence names."""
        others = [name for name in names if name not in self.names]
        given = []
        for one in self.parameters:
            other = next((name for name in others if {*one.split("_")} & {*name.split("_")}), one)
            given.append(FieldPath((one if one in names else other,)))
        need: Need = (
            FactNeed(self.name, tuple(given)) if self.is_fact else ConditionNeed(CallValue(self.name, tuple(given)))
        )
        return need if positive else NotNeed(need)


def _find_stems(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in content_words(text) if not word.isdigit())


def _list_names(one: Expression) -> tuple[str, ...]:
    if isinstance(one, FieldPath):
        return tuple(str(step) for step in one.steps if isinstance(step, str))
    return (one.tool, *(step for step in one.steps if isinstance(step, str))) if isinstance(one, CallValue) else ()


def _to_numbers(value: object) -> tuple[str, ...]:
    if isinstance(value, timedelta):
        return tuple(f"{value.total_seconds() / seconds:g} {unit}" for unit, seconds in _SECONDS.items())
    return (f"{float(value):g}",) if isinstance(value, int | float | Fraction) and not isinstance(value, bool) else ()


def _find_numbers(text: str) -> list[frozenset[str]]:
    """Return the numbers in a text, each without and with its unit; not those that are part of a name: "ISO 8601"."""
    found = []
    for one, unit in re.findall(rf"(?<![A-Z] )(?<![\w.])({_NUMBER})(?: ({'|'.join(_SECONDS)})s?\b)?", text):
        number = _NUMBER_WORDS.index(one) if one.isalpha() else float(one.replace(",", ""))
        found.append(frozenset({f"{number:g}", f"{number:g} {unit}"}))
    return found


def _list_tests(procedure: Procedure, need: Need, negated: bool, seen: frozenset[str]) -> Iterator[tuple[Expression, bool]]:
    """Yield the conditions in a need and in the facts that it names, each with whether it is negated."""
    match need:
        case ConditionNeed(condition):
            yield condition, negated
        case FactNeed(fact, _):
            if fact not in seen:
                yield from _list_tests(procedure, procedure.facts[fact].body, negated, seen | {fact})
        case _:
            turned = negated ^ (isinstance(need, NotNeed) or getattr(need, "grouping", "") == "none of")
            for part in need.parts:
                yield from _list_tests(procedure, part, turned, seen)


def _list_statements(procedure: Procedure) -> list[_Statement]:
    """Return all facts, and the checks that answer yes or no and that no fact names."""
    statements: list[_Statement] = []
    used: set[str] = set()
    for fact in procedure.facts.values():
        conditions = [*_list_tests(procedure, fact.body, False, frozenset({fact.name}))]
        body = tuple(term for condition, _ in conditions for term in condition.walk())
        tests = tuple(
            (term, negated) for condition, negated in conditions for term in condition.walk()
            if isinstance(term, BinaryOperation) and term.sign in (*_TESTS, "<", "<=", ">", ">=")
        )  # fmt: skip
        called = {term.tool for term in body if isinstance(term, CallValue)}
        used |= called
        action = procedure.find_action(fact)
        statements.append(_Statement(
            fact.name, fact.parameters, fact.description, tests, body, True, procedure.constants,
            action.tool if action else "", " ".join(procedure.tools[one].description for one in sorted(called)),
        ))  # fmt: skip
    for tool in procedure.tools.values():
        if not tool.acts and tool.name not in used and tool.description.casefold().startswith("whether"):
            names = tuple(parameter.name for parameter in tool.parameters)
            statements.append(_Statement(tool.name, names, tool.description, (), (), False, procedure.constants))
    return statements


# -- sentences ---------------------------------------------------------------------------------------------------------


class _SentenceReader:
    """Finds the facts that sentences state."""

    def __init__(self, procedure: Procedure) -> None:
        self.statements = _list_statements(procedure)
        counts = Counter(
            word for one in self.statements for word in (*one.words, *one.numbers, *["<"] * bool(one.orders))
        )
        self.rarity = {word: math.log(1 + len(self.statements) / count) for word, count in counts.items()}
        #: The names of values; a field may be called like one.
        self.values = procedure.names
        self.names = frozenset(name for one in self.statements for name in one.names) | self.values

    def read_sentence(self, text: str, tool: ProcedureTool) -> Need:
        """Return the need that a sentence states; a hole if that is not clear. Others behind it may explain it."""
        first, *rest = re.split(r"(?<=[.!?])[*\"']*\s+(?=[A-Z\"'])", text)
        plain = first.casefold()
        if _CONDITIONAL.search(plain) or _SECOND_CLAUSE.search(plain) or find_grouping(first.partition(":")[0]):
            return Hole(text)
        ranked = self.rank_statements(text, tool)
        if not ranked or (len(ranked) > 1 and ranked[0][0] < MARGIN * ranked[1][0]):
            return Hole(text)
        best, positive = ranked[0][1], _find_polarity(ranked[0][1], first)
        if positive is None or not all(
            self._rate(best, _weigh_words(one), one) and _find_polarity(best, one) == positive
            for one in rest if _REQUIRING.search(one.casefold())
        ):  # fmt: skip
            return Hole(text)
        return best.make_need(self.find_names(text), positive)

    def find_names(self, text: str) -> list[str]:
        """Return the names of values that a text quotes, in order."""
        return list(dict.fromkeys(name for name in _list_quotes(text) if name in self.values))

    def rank_statements(self, text: str, tool: ProcedureTool) -> list[tuple[float, _Statement]]:
        """Return what a sentence may state, with how well it fits, the best first."""
        words = _weigh_words(text)
        fits = [(self._rate(one, words, text), one) for one in self.statements if self._may_state(one, text, words, tool)]
        return sorted(((rate, one) for rate, one in fits if rate > 0), key=lambda pair: -pair[0])

    def _may_state(self, one: _Statement, text: str, words: Mapping[str, float], tool: ProcedureTool) -> bool:
        quotes = _list_quotes(text)
        known = [name for name in quotes if name in self.names]
        given = [str(value) for value in _find_given(one.make_need(self.find_names(text), True))]
        if not all(name in one.names or name in given for name in known):
            return False
        if not all(name in known or _is_meant(name, words, tool) for name in given):
            return False
        texts = [quote for quote in quotes if quote not in self.names]
        if not all(quote.casefold() in one.texts or one.words.keys() >= {*_find_stems(quote)} for quote in texts):
            return False
        if not all(number & one.numbers for number in _find_numbers(text)):
            return False
        for clause in _NARROWING.findall(text.partition(". ")[0].casefold()):
            named = {**one.words, **dict.fromkeys(_find_stems(" ".join(parameter.name for parameter in tool.parameters)), 1)}
            if not any(_match_word(word, named) for word in _find_stems(clause)):
                return False
        return _find_polarity(one, text.partition(". ")[0]) is not None or not _find_comparison(text, False)

    def _rate(self, one: _Statement, words: Mapping[str, float], text: str) -> float:
        worth = {word: weight * self.rarity[word] for word, weight in one.words.items()}
        compares = bool(one.orders and _find_comparison(text, False))
        found = sum(value * _match_word(word, words) for word, value in worth.items()) + compares * self.rarity["<"]
        found += sum(self.rarity[token] for number in _find_numbers(text) for token in number & one.numbers)
        known = {word for word, weight in words.items() if weight == 1 and _match_word(word, self.rarity)}
        covered = sum(self.rarity.get(word, 1) for word in known if _match_word(word, one.words))
        covered /= sum(self.rarity.get(word, 1) for word in known) or 1
        if not self._is_named(one, words, text) or found * covered < LEAST * sum(
            self.rarity[word] for word in one.name_words if not (compares and word in _COMPARATIVES)
        ):  # fmt: skip
            return 0
        return found / math.sqrt(sum(value**2 for value in worth.values()))


    def _is_named(self, one: _Statement, words: Mapping[str, float], text: str) -> bool:
        """Return whether a text names a statement: a word of its name, most of its description, or what it compares."""
        named = [word for word in one.name_words.union(_find_stems(one.action)) if _match_word(word, words)]
        if not one.orders or _find_comparison(text, True):
            described = {*_find_stems(one.description)}
            found = sum(self.rarity[word] for word in described if _match_word(word, words))
            numbers = any(number & one.numbers for number in _find_numbers(text))
            return bool(named or (numbers and one.orders)) or found > 0.75 * sum(self.rarity[word] for word in described) > 0
        return len(named) == len(one.name_words.union(_find_stems(one.action)))


def _is_meant(name: str, words: Mapping[str, float], tool: ProcedureTool) -> bool:
    """Return whether a value that is not quoted is meant: words name it, or it is the only such value of the tool."""
    stems = {*_find_stems(name)}
    found = [_match_word(word, words) > 0 for word in stems]
    owned = [parameter.name for parameter in tool.parameters]
    if name not in owned:
        return all(found)
    return any(found) or not any(stems & {*_find_stems(other)} for other in owned if other != name)


def _weigh_words(text: str) -> Mapping[str, float]:
    """Return the stems of a text without words that compare; those that are only behind its first sentence count half."""
    first, _, rest = text.partition(". ")
    for pattern, _ in _COMPARING:
        first = re.sub(pattern, lambda found: re.sub(r"^\w+|\w+$", "", found[0]), first)
    return {**dict.fromkeys(_find_stems(rest), 0.5), **dict.fromkeys(_find_stems(first), 1.0)}


def _match_word(word: str, words: Mapping[str, float]) -> float:
    """Return the weight of a word among others that are the same or nearly the same, 0 if there is none."""
    if word in words:
        return words[word]
    return max((0.8 * weight for other, weight in words.items() if _are_alike(word, other)), default=0.0)


def _are_alike(one: str, other: str) -> bool:
    same = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return same >= 4 and (same == min(len(one), len(other)) or same >= 0.7 * max(len(one), len(other)))


def _list_quotes(text: str) -> list[str]:
    return ["".join(found) for found in _QUOTED.findall(text)]


def _find_given(need: Need) -> tuple[Expression, ...]:
    return need.given if isinstance(need, FactNeed) else need.condition.given  # type: ignore[union-attr]


def _is_negative(text: str) -> bool | None:
    """Return whether a sentence says "not"; None if it says so twice."""
    once = re.sub(r"\b(\w+ not) (?:and|or) \w+ not\b", r"\1", text.casefold().replace("*", ""))
    found = len(_NEGATIVE.findall(once))
    return None if found > 1 else bool(found)


def _find_polarity(one: _Statement, sentence: str) -> bool | None:
    """Return whether a sentence states a fact or its opposite; None if that is not clear."""
    negative = _is_negative(sentence)
    if negative is None:
        return None
    compared = _find_comparison(sentence, bool(one.orders))
    if compared is not None:
        agrees = _compare_sides(one, *compared)
        return None if agrees is None else agrees != negative
    words = {*re.findall(r"\w+", sentence.casefold())}
    numbers = frozenset[str]().union(*_find_numbers(sentence))
    signs = {
        (test.sign != "!=") != negated
        for test, negated in one.tests if test.sign in _TESTS
        for term in test.walk() if isinstance(term, Constant)
        and (str(term.value).casefold() in words or numbers.intersection(_to_numbers(term.value)))
    }  # fmt: skip
    if signs:
        return None if len(signs) > 1 else signs.pop() != negative
    said = {*_find_stems(sentence)} - one.name_words
    if any(word == prefix + other for prefix in _PREFIXES for one_side, far in ((said, one.name_words),
            (one.name_words, said)) for word in one_side for other in far):
        return None
    return bool(re.search(r"(?:^|_)(?:no|not|never|without)_", one.name)) == negative


def _find_comparison(sentence: str, weakly: bool) -> tuple[str, str, str] | None:
    """Return what a sentence compares: its left side, the sign, and its right side."""
    plain = sentence.casefold()
    for patterns in (_COMPARING, _WEAKLY if weakly else ()):
        found = [(match, sign) for pattern, sign in patterns for match in re.finditer(pattern, plain)]
        if found:
            signs = {sign for _, sign in found}
            match = found[0][0]
            inside = re.sub(r"^\w+|\w+$", "", match[0])
            return plain[: match.start()] + inside, signs.pop() if len(signs) == 1 else "?", plain[match.end() :]
    return None


def _compare_sides(one: _Statement, left: str, sign: str, right: str) -> bool | None:
    """Return whether a comparison in words agrees with those of a fact; None if a side is not the fact's."""
    before, after = (frozenset(_find_stems(text)).union(*_find_numbers(text)) for text in (left, right))
    number = re.match(rf"\W*(?:the |an? |to |of )?({_NUMBER}(?: (?!percent)\w+)?)\b(?! ?%| percent)", right)
    if number:  # "fewer than 3 returns": what is counted stands behind the number
        after = frozenset().union(*_find_numbers(number[1]))
        before |= {*_find_stems(right[number.end(1) :])} | {*_find_stems(number[1])} - after
    agree: set[bool | None] = set()
    for test, negated in one.orders:
        first, second = one.find_tokens(test.left), one.find_tokens(test.right)
        first, second = first - second, second - first
        straight = _count_shared((before, first), (after, second))
        turned = _count_shared((before, second), (after, first))
        agree.add(None if straight == turned or sign == "?" else (sign == test.sign[0]) == (straight > turned) != negated)
    return agree.pop() if len(agree) == 1 else None


def _count_shared(*sides: tuple[frozenset[str], frozenset[str]]) -> int:
    """Return how many words the sides of two comparisons share; 0 if one side shares none."""
    counts = [sum(_match_word(word, dict.fromkeys(said, 1.0)) > 0 for word in known) for said, known in sides]
    return sum(counts) if all(count or not known for count, (_, known) in zip(counts, sides, strict=True)) else 0


# -- policies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PolicySentence:
    """A sentence of a policy as it was read.

    Attributes:
        tool: the tool before whose call it has to hold.
        text: the sentence.
        need: what was read; a hole if it was not understood.
        by_model: whether a model chose the fact.
    """

    tool: str
    text: str
    need: Need
    by_model: bool = False


@dataclass(frozen=True)
class PolicyReading:
    """What was read in a policy.

    Attributes:
        procedure: the procedure with the needs that were read.
        sentences: the sentences, in order.
        unread: the lines before the first tool, which say what holds for none.
    """

    procedure: Procedure
    sentences: tuple[PolicySentence, ...]
    unread: tuple[str, ...] = ()

    @property
    def needs(self) -> Mapping[str, Need]:
        """The needs that were read, by tool."""
        return {one.tool: self.procedure.tools[one.tool].need for one in self.sentences}


def read_policy(
    procedure: Procedure, text: str, llm: LLMLike | None = None, *, tool: str | None = None
) -> PolicyReading:
    """Read the needs of tools from the usual text of a policy.

    Args:
        procedure: declares tools and facts. What it needs before the tools of the policy is replaced.
        text: the policy: the name of a tool and a colon, and below it what must hold before its call.
        llm: chooses the facts of sentences that were not understood by rules.
        tool: the tool that a text without names is about; by default the only goal.

    Raises:
        InputError: the text names no tool, and there are several goals.
        LLMError: the model could not be asked.
    """
    sections, unread = _find_sections(procedure, text)
    if not sections:
        names = [one.name for one in procedure.goals] if tool is None else [tool]
        if len(names) != 1 or names[0] not in procedure.tools:
            raise InputError(
                "the policy names no tool: write the name of a tool and a colon above its conditions; "
                f"there are: {', '.join(procedure.tools)}"
            )
        sections, unread = {names[0]: text}, []
    reader = _PolicyReader(procedure, llm)
    tools = {name: replace(procedure.tools[name], need=reader.read_section(name, part)) for name, part in sections.items()}
    return PolicyReading(
        replace(procedure, tools={**procedure.tools, **tools}), tuple(reader.sentences), tuple(unread)
    )  # fmt: skip


def _find_sections(procedure: Procedure, text: str) -> tuple[dict[str, str], list[str]]:
    """Return the parts of a policy by tool, and the lines before the first."""
    known = {re.sub(r"\W|_", "", name.casefold()): name for name in procedure.tools}
    sections: dict[str, str] = {}
    before: list[str] = []
    name = ""
    for line in text.splitlines():
        found = re.match(r"\s*(?:[#*•-]+\s*)?[`*]*([A-Za-z][\w ]*?)[`*]*(?:\s*:[`*]*\s*(.*)|\s*)$", line)
        title = known.get(re.sub(r"\W|_", "", found[1].casefold())) if found else None
        if found and title is not None:
            name, line = title, found[2] or ""
            sections.setdefault(name, "")
        elif line.startswith("#"):
            name = ""
        if name:
            sections[name] += line + "\n"
        elif line.strip():
            before.append(line.strip())
    return sections, before


class _PolicyReader:
    """Reads the sections of a policy."""

    def __init__(self, procedure: Procedure, llm: LLMLike | None) -> None:
        self.procedure = procedure
        self.reader = _SentenceReader(procedure)
        self.model = resolve(llm) if llm is not None else None
        self.sentences: list[PolicySentence] = []

    def read_section(self, name: str, text: str) -> Need:
        """Return the need of a tool."""
        items = _read_items(text)
        if not items or (len(items) == 1 and items[0].text.casefold().strip(". ") in ("none", "nothing")):
            return NO_NEED
        tool = self.procedure.tools[name]
        return self._read_group(None, items, tool) if len(items) > 1 else self._read_item(items[0], tool)

    def _read_item(self, item: _Item, tool: ProcedureTool) -> Need:
        if not item.children:
            return self._read_leaf(item.text, tool)
        grouping = find_grouping(item.text) if item.text else None
        if item.text and grouping is None:
            return self._add_hole(item.join_texts(), tool)
        return self._read_group(grouping, item.children, tool)

    def _read_group(self, grouping: Grouping | None, items: Sequence[_Item], tool: ProcedureTool) -> Need:
        """Read items as a group; one hole if words between them contradict, or parts may belong to a heading among them."""
        joined = {_CONNECTIVES[one.text.casefold().strip(" ,.")] for one in items if _is_connective(one.text)}
        parts = [one for one in items if not _is_connective(one.text)]
        if len(joined) > 1 or (grouping and joined - {grouping}) or any(
            one.is_heading and not one.children for one in parts
        ):  # fmt: skip
            return self._add_hole(" ".join(one.join_texts() for one in items), tool)
        needs = tuple(self._read_item(one, tool) for one in parts)
        return NeedGroup(grouping or (joined.pop() if joined else "all of"), needs)

    def _read_leaf(self, text: str, tool: ProcedureTool) -> Need:
        need, by_model = self.reader.read_sentence(text, tool), False
        if isinstance(need, Hole) and self.model is not None:
            need = self.reader.ask_model(self.model, text, tool)
            by_model = not isinstance(need, Hole)
        self.sentences.append(PolicySentence(tool.name, text, need, by_model))
        return need

    def _add_hole(self, text: str, tool: ProcedureTool) -> Hole:
        hole = Hole(text)
        self.sentences.append(PolicySentence(tool.name, text, hole))
        return hole
