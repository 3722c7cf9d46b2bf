"""Rules in controlled English, read without a model.

Each sentence matches one of the patterns of :mod:`formal_llm.authoring.patterns`, or describes part of a procedure
(:mod:`formal_llm.authoring.english`). Each concerns the steps that it names, and all apply together: the plans are
the sequences of steps that every sentence allows. A sentence that is not understood is never ignored silently.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple
from warnings import catch_warnings

from formal_llm.authored.files import lines_of
from formal_llm.authoring.clauses import steps_in
from formal_llm.authoring.events import EventReader
from formal_llm.authoring.everyday import read_everyday
from formal_llm.authoring.meanings import any_order, bound_count, match_other, require_step
from formal_llm.authoring.names import (
    QUOTED,
    RESERVED,
    NoName,
    RefusedSentence,
    Unclear,
    find_similar,
    question_of,
    spelled_alike,
)
from formal_llm.authoring.patterns import PATTERNS, PROCEDURES, Found, Misread, Pattern
from formal_llm.authoring.rules import SentenceRule
from formal_llm.authoring.simplifying import other_words
from formal_llm.authoring.word_forms import spelling_key
from formal_llm.automata import Behaviour, Limits, Lookahead
from formal_llm.automata.models.formula import (
    EMPTY,
    EVERYTHING,
    Atom,
    Formula,
    Until,
    and_,
    implies,
    next_,
    or_,
    quote_name,
    until,
)
from formal_llm.automata.models.symbols import quote_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import AutomatonError, NotationError, NotUnderstood, did_you_mean

#: The beginning of a sentence of a procedure.
_OPENING = re.compile(
    r"(?:first of all|first|then|next|finally|lastly|at last|afterwards|after that|in the end|now"
    r"|at the(?: very)? end(?! of)),? (?P<rest>.+)"
)
#: The same with the words at the end: "Wash your hands first".
_PLACED = re.compile(r"(?:always )?(?P<rest>.+?),? (?:first(?: of all)?|at the(?: very)? end)")
_TELLS = re.compile(r"^(?:optionally|repeat|either|if)\b|\bthen\b|\bfollowed by\b|\buntil\b|\botherwise\b")
_THEN = re.compile(r",?\s+(?:then|followed by|after that|afterwards|finally),?\s+")
_ASKED = re.compile(r"if (?P<asked>.+?)(?:,(?: then)?| then) (?P<yes>.+?)(?:[,;]? otherwise,? (?P<no>.+))?")
_NUMBER = r"(\d{1,4})"
#: How often a step is performed: the words after it, and the least and the most number of times.
_OFTEN: tuple[tuple[re.Pattern[str], Callable[[list[int]], tuple[int, int | None]]], ...] = (
    (re.compile(rf"(.+) (?:exactly )?{_NUMBER} times"), lambda n: (n[0], n[0])),
    (re.compile(rf"(.+) at most {_NUMBER} times"), lambda n: (0, n[0])),
    (re.compile(rf"(.+) at least {_NUMBER} times"), lambda n: (n[0], None)),
    (re.compile(rf"(.+?) (?:between )?{_NUMBER} (?:to|and|or|-) {_NUMBER} times"), lambda n: (n[0], n[1])),
    (re.compile(r"(.+) freely"), lambda _: (0, None)),
)
#: The maximum number of steps that may be in any order, since all orders are written out.
_MOST_ORDERS = 5


class Ambiguous(ValueError):
    """Raised for a sentence with two possible meanings; the message has both, and what to write instead."""


def read_procedure(sentence: str, listed: bool = False) -> Formula | None:
    """Read the steps that a sentence describes; return None if it does not describe a procedure.

    Args:
        sentence: the sentence, normalized by :func:`~formal_llm.authoring.english.normalize_text`.
        listed: whether it is an item of a numbered list, which is a step without any other indication.

    Raises:
        NoName: a part is not the name of a step.
        Ambiguous: the sentence has two possible meanings.
    """
    opened = _OPENING.fullmatch(sentence) or _PLACED.fullmatch(sentence)
    if not (opened or listed or _TELLS.search(sentence)):
        return None
    return _read_sequence(opened["rest"] if opened else sentence)


def weave_steps(procedure: Formula, free: Formula | None, last: bool = False) -> Formula:
    """Allow other steps between the steps of a procedure.

    Args:
        procedure: a formula of names, ``next``, ``or`` and ``until``.
        free: a formula for one other step; None if there is none.
        last: whether nothing may follow the procedure.
    """
    if free is None:
        return procedure

    def weave_part(part: Formula) -> Formula:
        if isinstance(part, Atom):
            return until(free, part)
        return replace(part, parts=tuple(map(weave_part, part.parts))) if isinstance(part, Until) else type(part)(
            tuple(map(weave_part, part.parts))
        )  # fmt: skip

    return weave_part(procedure) if last else next_(weave_part(procedure), until(free, EMPTY))


def rename_steps(procedure: Formula, names: Callable[[str], str]) -> Formula:
    """Return a procedure with other names for its steps."""
    if isinstance(procedure, Atom):
        return Atom(name=names(procedure.name))
    parts = tuple(rename_steps(part, names) for part in procedure.parts)
    return replace(procedure, parts=parts) if isinstance(procedure, Until) else type(procedure)(parts)


def _read_sequence(text: str) -> Formula:
    text = text.strip(" ,")
    if text.startswith("if "):
        return _read_decision(text)
    first = _THEN.search(text)
    if first is None:
        return _read_list(text)
    return next_(_read_list(text[: first.start()]), _read_sequence(text[first.end() :]))


def _read_decision(text: str) -> Formula:
    found = _ASKED.fullmatch(text)
    if found is None:
        raise NoName(text)
    name = question_of(found["asked"])
    if found["no"] is None:
        if _THEN.search(found["yes"]):
            raise Ambiguous(
                "it is not clear what is done in any case; end the sentence before 'then', or write 'otherwise'"
            )
        return or_(next_(f"{name}=yes", _read_sequence(found["yes"])), f"{name}=no")
    if _THEN.search(found["no"]):
        raise Ambiguous(
            "it is not clear whether what comes after 'then' is done in any case; begin a new sentence there"
        )
    return or_(next_(f"{name}=yes", _read_sequence(found["yes"])), next_(f"{name}=no", _read_sequence(found["no"])))


def _read_list(text: str) -> Formula:
    """Read steps separated by commas, ``and`` and ``or``."""
    text = re.sub(r"^either ", "", text.strip(" ,"))
    repeated = re.fullmatch(r"(?:repeat )?(.+?),? until (.+)", text)
    if repeated is not None:
        return until(_read_list(repeated[1]), _read_list(repeated[2]), 1)
    orderly = re.fullmatch(r"(.+?),? in any order", text)
    text = orderly[1] if orderly else text
    joins = set(re.findall(r"(?<=[\s,])(and|or)(?=\s)", re.sub(rf"{_NUMBER} (?:and|or) {_NUMBER}", "", text)))
    if len(joins) > 1:
        raise Ambiguous("'and' and 'or' stand side by side; make two sentences of it")
    join = joins.pop() if joins else ""
    parts = re.split(r"\s*,\s*(?:and |or )?|\s+(?:and|or)\s+(?!\d)", text)
    if join == "and" and "times" not in text and "optionally" not in text and len(parts) > _MOST_ORDERS:
        raise Ambiguous(
            f"{len(parts)} steps in any order are too many here; write: A, B and C in any order, each exactly once"
        )
    steps = [_read_item(part) for part in parts]
    if join == "or":
        return or_(*steps)
    return any_order(steps) if join == "and" or orderly else next_(*steps)


def _read_item(text: str) -> Formula:
    text = text.strip(" ,")
    if text in ("nothing", "do nothing"):
        return EMPTY
    maybe = re.fullmatch(r"(?:optionally|maybe|perhaps|possibly) (.+)|(.+) (?:if needed|if necessary|if wanted)", text)
    if maybe is not None:
        return or_(_read_item(maybe[1] or maybe[2]), EMPTY)
    for pattern, bounds in _OFTEN:
        found = pattern.fullmatch(text)
        if found is not None:
            try:
                step = _read_item(found[1])
            except NoName:
                continue
            least, most = bounds([int(number) for number in found.groups()[1:]])
            if most is not None and least > most:
                raise Ambiguous(f"at least {least} and at most {most} times is impossible")
            return until(step, EMPTY, least, most)
    return Atom(name=EventReader().read(text).name)


_NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
#: A number or bullet before a line; numbered lines are the steps of a procedure.
_BULLET = re.compile(r"[ \t]*(?:\(?\d{1,3}[.)]|[-*•])[ \t]+")
#: "Otherwise" continues the sentence before it.
_ELSE = r"(?:otherwise|else|if not)\b"
#: A clause that cancels an order of steps continues the sentence before it, too.
_WHICHEVER = r"it (?:does not|doesn't) matter (?:which|who|what)\b|only (?:then|afterwards)\b"
_END = re.compile(
    rf"(?:[.!?]|;(?!\s+(?i:{_WHICHEVER})))(?=\s|$)(?!\s+(?i:{_ELSE}))"
    r"|\n[ \t]*\n|\n(?=[ \t]*(?:\(?\d{1,3}[.)]|[-*•])[ \t])"
)

_WORD = rf"(?!(?:{'|'.join(sorted(RESERVED))})\b)[\w'-]+"
#: A thing that later pronouns refer to.
_THING = re.compile(rf"\b(?:the|an?|no|your|any|every|each) ({_WORD}(?: {_WORD}){{0,2}})")
_PRONOUN = re.compile(r"\b(?:it|them)\b")


class Sentence(NamedTuple):
    """A sentence.

    Attributes:
        at: its start in the text.
        plain: the normalized text; only a part of it if it contains two sentences.
        listed: whether it is a numbered item of a list.
    """

    text: str
    at: int
    plain: str
    listed: bool


def split_sentences(text: str) -> Iterator[Sentence]:
    """Split a text into sentences: up to a full stop, a semicolon, an empty line, or the next item of a list."""
    hidden = QUOTED.sub(lambda found: re.sub(r"[.!;\n]", "_", found[0]), text)
    # Comments, and the number before an item, do not end a sentence.
    hidden = re.sub(r"(?m)^[ \t]*#.*$", lambda found: " " * len(found[0]), hidden)
    hidden = re.sub(r"(?m)^[ \t]*\(?\d{1,3}\.", lambda found: found[0][:-1] + ")", hidden)
    begin = 0
    ends = [(found.start(), found.end()) for found in _END.finditer(hidden)] + [(len(text), len(text))]
    for end, after in ends:
        piece = hidden[begin:end]
        bullet = _BULLET.match(piece.lstrip("\n"))
        skipped = len(piece) - len(piece.lstrip("\n")) + (bullet.end() if bullet else 0)
        at = begin + skipped + len(piece[skipped:]) - len(piece[skipped:].lstrip())
        written = text[at:end].strip()
        if written and hidden[at:end].strip():
            listed = bullet is not None and bullet[0].strip() not in "-*•"
            yield Sentence(written, at, normalize_text(written), listed)
        begin = after


def normalize_text(text: str) -> str:
    """Normalize a sentence: lower case, numbers as digits, and one word for several with the same meaning."""
    parts = re.split(f"({QUOTED.pattern.replace('(', '(?:')})", " ".join(text.split()).rstrip(".!?;"))
    return _replace_pronoun(
        "".join(part if number % 2 else _normalize_unquoted(part) for number, part in enumerate(parts)).strip()
    )


def _normalize_unquoted(text: str) -> str:
    text = re.sub(rf"[.;] (?={_ELSE})", ", ", text.lower().replace("’", "'"))
    for pattern, replacement in other_words("forms"):
        text = pattern.sub(replacement, text)
    for number, word in enumerate(_NUMBERS):
        text = re.sub(rf"\b{word} (?=times\b|steps\b|other steps\b)", f"{number} ", text)
        text = re.sub(rf"\b{word} (?=(?:to|or|and|-) (?:\d+|\w+) times\b)", f"{number} ", text)
    text = re.sub(r"\b(\d+) times (to|or|and|-) (?=\d+ times)", r"\1 \2 ", text)
    text = re.sub(r"\b1 time\b", "1 times", text)
    return re.sub(r" +", " ", text)


def _replace_pronoun(text: str) -> str:
    """Replace the pronoun of a sentence by its thing, if only one is named before it."""
    found = _PRONOUN.search(text)
    if found is None or text.startswith("if "):
        return text
    things = dict.fromkeys(thing[1] for thing in _THING.finditer(text[: found.start()]))
    return _PRONOUN.sub(f"the {next(iter(things))}", text) if len(things) == 1 else text


_NAMED = {pattern.name: pattern for pattern in PATTERNS}
#: The beginning of a sentence that continues a procedure.
_OPENS = re.compile(
    r"(?i)(?:first|then|next|finally|lastly|afterwards|after that|at last|at the (?:very )?end(?! of)|in the end|now)\b"
    r",?(?! step| thing)"
)
_AT_THE_END = re.compile(r"^(?:in|at) the(?: very)? end\b|\bat the(?: very)? end$")


@dataclass(frozen=True)
class Clause:
    """A sentence that was understood.

    Attributes:
        pattern: the name of its pattern; ``"procedure"``.
        asked: its requirements on plans: formulas and limits.
    """

    sentence: str
    pattern: str
    asked: tuple[Formula | Limits, ...]
    steps: tuple[str, ...]


@dataclass(frozen=True)
class EnglishRules:
    """Rules that were read from sentences.

    Attributes:
        clauses: the sentences, in order; those of a procedure are one clause.
        steps: the steps, in order of appearance.
        text: the rules as the text of an ``.agent`` file, each formula under its sentence.
        doubts: possible misreadings: two steps that may be the same.
    """

    clauses: tuple[Clause, ...]
    steps: tuple[str, ...]
    text: str
    behaviour: Behaviour
    doubts: tuple[str, ...] = ()


def read_english(text: str, *, name: str = "rules") -> EnglishRules:
    """Read the rules that sentences describe.

    Args:
        text: the sentences; numbers or bullets may precede them, and lines that begin with ``#`` are comments.
        name: the name of the rules.

    Raises:
        NotUnderstood: sentences match no pattern (each with the nearest one), or contradict themselves.
        NotationError: there is no sentence, or sentences contradict each other (the error specifies which).
        Undecided: the sentences require too large an automaton.
    """
    source = SourceText.from_text(text, None, NotationError)
    read = _check_places(
        [one for _, parts in groupby(split_sentences(text), lambda one: one.at) for one in _read_all(list(parts))]
    )
    if not read:
        source.fail_at("there is no sentence", None, suggestion="write a rule, such as: Wash before dry.")
    _raise_problems(source, read)
    rules = _Rules(source, [one for one in read if not one.problem])
    if not rules.steps:
        source.fail_at(
            "no sentence names a step", None, suggestion="name them, such as: The steps are wash, dry and iron."
        )
    clauses = rules.build_clauses()
    rules_text = _write_text(name, rules.steps, clauses, text)
    try:
        behaviour = _read_quietly(rules_text)
        empty = Lookahead(behaviour.pda).completable().value == "no"
    except NotationError as error:
        if "no sequence" not in error.problem:
            raise
        empty = True
    if empty:
        clash = _find_clash(name, rules.steps, clauses)
        source.fail_at(
            "no plan keeps all these sentences", None,
            suggestion="these cannot hold together: " + " | ".join(" ".join(one.sentence.split()) for one in clash),
        )  # fmt: skip
    pairs = [] if rules.declared else find_similar(rules.steps)
    doubts = [f"{one.rule.doubt}: {one.sentence.text}" for one in read if one.rule and one.rule.doubt]
    doubts += [f"{one} and {other} are two steps here; if one is meant, call both by one name" for one, other in pairs]
    return EnglishRules(clauses, rules.steps, rules_text, behaviour, tuple(doubts))


@dataclass(frozen=True)
class _ParsedSentence:
    """The reading of a sentence; ``problem`` is set if there is none."""

    sentence: Sentence
    pattern: Pattern | None = None
    found: Found | None = None
    procedure: Formula | None = None
    problem: str = ""
    rule: SentenceRule | None = None

    @property
    def fact(self) -> str:
        """The fact under which the sentence applies; empty if it always does."""
        return self.rule.given if self.rule else ""

    @property
    def names(self) -> list[str]:
        if self.procedure is not None:
            return list(self.procedure.names)
        steps = self.found.steps.values() if self.found else ()
        facts = [f"{self.fact}=yes", f"{self.fact}=no"] if self.fact else []
        return facts + [name for groups in steps for group in groups for name in group]


def _read_all(parts: Sequence[Sentence]) -> list[_ParsedSentence]:
    """Read one sentence, which may contain several rules; ``parts`` are the sentences that it consists of."""
    plain = [_read_sentence(one) for one in parts]
    first = parts[0]
    condition = re.match(r"(?i)if\b(?!.*\b(?:otherwise|else|if not)\b)", first.text)
    opens = _OPENS.match(first.text)
    if opens and first.text.lower().startswith("first") and any(one.problem for one in plain):
        opens = None
    if first.listed or opens or (not condition and any(one.procedure is not None for one in plain)):
        return plain
    try:
        rules = read_everyday(first.text)
    except RefusedSentence as error:
        return [_ParsedSentence(first, problem=str(error))]
    except NoName as error:
        reason = str(error) if isinstance(error, Unclear) else "not understood"
        return [replace(one, problem=reason) if one.problem == "not understood" else one for one in plain]
    return [_ParsedSentence(first, _NAMED[one.pattern], Found(one.steps, one.numbers), rule=one) for one in rules]


def _read_sentence(sentence: Sentence) -> _ParsedSentence:
    part = _read_part(sentence) if sentence.listed else None
    if part is not None and not part.problem:
        return part
    for pattern in PATTERNS:
        found = pattern.match_sentence(sentence.plain)
        if found is not None:
            return _ParsedSentence(sentence, pattern, found)
    return _read_part(sentence) or _ParsedSentence(sentence, problem="not understood")


def _read_part(sentence: Sentence) -> _ParsedSentence | None:
    """Read a sentence of a procedure; return None if it is not one."""
    try:
        procedure = read_procedure(sentence.plain, sentence.listed)
    except NoName:
        return _ParsedSentence(sentence, problem="not understood")
    except Ambiguous as error:
        return _ParsedSentence(sentence, problem=str(error))
    return None if procedure is None else _ParsedSentence(sentence, procedure=procedure)


def _check_places(parsed: Sequence[_ParsedSentence]) -> list[_ParsedSentence]:
    """Add the problems of words that refer to other sentences which are missing or in another place."""
    parts = [one for one in parsed if one.procedure is not None]

    def find_problem(number: int, one: _ParsedSentence) -> str:
        text = one.sentence.plain
        if number and re.search(r"\bif (?:it|they)\b", text):
            return "say what 'it' is, in the words of the other sentences"
        if one.procedure is None:
            return ""
        if one is not parts[0] and re.search(r"^first\b| first(?: of all)?$", text):
            return "it says 'first', and other steps stand before it"
        if one is not parts[-1] and _AT_THE_END.search(text):
            return "it says 'at the end', and other steps stand behind it"
        if len(parts) == 1 and re.match(r"(?:finally|lastly|at last)\b", text):
            return "no step stands before it; write: End with ..."
        return ""

    problems = [find_problem(number, one) for number, one in enumerate(parsed)]
    return [
        _ParsedSentence(one.sentence, problem=wrong) if wrong else one
        for one, wrong in zip(parsed, problems, strict=True)
    ]


def _raise_problems(source: SourceText, parsed: Sequence[_ParsedSentence]) -> None:
    wrong = [one for one in parsed if one.problem]
    if not wrong:
        return
    nearest = [(one.sentence.text, one.problem, tuple(nearest_examples(one.sentence.text))) for one in wrong]
    place = source.place_of(wrong[0].sentence.at)
    raise NotUnderstood(nearest, line=place.line, column=place.column)


def families() -> tuple[tuple[str, str], ...]:
    """Return the kinds of sentences that are read without a model: the family of each, and an example."""
    procedures = (("procedure", example) for example, _ in PROCEDURES)
    return (*((pattern.name, pattern.example) for pattern in PATTERNS), *procedures)


def nearest_examples(sentence: str, most: int = 3) -> list[str]:
    """Return the examples whose structure is most similar to a sentence, the nearest first.

    The steps of the sentence replace those of the example if it names enough of them.
    """
    wanted, steps = _build_of(sentence), steps_in(sentence)

    def rate_likeness(example: str) -> tuple[bool, int, float]:
        build = _build_of(example)
        shared = len({*build} & {*wanted} - {"_"})
        ratio = difflib.SequenceMatcher(None, wanted, build, autojunk=False).ratio()
        return _forbids_something(example) == _forbids_something(sentence), shared, ratio

    nearest = sorted((example for _, example in families()), key=rate_likeness, reverse=True)[:most]
    return [_fill_example(example, steps) for example in nearest]


def _forbids_something(sentence: str) -> bool:
    return (
        re.search(r"(?i)\b(?:never|not?|nothing|nobody|neither|unless|until|without|forbidden)\b|n't\b", sentence)
        is not None
    )


def _fill_example(example: str, steps: Sequence[str]) -> str:
    """Replace the steps of an example; return it unchanged if there are too few, or if it could not be read."""
    pattern = next((one for one in PATTERNS if one.example == example), None)
    found = pattern.match_sentence(normalize_text(example)) if pattern else None
    names = [name for groups in found.steps.values() for group in groups for name in group] if found else []
    filled = example
    for name, step in zip(names, steps, strict=False):
        filled = re.sub(rf"(?i)\b(?:(?:an?|the) )?{name}\w*", '"' + step.replace("_", " ") + '"', filled, count=1)
    fits = (
        pattern is not None
        and 0 < len(names) <= len(steps)
        and pattern.match_sentence(normalize_text(filled)) is not None
    )
    return filled if fits else example


def _build_of(sentence: str) -> list[str]:
    """Return the words that form the structure of a sentence; each run of other words is one name."""
    from_words = [
        word if word in RESERVED else "1" if word.isdigit() else "_" for word in re.findall(r"\w+", sentence.lower())
    ]
    return [word for number, word in enumerate(from_words) if word != "_" or from_words[number - 1 : number] != ["_"]]


class _Rules:
    """The requirements of all sentences together."""

    def __init__(self, source: SourceText, parsed: Sequence[_ParsedSentence]) -> None:
        self._source = source
        self._parsed = parsed
        declared = self.declared = [name for one in parsed if one.pattern is PATTERNS[0] for name in one.names]
        names = [name for one in parsed for name in one.names]
        self._spelling: Mapping[str, str] = spelled_alike([name for name in names if "=" not in name], declared)
        questions = {name.rpartition("=")[0] for name in names if "=" in name}
        keys = set(map(spelling_key, questions))
        for one in parsed:
            for name in one.names:
                if "=" not in name and declared and self._spelling[name] not in declared:
                    suggestion = did_you_mean(name, declared)
                    self._fail_at(
                        one,
                        f"{name} is not among the steps",
                        f"did you mean {suggestion}?" if suggestion else f"there are: {', '.join(declared)}",
                    )
                if spelling_key(name) in keys or (name.rpartition("=")[0] in self._spelling):
                    self._fail_at(
                        one,
                        f"{name.partition('=')[0]} is a step and a question",
                        "for a step that happened write: if ... happens",
                    )
        self._check_agents()
        self.steps = tuple(dict.fromkeys(map(self._spell_name, (*declared, *names))))

    def _check_agents(self) -> None:
        """Refuse sentences that name two people for one step: neither is part of its name, so both would be lost."""
        agent_of: dict[str, str] = {}
        for one in self._parsed:
            for name, agents in one.rule.agents.items() if one.rule else ():
                for agent in sorted(agents):
                    first = agent_of.setdefault(self._spell_name(name), agent)
                    if spelling_key(first) != spelling_key(agent):
                        self._fail_at(
                            one, f"{name} is done by {first} and by {agent}", "make two steps of it, in quotes"
                        )

    def _spell_name(self, name: str) -> str:
        return self._spelling.get(name, name)

    def _fail_at(self, one: _ParsedSentence, problem: str, suggestion: str | None = None) -> None:
        self._source.fail_at(problem, self._source.place_of(one.sentence.at), suggestion=suggestion)

    def build_clauses(self) -> tuple[Clause, ...]:
        """Return each sentence with its requirements; the sentences of the procedure are one clause."""
        result: list[Clause] = []
        parts = [one for one in self._parsed if one.procedure is not None]
        for one in self._parsed:
            if one.procedure is None:
                result.append(self._build_clause(one))
            elif one is parts[0]:
                result.append(self._build_procedure(parts))
        facts = dict.fromkeys(one.fact for one in self._parsed if one.fact)
        result += [
            Clause(
                f"{fact}: yes or no",
                "a fact",
                (bound_count((f"{fact}=yes", f"{fact}=no"), 1, 1),),
                (f"{fact}=yes", f"{fact}=no"),
            )
            for fact in facts
        ]
        return tuple(result)

    def _build_clause(self, one: _ParsedSentence) -> Clause:
        assert one.pattern is not None and one.found is not None
        steps = {
            place: tuple(tuple(map(self._spell_name, group)) for group in groups)
            for place, groups in one.found.steps.items()
        }
        try:
            asked = tuple(one.pattern.constrain_plans(replace(one.found, steps=steps)))
        except Misread as error:
            self._fail_at(one, str(error))
            raise
        if one.pattern.name in ("each step, at least", "each step, exactly"):
            # The answer to a question is a step, too, but the rules do not determine which answer is given.
            often = one.found.numbers["n"]
            asked = (*asked, Limits(at_least={name: often for name in self.steps if "=" not in name}))
        if one.fact:
            asked = tuple(_restrict_to(f"{one.fact}=yes", each) for each in asked)
        named = dict.fromkeys(name for groups in steps.values() for group in groups for name in group)
        return Clause(one.sentence.text, one.pattern.name, asked, tuple(named))

    def _build_procedure(self, parts: Sequence[_ParsedSentence]) -> Clause:
        whole = rename_steps(next_(*(one.procedure for one in parts if one.procedure is not None)), self._spell_name)
        free = [name for name in self.steps if name not in whole.names]
        last = _AT_THE_END.search(parts[-1].sentence.plain) is not None
        formula = weave_steps(whole, match_other(whole.names) if free else None, last)
        return Clause(" ".join(one.sentence.text for one in parts), "procedure", (formula,), whole.names)


def _restrict_to(fact: str, asked: Formula | Limits) -> Formula:
    """Restrict a requirement to plans in which a fact holds."""
    if isinstance(asked, Limits):
        bounds = [
            (step, asked.at_least.get(step, 0), asked.at_most.get(step)) for step in (*asked.at_most, *asked.at_least)
        ]
        asked = and_(*(bound_count((step,), least, most) for step, least, most in bounds))
    return implies(require_step((fact,)), asked)


def _find_clash(name: str, steps: Sequence[str], clauses: Sequence[Clause]) -> list[Clause]:
    """Return sentences that contradict each other, although any one fewer would not."""
    remaining = list(clauses)
    for one in clauses:
        fewer = [other for other in remaining if other is not one]
        if not _has_a_plan(_write_text(name, steps, fewer, "")):
            remaining = fewer
    return remaining


def _has_a_plan(text: str) -> bool:
    try:
        return Lookahead(_read_quietly(text).pda).completable().value != "no"
    except (NotationError, AutomatonError):
        return False


def _read_quietly(text: str) -> Behaviour:
    """Read the behaviour without warnings, which are reported when its file is checked."""
    with catch_warnings(action="ignore"):
        return Behaviour.from_string(text)


def _write_text(name: str, steps: Iterable[str], clauses: Sequence[Clause], words: str) -> str:
    """Return the rules as the text of an ``.agent`` file."""
    lines = [f"# {line}".rstrip() for line in lines_of(words.strip())]
    limits = Limits()
    for one in clauses:
        for asked in one.asked:
            if isinstance(asked, Limits):
                limits = limits & asked
    lines += [f"(define {quote_name(name)}", f"  (:states {' '.join(map(quote_name, steps))})"]
    if limits:
        bounds = limits.lines(lambda step: quote_text(step) if re.search(r"[\s,]", step) else step)
        lines.append(f"  (:limits {' '.join(map(quote_text, bounds))})")
    formulas = [(one.sentence, asked) for one in clauses for asked in one.asked if isinstance(asked, Formula)]
    lines.append("  (:behavior")
    if not formulas:
        return "\n".join([*lines, f"    {EVERYTHING}))"]) + "\n"
    lines.append("    (and")
    last = ""
    for sentence, formula in formulas:
        if sentence != last:
            lines.append(f"      # {' '.join(sentence.split())}")
        lines.append(f"      {formula.pretty(6)}")
        last = sentence
    return "\n".join(lines) + ")))\n"
