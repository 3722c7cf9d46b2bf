"""Everyday sentences, converted to the patterns that they mean.

The words that join the clauses of a sentence, and the mode of the main one (obligation, permission, prohibition),
determine the pattern. A sentence with any unread word is not read at all.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import replace

from formal_llm.authoring.clauses import (
    JOINS,
    Groups,
    ParsedClause,
    read_main,
    read_steps,
    split_count,
    split_marks,
    with_verb,
)
from formal_llm.authoring.events import DescribesState, EventReader
from formal_llm.authoring.forms import compiled_forms
from formal_llm.authoring.names import NoName, RefusedSentence, Unclear, question_of
from formal_llm.authoring.rules import SentenceRule, ask_after, ask_between, each_mark, make_rule, rules_of
from formal_llm.authoring.simplifying import simplify
from formal_llm.authoring.verbs import participle_base

#: Sentences that no pattern can express, and what to do about them.
_NOT_READ = (
    (
        re.compile(
            r"\b(?:\d[\d.,]*|an?|half an?|one|two|three|four|five|six|ten|twelve|fifteen|twenty|thirty|sixty|ninety) "
            r"(?:working |business )?(?:seconds|minutes?|hours?|days?|weeks?|months?|years?)\b|"
            r"\b\d{1,2}(?::\d\d)? ?(?:am|pm)\b"
        ),
        "sentences have no clock; leave this one out, and add to the written file how long steps take, "
        "(:numbers (time 15min)), and how long all may take, %limit time <= 3h; grammars also have %gap and %deadline",
    ),
    (
        re.compile(r"\bUNREAD (?:the(?! same)|an?|it|you|we|they|\w+ing)\b"),
        "it speaks of a span of time; name the steps that begin and end it: never ... between ... and ...",
    ),
    (
        re.compile(
            r"^(?:for|at|in|on|with) (?:each|every|any) |\bthat (?:same )?\w+'s own\b|\bthe same \w+ (?:number|twice)"
        ),
        "it speaks of each thing of a kind by itself; a plan is about one thing, so write the rule for that one",
    ),
    (
        re.compile(
            r"^(?!.*\bin a row\b).*"
            r"(?<!the )(?<!all )(?<!both )(?<!no )(?<!any )(?<!least )(?<!most )(?<!exactly )(?<!than )"
            r"\b(?:two|three|four|five|six|seven|eight|nine|ten) (?!times\b|of\b|or\b|people\b)(?:\w+ ){0,2}\w+s\b"
        ),
        "a number is part of a step; write the step once, and how often: at least two times",
    ),
)


#: The start of a subject that is not separated by a comma from the clause before it.
_SUBJECT_BEGINS = (
    r"(?<! to)(?<! of)(?<! on)(?<! in)(?<! at)(?<! by)(?<! for)(?<! with)(?<! from)(?<! the)"
    r" (?=(?:the|an?|you|we|your) (?:(?!\b(?:the|an?|is|are|be|and|or|MUST|MAY|NOT)\b)\w+ )*(?:MUST|MAY|NOT|is|are)\b)"
)
_PARTICIPLE = r"(?!(?:the|a|an) )\w+(?:ed|en|nt|ut|id|ade|un|ept|one)"


def read_everyday(sentence: str) -> list[SentenceRule]:
    """Return the rules of a sentence in everyday words.

    Raises:
        NoName: the sentence cannot be read; with the reason, unless its structure is merely unknown.
    """
    text = re.sub(r"[;,] (?:one of (?:the two|them)|either(?: one)?) is enough$", "", simplify(sentence))
    if text.startswith("SHOULD "):
        text = f"IF {with_verb(text[7:])}"
    if text.startswith("having "):
        text = re.sub(r"^having (.+?), (?:then )?(.+)", r"you have \1, then \2", text)
    for words, reason in _NOT_READ:
        if words.search(text):
            raise RefusedSentence(reason)
    whole = _Sentence()
    rules = whole.parse_rules(text)
    earlier = re.search(r"\b(beforehand|earlier|previously|in advance)\W*$", sentence.lower())
    if earlier and any(one.pattern == "begin with" for one in rules):
        raise RefusedSentence(f"{earlier[1]!r} refers to a step of another sentence; name both: ... before ...")
    return [replace(one, agents=whole.reader.agents) for one in rules]


class _Sentence:
    """One sentence, whose clauses are read from left to right."""

    def __init__(self) -> None:
        self.reader = EventReader()

    def parse_rules(self, text: str) -> list[SentenceRule]:
        """Return the rules of a sentence, which may be two sentences joined by ``and`` or ``but``."""
        reason: NoName | None = None
        for read in (self._read_single, self._read_double):
            saved = deepcopy(self.reader)
            try:
                return read(text)
            except NoName as error:
                self.reader = saved
                reason = (
                    error if reason is None or isinstance(error, RefusedSentence) or reason.args[0] == text else reason
                )
        raise reason or NoName(text)

    def _read_single(self, text: str) -> list[SentenceRule]:
        for form, make in compiled_forms():
            found = form.fullmatch(text)
            if found is not None:
                saved = deepcopy(self.reader)
                try:
                    return make(self, found)
                except RefusedSentence:
                    raise
                except NoName:
                    self.reader = saved
        front = re.match(rf"(DIRECTLY )?({JOINS}) ", text)
        return self._read_fronted(text, front) if front else rules_of(self.parse_clause(text))

    def _read_double(self, text: str) -> list[SentenceRule]:
        """Read two sentences in one: each separately, or the second as an addition to the steps of the first."""
        if " MAY " in text and re.search(r" MUST .*(?:BEFORE|AFTER)", text):
            raise RefusedSentence("it is not clear whether the second half is asked where the first did not happen")
        later = re.fullmatch(r"(.+? BEFORE (.+?)),? and then ((?:never|NOT) .+)", text)
        if later:  # "preheat it before the bread goes in, and then NOT open it until ..."
            return [*self.parse_rules(later[1]), *self.parse_rules(f"AFTER {later[2]}, {later[3]}")]
        for comma in re.finditer(r"(?:;|,)?(?: (?:and|but)|;) (?!then)|, (?=never|not |NOT|ONLYAFTER)", text):
            left, right = text[: comma.start()], text[comma.end() :].strip()
            saved = deepcopy(self.reader)
            try:
                return self._add_sentence(left, right)
            except NoName:
                self.reader = saved
        raise NoName(text)

    def _add_sentence(self, left: str, right: str) -> list[SentenceRule]:
        never_before = r"(?:NOT|never|not|no) (?:an? \w+ )?(?:FIRST|BEFORE|earlier|sooner)(?: it| that| then)?"
        if re.fullmatch(never_before, right) and " AFTER " in left:
            return self.parse_rules(re.sub(r"\bAFTER\b", "ONLYAFTER", left))
        if re.fullmatch(r"(?:never|not|NOT) (?:be |at |to |in )?both", right):
            first = self.parse_rules(left)
            group = first[0].steps.get("B", ((),))[0]
            if len(first) != 1 or first[0].pattern != "followed" or len(group) < 2:
                raise NoName(right)
            return [*first, make_rule("at most one of", A=tuple((name,) for name in group))]
        if right.endswith((" FIRST", " first")):
            raise Unclear("'first' may mean before that, or before all other steps")
        elliptic = re.match(
            r"(?:and |but )?(?P<never>never |NOT )?(?:MAY )?"
            r"(?:(?P<often>(?:at most|at least|exactly|more than) \d+ times)|"
            rf"(?P<direct>DIRECTLY )?(?P<join>{JOINS}) (?P<other>.+))$",
            right,
        )
        if elliptic:
            return self._add_rules(self.parse_clause(left), elliptic)
        helped = re.search(r"\b(?:MUST|MAY|NOT|NEVER|never|no|FORBIDDEN|REQUIRED|ALLOWED)\b", right)
        if (
            not helped
            and not re.search(r"\b(?:BEFORE|AFTER|WHEN|IF)\b", left)
            and not right.endswith((" LATER", " NEXT"))
        ):
            raise NoName(right)  # "the terms and conditions" are one thing, and not two sentences
        subject = _subject_of(left)
        if re.match(r"(?:MUST|MAY|NOT) (?!BEFORE|AFTER)", right) and subject:
            right = f"{subject} {right}"  # "work is suspended and may not resume"
        right = re.sub(r"^(?:each|every)(?: one(?: of them)?)? (?=(?:is|are|MUST|NOT)\b)", f"each {subject} ", right)
        if found := re.fullmatch(r"(?P<then>.+?),? (?P<when>LATER|NEXT)", right):
            return self._add_response(left, found["then"], found["when"])
        first = self.parse_rules(left)
        if not (helped or re.search(r"\b(?:ONLYAFTER|BEFORE|AFTER)\b", right)):
            raise NoName(right)
        front = re.match(r"(?:DIRECTLY )?(?:IF|SOONAFTER|WHEN|AFTER|ONLYAFTER|UNTIL|UNLESS|BEFORE) .+?, ", left)
        return [*first, *self.parse_rules((front[0] if front and not re.match(JOINS, right) else "") + right)]

    def _add_response(self, left: str, right: str, when: str) -> list[SentenceRule]:
        """Read what must follow the steps of a first sentence: "..., and each one is logged immediately afterwards"."""
        first = self.parse_clause(left)
        if first.join not in ("", "ONLYAFTER", "UNTIL", "UNLESS", "WITHOUT") or (not first.join and not first.most):
            raise Unclear(f"{when.lower()} than what? Write: after ..., ... must happen")
        then = self.parse_main(right)
        if then.mode not in ("DO", "MUST") or then.marks - {"ALL"} or then.least or then.most or then.scope:
            raise NoName(right)
        after = ParsedClause("MUST", then.steps, marks=frozenset({when}), other=first.steps)
        return [*rules_of(first), *ask_after(after)]

    def _add_rules(self, main: ParsedClause, more: re.Match[str]) -> list[SentenceRule]:
        """Read a second sentence that refers to the steps of the first: "and only after the fair"."""
        mode = "NOT" if more["never"] else "MAY"
        again = ParsedClause(mode, main.steps)
        if more["often"]:
            least, most, _ = split_count(f"x {more['often']}")
            if more["never"]:
                least, most = None, (least or 1) - 1
            return [*rules_of(main), *rules_of(replace(again, least=least, most=most))]
        marks = frozenset({"NEXT"} if more["direct"] else ())
        again = replace(again, marks=marks, join=more["join"], other=self.parse_steps(more["other"]))
        return [*rules_of(main), *rules_of(again)]

    # -- two clauses ---------------------------------------------------------------------------------------------------

    def _read_fronted(self, text: str, front: re.Match[str]) -> list[SentenceRule]:
        join, direct = front[2], bool(front[1])
        if join == "SOONAFTER" and not re.search(r"\b(?:NOT|MAY|never|no|FORBIDDEN)\b", text):
            direct = True
        for comma in re.finditer(r", (?:then )?| then ", text):
            saved = deepcopy(self.reader)
            try:
                return self._join_clauses(join, text[front.end() : comma.start()], text[comma.end() :], direct)
            except NoName as error:
                self.reader = saved
                reason: NoName = error
        if join == "ONLYAFTER" and (found := re.search(r" (MAY|MUST) ", text)):
            return self._join_clauses(join, text[front.end() : found.start()], text[found.end() :], direct)
        if join == "ONLYAFTER" and (found := re.search(r" (?:is|are) (?P<x>(?:the|an?|any) [^,]+) (?P<y>\w+)$", text)):
            main = f"{found['x']} be {found['y']}"  # "only after the payment is the ticket sent"
            return (
                self._join_clauses(join, text[front.end() : found.start()], main, direct)
                if participle_base(found["y"])
                else []
            )
        if "," not in text and (found := re.search(_SUBJECT_BEGINS, text[front.end() :])):
            rest = text[front.end() :]  # "after every service the kitchen MUST be cleaned"
            return self._join_clauses(join, rest[: found.start()], rest[found.start() + 1 :], direct)
        if "," not in text and (found := re.search(r" (?=never |no )", text)):  # "without a ticket nobody gets in"
            return self._join_clauses(join, text[front.end() : found.start()], text[found.end() :], direct)
        raise reason if re.search(r",| then ", text) else NoName(text)

    def _join_clauses(self, join: str, left: str, right: str, direct: bool) -> list[SentenceRule]:
        if re.fullmatch(
            rf"{_PARTICIPLE}(?: (?:back|off|out|up|in))?", left
        ):  # "once discarded, a sample NOT be retested"
            subject = re.match(r"(.+?) (?:MUST|MAY|NOT|FORBIDDEN|is|are)\b", right)
            left = f"{subject[1]} be {left}" if subject else left
        try:
            other = self.parse_steps(left)
        except DescribesState:
            if join != "IF" or re.match(r"(?:it|they|this|that)\b", left):
                raise
            about = _subject_of(re.sub(r"\b(?:contains?|involves?|exceeds?|includes?)\b", "is", left))
            self.reader.things += [about.removeprefix("the ").removeprefix("a ").removeprefix("an ")][: bool(about)]
            return [replace(one, given=question_of(left)) for one in self.parse_rules(right)]
        except NoName as error:
            if not isinstance(error, Unclear):
                raise
            main = self.parse_clause(right)
            other = self.parse_steps(left)
        else:
            main = self.parse_clause(right)
        if join == "IF" and re.search(r"^the .+ (?:is|are) \w+(?: \w+)?$|^.+ (?:has|have) (?!been)", left):
            raise RefusedSentence(
                "it may be a step or a fact; for a step write 'after' or 'once'; for a fact end it with: otherwise, ..."
            )
        if join == "IF" and main.mode == "NOT" and not main.join and re.search(r" (?:happens|occurs|is done)$", left):
            return [make_rule("excludes", A=other, B=main.steps)]
        join = {"SOONAFTER": "AFTER", "IF": "WHEN"}.get(join, join)
        if main.join:
            return ask_between(join, other, main)
        if "FIRST" in main.marks and join == "AFTER":
            raise Unclear("'first' is left over")
        marks = (main.marks - {"AGAIN"}) | ({"NEXT"} if direct else set()) | each_mark(left)
        return rules_of(replace(main, marks=marks, join="WHEN" if join == "AFTER" else join, other=other))

    def parse_clause(self, text: str) -> ParsedClause:
        """Read a main clause with the clause joined after it."""
        reason: Unclear | None = None
        for found in re.finditer(rf" (?:DIRECTLY )?({JOINS}) ", text):
            saved = deepcopy(self.reader)
            try:
                main = self.parse_main(text[: found.start()])
                also, rest = split_marks(text[found.end() :])
                if found[1] in ("WITHOUT", "UNLESS", "UNTIL", "ONLYAFTER"):
                    also -= {"FIRST"}
                if also - {"INBETWEEN", "OWN"}:
                    raise NoName(rest)
                other = self.parse_steps(rest)
            except NoName as error:
                self.reader = saved
                reason = reason or (error if isinstance(error, Unclear) else None)
                continue
            soon = found[1] == "SOONAFTER" and main.mode in ("MUST", "DO")
            marks = (
                main.marks | ({"NEXT"} if "DIRECTLY" in found[0] or soon else set()) | each_mark(text[found.end() :])
            )
            after = "ONLYAFTER" if main.mode == "MAY" else "AFTER"
            join = {"SOONAFTER": after, "IF": "WHEN"}.get(found[1], found[1])
            if not (re.match(r"(?:every|each|all)\b", text) and re.match(r"(?:any|every|each|all)\b", rest)):
                marks -= {"ALL"}
            return replace(main, marks=marks | also, join=join, other=other)
        if reason is not None:
            raise reason
        return self.parse_main(text)

    def parse_main(self, text: str) -> ParsedClause:
        """Read a clause with no other clause joined to it."""
        return read_main(text, self.reader)

    def parse_steps(self, text: str) -> Groups:
        """Read the steps of a list of clauses."""
        return read_steps(text, self.reader)


def _subject_of(text: str) -> str:
    """Return the subject of a sentence, which precedes its verb; empty if it has none."""
    main = re.sub(rf"^(?:DIRECTLY )?(?:{JOINS}) .+?, ", "", text)
    found = re.match(
        r"(?P<x>(?:(?!\b(?:and|or|MUST|MAY|NOT)\b)[^,])+?) "
        r"(?:is|are|has|have|MUST|MAY|NOT|requires?|needs?|at most|at least|exactly)\b",
        main,
    )
    return found["x"] if found else ""
