"""Everyday sentences as the patterns that they mean.

What joins the clauses of a sentence, and whether the main one obliges, allows or forbids, determine the pattern. A
sentence of which a word is left over is not read at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache

from formal_llm.authoring.clauses import (
    JOINS,
    Clause,
    Groups,
    counted,
    marked,
    moded,
    one_of_many,
    read_main,
    read_steps,
    with_verb,
)
from formal_llm.authoring.events import EventReader, State
from formal_llm.authoring.names import NoName, Refused, Unclear, question_of
from formal_llm.authoring.simplifying import simplify
from formal_llm.authoring.verbs import base, gerund, participle

#: What no pattern can express, and what to do about it.
_NOT_READ = (
    (
        re.compile(
            r"\b(?:\d[\d.,]*|an?|half an?|one|two|three|four|five|six|ten|twelve|fifteen|twenty|thirty|sixty|ninety) "
            r"(?:working |business )?(?:seconds|minutes?|hours?|days?|weeks?|months?|years?)\b|"
            r"\b\d{1,2}(?::\d\d)? ?(?:am|pm)\b"
        ),
        "sentences have no clock; a grammar has (%gap, %deadline, %window), and so have rules for tool calls (within)",
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
)


@dataclass(frozen=True)
class Rule:
    """What a sentence asks.

    Attributes:
        pattern: the name of a pattern.
        steps: the steps in its places.
        numbers: the numbers in its places.
        given: the fact under which it is asked; empty where it always is.
        doubt: what may not be meant; empty where nothing is in doubt.
        agents: who does which step, as far as the sentence names them.
    """

    pattern: str
    steps: dict[str, Groups]
    numbers: dict[str, int]
    given: str = ""
    doubt: str = ""
    agents: Mapping[str, AbstractSet[str]] = field(default_factory=dict)


def read_everyday(sentence: str) -> list[Rule]:
    """The rules that a sentence in everyday words asks for.

    Raises:
        NoName: it is none that is read; with the reason where there is one beside an unknown build.
    """
    text = re.sub(r"[;,] (?:one of (?:the two|them)|either(?: one)?) is enough$", "", simplify(sentence))
    if text.startswith("SHOULD "):
        text = f"IF {with_verb(text[7:])}"
    if text.startswith("having "):
        text = re.sub(r"^having (.+?), (?:then )?(.+)", r"you have \1, then \2", text)
    for words, reason in _NOT_READ:
        if words.search(text):
            raise Refused(reason)
    whole = _Sentence()
    return [replace(rule, agents=whole.reader.agents) for rule in whole.rules(text)]


def _rule(pattern: str, doubt: str = "", numbers: dict[str, int] | None = None, **steps: Groups) -> Rule:
    return Rule(pattern, steps, numbers or {}, doubt=doubt)


class _Sentence:
    """One sentence, of which the clauses are read from the left to the right."""

    def __init__(self) -> None:
        self.reader = EventReader()

    def rules(self, text: str) -> list[Rule]:
        """The rules of a sentence, which may be two joined by ``and`` or ``but``."""
        reason: NoName | None = None
        for read in (self._one, self._two):
            before = deepcopy(self.reader)
            try:
                return read(text)
            except NoName as error:
                self.reader = before
                reason = error if reason is None or isinstance(error, Refused) or reason.args[0] == text else reason
        raise reason or NoName(text)

    def _one(self, text: str) -> list[Rule]:
        for form, make in _compiled():
            found = form.fullmatch(text)
            if found is not None:
                before = deepcopy(self.reader)
                try:
                    return make(self, found)
                except Refused:
                    raise
                except NoName:
                    self.reader = before
        front = re.match(rf"(DIRECTLY )?({JOINS}) ", text)
        return self._fronted(text, front) if front else _meant(self.clause(text))

    def _two(self, text: str) -> list[Rule]:
        """Two sentences in one: each is read for itself, or the second says more of the steps of the first."""
        if " MAY " in text and re.search(r" MUST .*(?:BEFORE|AFTER)", text):
            raise Refused("it is not clear whether the second half is asked where the first did not happen")
        later = re.fullmatch(r"(.+? BEFORE (.+?)),? and then ((?:never|NOT) .+)", text)
        if later:  # "preheat it before the bread goes in, and then NOT open it until ..."
            return [*self.rules(later[1]), *self.rules(f"AFTER {later[2]}, {later[3]}")]
        for comma in re.finditer(r"(?:;|,)?(?: (?:and|but)|;) (?!then)|, (?=never|not |NOT|ONLYAFTER)", text):
            left, right = text[: comma.start()], text[comma.end() :].strip()
            before = deepcopy(self.reader)
            try:
                return self._more(left, right)
            except NoName:
                self.reader = before
        raise NoName(text)

    def _more(self, left: str, right: str) -> list[Rule]:
        never_before = r"(?:NOT|never|not|no) (?:an? \w+ )?(?:FIRST|BEFORE|earlier|sooner)(?: it| that| then)?"
        if re.fullmatch(never_before, right) and " AFTER " in left:
            return self.rules(re.sub(r"\bAFTER\b", "ONLYAFTER", left))
        if re.fullmatch(r"(?:never|not|NOT) (?:be |at |to |in )?both", right):
            first = self.rules(left)
            group = first[0].steps.get("B", ((),))[0]
            if len(first) != 1 or first[0].pattern != "followed" or len(group) < 2:
                raise NoName(right)
            return [*first, _rule("at most one of", A=tuple((name,) for name in group))]
        elliptic = re.match(
            r"(?:and |but )?(?P<never>never |NOT )?(?:MAY )?"
            r"(?:(?P<often>(?:at most|at least|exactly|more than) \d+ times)|"
            rf"(?P<direct>DIRECTLY )?(?P<join>{JOINS}) (?P<other>.+))$",
            right,
        )
        if elliptic:
            return self._added(self.clause(left), elliptic)
        helped = re.search(r"\b(?:MUST|MAY|NOT|NEVER|never|no|FORBIDDEN|REQUIRED|ALLOWED)\b", right)
        if (
            not helped
            and not re.search(r"\b(?:BEFORE|AFTER|WHEN|IF)\b", left)
            and not right.endswith((" LATER", " NEXT"))
        ):
            raise NoName(right)  # "the terms and conditions" are one thing, and no two sentences
        subject = _subject(left)
        if re.match(r"(?:MUST|MAY|NOT) (?!BEFORE|AFTER)", right) and subject:
            right = f"{subject} {right}"  # "work is suspended and may not resume"
        right = re.sub(r"^(?:each|every)(?: one(?: of them)?)? (?=(?:is|are|MUST|NOT)\b)", f"each {subject} ", right)
        if found := re.fullmatch(r"(?P<then>.+?),? (?P<when>LATER|NEXT)", right):
            return self._then(left, found["then"], found["when"])
        first = self.rules(left)
        if not (helped or re.search(r"\b(?:ONLYAFTER|BEFORE|AFTER)\b", right)):
            raise NoName(right)
        front = re.match(r"(?:DIRECTLY )?(?:IF|SOONAFTER|WHEN|AFTER|ONLYAFTER|UNTIL|UNLESS|BEFORE) .+?, ", left)
        return [*first, *self.rules((front[0] if front and not re.match(JOINS, right) else "") + right)]

    def _then(self, left: str, right: str, when: str) -> list[Rule]:
        """What must follow the steps of a first sentence: "..., and each one is logged immediately afterwards"."""
        first = self.clause(left)
        if first.join not in ("", "ONLYAFTER", "UNTIL", "UNLESS", "WITHOUT") or (not first.join and not first.most):
            raise Unclear(f"{when.lower()} than what? Write: after ..., ... must happen")
        then = self.main(right)
        if then.mode not in ("DO", "MUST") or then.marks - {"ALL"} or then.least or then.most or then.scope:
            raise NoName(right)
        after = Clause("MUST", then.steps, marks=frozenset({when}), other=first.steps)
        return [*_meant(first), *_after(after)]

    def _added(self, main: Clause, more: re.Match[str]) -> list[Rule]:
        """What a second sentence adds that speaks of the steps of the first: "and only after the fair"."""
        mode = "NOT" if more["never"] else "MAY"
        again = Clause(mode, main.steps)
        if more["often"]:
            least, most, _ = counted(f"x {more['often']}")
            if more["never"]:
                least, most = None, (least or 1) - 1
            return [*_meant(main), *_meant(replace(again, least=least, most=most))]
        marks = frozenset({"NEXT"} if more["direct"] else ())
        return [*_meant(main), *_meant(replace(again, marks=marks, join=more["join"], other=self.steps(more["other"])))]

    # -- two clauses ---------------------------------------------------------------------------------------------------

    def _fronted(self, text: str, front: re.Match[str]) -> list[Rule]:
        join, direct = front[2], bool(front[1])
        if join == "SOONAFTER" and not re.search(r"\b(?:NOT|MAY|never|no|FORBIDDEN)\b", text):
            direct = True
        for comma in re.finditer(r", (?:then )?| then ", text):
            before = deepcopy(self.reader)
            try:
                return self._joined(join, text[front.end() : comma.start()], text[comma.end() :], direct)
            except NoName as error:
                self.reader = before
                reason: NoName = error
        if join == "ONLYAFTER" and (found := re.search(r" (MAY|MUST) ", text)):
            return self._joined(join, text[front.end() : found.start()], text[found.end() :], direct)
        if join == "ONLYAFTER" and (found := re.search(r" (?:is|are) (?P<x>(?:the|an?|any) [^,]+) (?P<y>\w+)$", text)):
            done = f"{found['x']} be {found['y']}"  # "only after the payment is the ticket sent"
            return self._joined(join, text[front.end() : found.start()], done, direct) if participle(found["y"]) else []
        if "," not in text and (found := re.search(_SUBJECT_BEGINS, text[front.end() :])):
            rest = text[front.end() :]  # "after every service the kitchen MUST be cleaned"
            return self._joined(join, rest[: found.start()], rest[found.start() + 1 :], direct)
        if "," not in text and (found := re.search(r" (?=never |no )", text)):  # "without a ticket nobody gets in"
            return self._joined(join, text[front.end() : found.start()], text[found.end() :], direct)
        raise reason if re.search(r",| then ", text) else NoName(text)

    def _joined(self, join: str, left: str, right: str, direct: bool) -> list[Rule]:
        if re.fullmatch(
            rf"{_PARTICIPLE}(?: (?:back|off|out|up|in))?", left
        ):  # "once discarded, a sample NOT be retested"
            subject = re.match(r"(.+?) (?:MUST|MAY|NOT|FORBIDDEN|is|are)\b", right)
            left = f"{subject[1]} be {left}" if subject else left
        try:
            other = self.steps(left)
        except State:
            if join != "IF" or re.match(r"(?:it|they|this|that)\b", left):
                raise
            subject = _subject(re.sub(r"\b(?:contains?|involves?|exceeds?|includes?)\b", "is", left))
            self.reader.things += [subject.removeprefix("the ").removeprefix("a ").removeprefix("an ")][: bool(subject)]
            return [replace(one, given=question_of(left)) for one in self.rules(right)]
        except NoName as error:
            if not isinstance(error, Unclear):
                raise
            main = self.clause(right)
            other = self.steps(left)
        else:
            main = self.clause(right)
        if join == "IF" and re.search(r"^the .+ (?:is|are) \w+(?: \w+)?$|^.+ (?:has|have) (?!been)", left):
            raise Refused(
                "it may be a step or a fact; for a step write 'after' or 'once'; for a fact end it with: otherwise, ..."
            )
        if join == "IF" and main.mode == "NOT" and not main.join and re.search(r" (?:happens|occurs|is done)$", left):
            return [_rule("excludes", A=other, B=main.steps)]
        join = {"SOONAFTER": "AFTER", "IF": "WHEN"}.get(join, join)
        if main.join:
            return _between(join, other, main)
        if "FIRST" in main.marks and join == "AFTER":
            raise Unclear("'first' is left over")
        marks = (main.marks - {"AGAIN"}) | ({"NEXT"} if direct else set()) | _each(left)
        return _meant(replace(main, marks=marks, join="WHEN" if join == "AFTER" else join, other=other))

    def clause(self, text: str) -> Clause:
        """A main clause with what is joined to it behind it."""
        reason: Unclear | None = None
        for found in re.finditer(rf" (?:DIRECTLY )?({JOINS}) ", text):
            before = deepcopy(self.reader)
            try:
                main = self.main(text[: found.start()])
                also, rest = marked(text[found.end() :])
                if found[1] in ("WITHOUT", "UNLESS", "UNTIL", "ONLYAFTER"):
                    also -= {"FIRST"}
                if also - {"INBETWEEN", "OWN"}:
                    raise NoName(rest)
                other = self.steps(rest)
            except NoName as error:
                self.reader = before
                reason = reason or (error if isinstance(error, Unclear) else None)
                continue
            soon = found[1] == "SOONAFTER" and main.mode in ("MUST", "DO")
            marks = main.marks | ({"NEXT"} if "DIRECTLY" in found[0] or soon else set()) | _each(text[found.end() :])
            after = "ONLYAFTER" if main.mode == "MAY" else "AFTER"
            join = {"SOONAFTER": after, "IF": "WHEN"}.get(found[1], found[1])
            if not (re.match(r"(?:every|each|all)\b", text) and re.match(r"(?:any|every|each|all)\b", rest)):
                marks -= {"ALL"}
            return replace(main, marks=marks | also, join=join, other=other)
        if reason is not None:
            raise reason
        return self.main(text)

    def main(self, text: str) -> Clause:
        """A clause with nothing joined to it."""
        return read_main(text, self.reader)

    def steps(self, text: str) -> Groups:
        """The steps of a list of clauses."""
        return read_steps(text, self.reader)


def _subject(text: str) -> str:
    """The subject of a sentence, as it stands before its verb; empty where it has none."""
    main = re.sub(rf"^(?:DIRECTLY )?(?:{JOINS}) .+?, ", "", text)
    found = re.match(
        r"(?P<x>(?:(?!\b(?:and|or|MUST|MAY|NOT)\b)[^,])+?) "
        r"(?:is|are|has|have|MUST|MAY|NOT|requires?|needs?|at most|at least|exactly)\b",
        main,
    )
    return found["x"] if found else ""


def _each(text: str) -> set[str]:
    return {"EACH"} if re.match(r"\s*each\b", text) else {"EVERY"} if re.match(r"\s*every\b", text) else set()


# -- what clauses mean -------------------------------------------------------------------------------------------------


def _meant(clause: Clause) -> list[Rule]:
    """The patterns that a clause and the one joined to it mean."""
    if not clause.join:
        return _alone(clause)
    if clause.scope and "ALL" not in clause.marks:
        raise Unclear(f"{clause.scope!r} is left over")
    repeated = clause.most == 1 or "AGAIN" in clause.marks
    if "INBETWEEN" in clause.marks and repeated and (clause.mode, clause.join) == ("NOT", "WITHOUT"):
        return [_rule("between any two", A=clause.steps, B=clause.other)]
    if clause.marks - {"NEXT", "EACH", "OWN", "ONLY", "FIRST", "LATER", "EVERY", "AGAIN", "ALL"}:
        raise NoName("a word is left over")
    if "AGAIN" in clause.marks and clause.mode in ("MUST", "DO") and clause.join != "ONLYAFTER":
        raise NoName("a word is left over")
    make = _TABLE.get((clause.join, {"DO": "MUST"}.get(clause.mode, clause.mode)))
    if make is None:
        raise Unclear("it is not clear what is asked of plans")
    if clause.least is not None or clause.most is not None:
        if clause.join != "BEFORE" or clause.mode not in ("MUST", "DO") or clause.least is None:
            raise Unclear("say how often in a sentence of its own")
        if clause.most is not None and clause.most != clause.least:
            raise Unclear("say how often in a sentence of its own")
        doubt = f"{clause.least} times is read as: at least {clause.least} times before that" if clause.most else ""
        return [_rule("needs so many first", doubt, numbers={"n": clause.least or 0}, B=clause.other, A=clause.steps)]
    return make(clause)


def _alone(clause: Clause) -> list[Rule]:
    steps, least, most = clause.steps, clause.least, clause.most
    if clause.marks - {"ALL"}:
        raise NoName("a word is left over")
    doubt = _scope_doubt(clause.scope)
    if least is not None and least == most:
        return [_rule("exactly", doubt, numbers={"n": least}, A=steps)]
    if least is not None:
        return [_rule("at least", doubt, numbers={"n": least}, A=steps)]
    if most is not None and clause.mode == "NOT":
        return [_rule("never so often", doubt, numbers={"n": most + 1}, A=steps)]
    if most is not None:
        return [_rule("at most", doubt, numbers={"n": most}, A=steps)]
    if clause.mode == "MUST" and "ALL" in clause.marks:
        raise Refused("it asks something of each thing of a kind; write what comes before it or after it")
    if clause.mode == "DO":
        raise Unclear("it tells one step, and not when")
    return [_rule({"MUST": "must", "MAY": "may", "NOT": "never"}[clause.mode], A=steps)]


def _scope_doubt(scope: str) -> str:
    return f"{scope!r} is read as: in each plan" if scope else ""


def _before(first: Groups, then: Groups, clause: Clause) -> list[Rule]:
    if "NEXT" in clause.marks:
        return [_rule("directly preceded", A=then, B=first)]
    if "ALL" in clause.marks and clause.join == "BEFORE":
        return [_rule("all before", A=first, B=then)]
    doubt = "one may serve for several; write 'each', or 'of its own', if that is not meant"
    rules = [_rule("before", doubt if clause.marks & {"OWN", "EACH", "EVERY"} == {"EVERY"} else "", A=first, B=then)]
    if clause.marks & {"OWN", "EACH"} and clause.join not in ("UNTIL", "UNLESS"):
        rules += [_rule("between any two", A=then, B=first)]
    return rules


def _after(clause: Clause) -> list[Rule]:
    """What must happen after each time that something happened."""
    if "FIRST" in clause.marks:
        return _before(clause.steps, clause.other, replace(clause, marks=clause.marks - {"FIRST"}))
    if len(clause.other) > 1:
        raise Unclear("say after which one of them; or write one sentence for each")
    if "NEXT" in clause.marks:
        return [_rule("directly followed", A=clause.other, B=clause.steps)]
    own = [_rule("between any two", A=clause.other, B=clause.steps)] if "OWN" in clause.marks else []
    return [_rule("followed", A=clause.other, B=clause.steps), *own]


def _tail_after(clause: Clause) -> list[Rule]:
    if clause.marks & {"EACH", "EVERY"} or "NEXT" in clause.marks or "LATER" in clause.marks:
        return _after(clause)
    if "ONLY" in clause.marks:
        return _before(clause.other, clause.steps, clause)
    step, before = (
        " and ".join(name.replace("_", " ") for group in all_ for name in group)
        for all_ in (clause.steps, clause.other)
    )
    raise Refused(
        f"it may mean: {step} only after {before}; or: after each {before}, {step} must happen; write one of them"
    )


def _not_after(clause: Clause) -> list[Rule]:
    if len(clause.other) > 1:
        raise Unclear("say after which one of them; or write one sentence for each")
    return [_rule("never directly after" if "NEXT" in clause.marks else "never after", A=clause.steps, B=clause.other)]


def _until(clause: Clause) -> list[Rule]:
    if "AGAIN" in clause.marks:
        doubt = "it is read as: one since the last time, and not only one before the second time"
        return [_rule("between any two", doubt, A=clause.steps, B=clause.other)]
    return _before(clause.other, clause.steps, clause)


def _only_before(clause: Clause) -> list[Rule]:
    if "ONLY" not in clause.marks:
        raise Unclear("it may, so it need not; write: only before")
    return [_rule("never after", A=clause.steps, B=clause.other)]


def _must_unless(clause: Clause) -> list[Rule]:
    if clause.mode != "MUST" or not clause.is_plain:
        raise Unclear("it is not clear what is asked of plans")
    return [_rule("must, unless", A=clause.steps, B=clause.other)]


_TABLE: dict[tuple[str, str], Callable[[Clause], list[Rule]]] = {
    ("BEFORE", "MUST"): lambda one: _before(one.steps, one.other, one),
    ("BEFORE", "NOT"): lambda one: (
        [_rule("never directly after", A=one.other, B=one.steps)] if "NEXT" in one.marks else _until(one)
    ),
    ("BEFORE", "MAY"): _only_before,
    ("AFTER", "MUST"): _tail_after,
    ("AFTER", "NOT"): _not_after,
    ("AFTER", "MAY"): _tail_after,
    ("WHEN", "MUST"): _after,
    ("WHEN", "NOT"): _not_after,
    ("WHEN", "MAY"): _tail_after,
    ("ONLYAFTER", "MUST"): _until,
    ("ONLYAFTER", "MAY"): _until,
    ("UNTIL", "NOT"): _until,
    ("UNLESS", "NOT"): _until,
    ("WITHOUT", "NOT"): _until,
    ("UNLESS", "MAY"): _not_after,
    ("UNLESS", "MUST"): _must_unless,
}


def _between(join: str, after: Groups, clause: Clause) -> list[Rule]:
    """What is asked after something happened: that the one comes before the other, from then on."""
    if join in ("AFTER", "WHEN") and clause.join == "UNLESS" and clause.mode in ("MUST", "DO") and clause.is_plain:
        return [_rule("followed, unless", A=after, B=clause.steps, C=clause.other)]
    if (
        join not in ("AFTER", "WHEN")
        or len(after) > 1
        or clause.least
        or clause.most
        or clause.marks - {"FIRST", "AGAIN"}
    ):
        raise Unclear("it is not clear what is asked of plans")
    if clause.join == "BEFORE" and clause.mode in ("MUST", "DO"):
        first, then = clause.steps, clause.other
    elif (
        clause.join in ("UNTIL", "BEFORE", "UNLESS", "WITHOUT") and clause.mode == "NOT"
    ) or clause.join == "ONLYAFTER":
        first, then = clause.other, clause.steps
    else:
        raise Unclear("it is not clear what is asked of plans")
    return [_rule("between", A=after, B=first, C=then)]


# -- sentences of their own build --------------------------------------------------------------------------------------

_Make = Callable[[_Sentence, re.Match[str]], list[Rule]]


def _precedes(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    return [_rule("before", A=sentence.steps(found["x"]), B=sentence.steps(found["y"]))]


def _place(where: str) -> _Make:
    def make(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
        scope = " ".join((found.groupdict().get("scope") or "").split())
        main = sentence.main(found["x"])
        if main.mode not in ("DO", "MUST") or main.least or main.most or main.marks or main.scope:
            raise NoName(found[0])
        return [_rule(f"{where} with", _scope_doubt(scope), A=main.steps)]

    return make


def _begin_and_end(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    first, last = sentence.steps(found["x"]), sentence.steps(found["y"])
    return [_rule("begin with", _scope_doubt(found["scope"].strip()), A=first), _rule("end with", A=last)]


def _needs(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    marks, needed = marked(found["y"])
    again, first = marked(found["x"])
    if again - {"AGAIN"} or (again and marks - {"FIRST"}):
        raise NoName(found[0])
    step, other = sentence.steps(first), sentence.steps(needed)
    if again:
        return _until(Clause("NOT", step, marks=frozenset(again), other=other))
    clause = Clause("MUST", other, marks=frozenset(marks), other=step)
    if "NEXT" in marks or "LATER" in marks:
        return _after(clause)
    if _PERMISSION.search(needed) or re.search(r" (?:presupposes?|depends? on) ", found[0]):
        marks |= {"FIRST"}
    if not marks & {"FIRST", "OWN"}:
        if any("_" in name for groups in (step, other) for group in groups for name in group):
            raise Refused("it may come before or after; write 'first' or 'afterwards' behind it")
        doubt = "it may come before or after; write 'first' or 'afterwards' if one of them is meant"
        return [_rule("requires", doubt, A=step, B=other)]
    return _before(other, step, clause)


def _followed(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    marks, text = marked(found["y"])
    marks |= {"NEXT"} if found["how"] or found["then"] else set()
    if " by " in text and " and " in text:
        raise NoName(found[0])
    step = sentence.steps(found["x"])
    return _after(Clause("MUST", sentence.steps(text), marks=frozenset(marks), other=step))


def _preceded(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    marks, text = marked(found["y"])
    marks |= {"NEXT"} if found["how"] or found["then"] else set()
    step = sentence.steps(found["x"])
    if " by " in text and " and " in text:
        raise NoName(found[0])
    first = sentence.steps(text)
    return _before(first, step, Clause("MUST", first, marks=frozenset(marks | _each(found["x"]))))


def _either(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    mode, text = moded(found["x"])
    steps = sentence.steps(text)
    if mode not in ("DO", "MUST") or len(steps) != 1 or len(steps[0]) < 2:
        raise NoName(found[0])
    return [_rule("exactly one of", A=steps)]


def _never_both(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    steps = sentence.steps(found["x"])
    if len(steps) < 2:
        raise NoName(found[0])
    return [_rule("at most one of", A=steps)]


def _in_order(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    done = re.fullmatch(r"(.+?) (?:MUST (?:always )?)?(?:go|come|happen|take place|occur|be done|are done)", found["x"])
    listed = done[1] if done else found["x"]
    steps = sentence.steps(listed if " and " in listed else re.sub(r", (?=[^,]+$)", " and ", listed))
    ordered = _rule("in this order", A=steps)
    all_happen = done or any("_" in name for group in steps for name in group)
    return [ordered, _rule("must", A=steps)] if all_happen else [ordered]


def _between_two(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    if " " not in found["x"] and " " in found["y"] and gerund(found["x"]) and gerund(found["y"].split()[0]):
        raise NoName(found[0])  # "between closing and reopening the valve"
    start, end = sentence.steps(found["x"]), sentence.steps(found["y"])
    clause = sentence.main(re.sub(r"^there (?:MUST be|is|are) (?:at least one )?", "MUST ", found["z"]))
    if clause.least or clause.most or clause.marks - {"ONLY"}:
        raise NoName(found[0])
    if "ONLY" in clause.marks:
        return [_rule("only between", A=clause.steps, B=start, C=end)]
    if clause.mode == "NOT":
        return [_rule("never between", A=clause.steps, B=start, C=end)]
    if clause.mode == "MAY":
        raise Unclear("it may, so it need not; write: only between")
    return [_rule("between", A=start, B=clause.steps, C=end)]


def _own_step(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "a rollback MUST be announced LATER": the subject is a step, and what is done to it is another one."""
    step = sentence.steps(found["noun"])
    main = sentence.main(found["x"])
    if main.least or main.most or main.marks - {"ALL"} or len(step) > 1:
        raise NoName(found[0])
    doubt = f"{found['noun']!r} is read as a step"
    clause = Clause("MUST", main.steps, marks=frozenset({found["when"]}), other=step)
    rules = _before(main.steps, step, clause) if found["when"] == "FIRST" else _after(clause)
    return [replace(rule, doubt=doubt) for rule in rules]


def _between_any(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    step = sentence.steps(one_of_many(found["x"]))
    main = sentence.main(re.sub(r"^there (?:MUST be|is|are) ", "MUST ", found["y"]))
    if main.least or main.most or main.marks or main.mode not in ("MUST", "DO"):
        raise NoName(found[0])
    return [_rule("between any two", A=step, B=main.steps)]


def _placed(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "migrations are run after the backup and before the release": where a step has its place."""
    step = sentence.main(found["x"])
    if step.mode not in ("MUST", "DO", "MAY") or step.least or step.most or step.marks:
        raise NoName(found[0])
    rules = [_rule("before", A=sentence.steps(found["y"]), B=step.steps)]
    return [*rules, _rule("before", A=step.steps, B=sentence.steps(found["z"]))] if found["z"] else rules


def _sequence(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "a first, then b, and finally c"."""
    if "ANYORDER" in found[0]:
        raise NoName(found[0])
    parts = re.split(
        rf",? (?:and )?{_NEXT},? |, (?:and )?(?=then )",
        re.sub(r",? INORDER$", "", found[0]).removeprefix("FIRST, ").removeprefix("FIRST "),
    )
    steps: Groups = ()
    for number, part in reversed([*enumerate(parts)]):  # "proof the dough, shape the loaves, then bake them"
        orders = part.split(", ")
        if len(orders) > 1 and all(base(one.split()[0]) == one.split()[0] for one in orders):
            parts[number : number + 1] = orders
    for part in parts:
        part = re.sub(r"^then ", "", part.strip(" ,")).removesuffix(" FIRST")
        words = part.split()
        if (
            participle(words[-1])
            and len(words) > 1
            and base(words[0]) != words[0]
            and not set(words) & {"be", "is", "are", "has", "have"}
        ):
            part = " ".join([*words[:-1], "be", words[-1]])  # "the card signed"
        steps += sentence.main(part).steps
    if len(steps) != len(parts) or any(len(group) > 1 for group in steps):
        raise NoName(found[0])
    return [_rule("in this order, once each", A=steps)]


def _never_followed(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    pattern = "never directly after" if found["how"] or found["then"] else "never after"
    first = sentence.steps(found["x"])
    return [_rule(pattern, A=sentence.steps(found["y"]), B=first)]


def _any_order(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "a and b may be done in any order, but both before c"."""
    rest = re.sub(r"^(?:both|all(?: (?:\w+))?) are done (?=BEFORE)", f"{found['x']} ", found["y"])
    rest = re.sub(
        r"\b(?:both|all (?:two|three|four|five|of them)|they(?: all| both)?|all)(?= )", found["x"], rest, count=1
    )
    if rest == found["y"]:
        raise NoName(found[0])
    return sentence.rules(rest)


def _done_to(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "a fish that has been thawed NOT be refrozen": what is done to a thing after something was done to it."""
    noun = re.sub(r"^(?:any|every|each|an?|the|no) ", "", found["noun"])
    which = "no" if found["noun"].startswith("no ") else "the"
    return sentence.rules(f"AFTER the {noun} be {found['done']}, {which} {noun} {found['rest']}")


def _waits(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "icing the cake MUST wait UNTIL the glaze has set"."""
    first = f"{found['x']} VERB {found['verb']}" if found["verb"] else found["x"]
    then = sentence.steps(found["y"])
    return [_rule("before", A=sentence.steps(first), B=then)]


def _no_without(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "no ticket, no entry"."""
    doubt = f"it is read as: {found['x']} comes before {found['y']}"
    return [_rule("before", doubt, A=sentence.steps(found["x"]), B=sentence.steps(found["y"]))]


def _no_two(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    return [_rule("no two in a row", A=sentence.steps(one_of_many(found["x"])))]


def _in_a_row(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    main = sentence.main(found["x"])
    if main.mode != "NOT" or not main.is_plain:
        raise NoName(found[0])
    return [_rule("in a row, never", numbers={"n": int(found["n"])}, A=main.steps)]


def _never_to(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "never sell bread that has been dropped", or "... has not been weighed"."""
    noun = re.sub(r"^(?:an?|any|the) ", "", found["noun"])
    return sentence.rules(
        f"{found['x']} the {noun} UNTIL the {noun} has been {found['done']}"
        if found["no"]
        else f"AFTER the {noun} be {found['done']}, {found['x']} the {noun}"
    )


def _not_yet(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "an invoice that has not been approved NOT be paid"."""
    noun = re.sub(r"^(?:an?|any|the) ", "", found["noun"])
    return sentence.rules(f"the {noun} {found['rest']} UNTIL the {noun} has been {found['done']}")


def _who_did(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "guests who have checked out NOT be readmitted"."""
    noun = re.sub(r"^(?:any|every|each|an?|the|all|no) ", "", found["noun"])
    which = "no" if found["noun"].startswith("no ") else "the"
    return sentence.rules(f"AFTER the {noun} {found['did']}, {which} {noun} {found['rest']}")


def _only_then(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "the site is observed, and only then MAY the patient leave"."""
    first = sentence.main(found["x"].removesuffix(" FIRST"))
    if first.mode not in ("DO", "MUST") or not first.is_plain:
        raise NoName(found[0])
    return [_rule("before", A=first.steps, B=sentence.steps(with_verb(found["y"])))]


def _whatever(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "whatever is locked out MUST be unlocked LATER": the steps are named by their verbs alone."""
    done, *more = found["done"].split()
    rest = re.sub(r"be (\w+)", lambda match: participle(match[1]) or match[0], found["rest"], count=1)
    return sentence.rules(f"AFTER {' '.join([participle(done) or done, *more])}, you {rest}")


def _done_thing(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "each accepted return MUST be shelved LATER"."""
    if not base(found["done"]):
        raise NoName(found[0])
    return sentence.rules(f"AFTER the {found['what']} be {found['done']}, the {found['what']} {found['rest']}")


def _not_both(sentence: _Sentence, found: re.Match[str]) -> list[Rule]:
    """Such as "feed a and feed b NOT both be switched off in one window"."""
    verb = found["verb"] if found["verb"].startswith("be ") else f"VERB {found['verb']}"
    steps = sentence.steps(f"{found['x']} {verb}")
    if len(steps) < 2:
        raise NoName(found[0])
    return [_rule("at most one of", _scope_doubt((found["scope"] or "").strip(" ,")), A=steps)]


#: What comes before the thing that it allows.
_PERMISSION = re.compile(r"\b(?:approval|permission|consent|authori[sz]ation|sign-off|clearance|go-ahead|permit)\b")
_HAS_BEEN = r"(?:is|are|was|were|gets|has been|have been)"
#: Where a subject begins that no comma parts from the clause before it.
_SUBJECT_BEGINS = (
    r"(?<! to)(?<! of)(?<! on)(?<! in)(?<! at)(?<! by)(?<! for)(?<! with)(?<! from)(?<! the)"
    r" (?=(?:the|an?|you|we|your) (?:(?!\b(?:the|an?|is|are|be|and|or|MUST|MAY|NOT)\b)\w+ )*(?:MUST|MAY|NOT|is|are)\b)"
)
_PARTICIPLE = r"(?!(?:the|a|an) )\w+(?:ed|en|nt|ut|id|ade|un|ept|one)"
_NEXT = r"(?:only then|then|next|finally|lastly|ATEND|LATER)"
_THAT = r"(?:that|which)(?: has| have)?(?: been| is| was| are| were)"
_WHOLE = r"(?P<scope>(?:(?:each|every|any|all|the|an?) )?(?:\w+ ){1,2})"
_OF = r"(?P<scope>(?: of (?:the|each|every|an?) \w+)?)"
_ITS = r"(?P<scope>(?: (?:each|every|the|an?) \w+)?)"
_WHERE = r"(?P<scope>(?: (?:of|in|for|on|to|that|each|every|an?|any) .+)?)"
_THING = r"(?:step|thing|job|act|task|action|item|order of business)"
_STARTS = r"(?:starts?|begins?|opens?|kicks? off|commences?) (?:by|with)"
_ENDS = r"(?:ends?|finish(?:es)?|concludes?|closes?|wraps? up) (?:by|with)"
_MUST = r"(?:MUST )?(?:always )?"
_ALL = r"(?:(?:we|you|they|everyone|everybody|staff) )?"
_IS = rf"{_MUST}(?:comes?|is|are|be)(?: always)? (?:the )?(?:very )?"
_AT_ONCE = r"(?: DIRECTLY| immediately| directly)?"
#: How sentences of their own build are written, and what makes rules of them; the first that can counts.
_FORMS: tuple[tuple[str, _Make], ...] = (
    (rf"{_WHOLE}{_STARTS} (?P<x>.+?),? and {_ENDS} (?P<y>.+)", _begin_and_end),
    (
        rf"{_ALL}{_MUST}(?:start|begin|kick off|open|commence)(?: off| out)?{_ITS} (?:by|with) (?P<x>.+)",
        _place("begin"),
    ),
    (rf"{_ALL}{_MUST}(?:end|finish|conclude|close|wrap up)(?: off| up)?{_ITS} (?:by|with) (?P<x>.+)", _place("end")),
    (rf"{_WHOLE}{_MUST}{_STARTS} (?P<x>.+)", _place("begin")),
    (rf"{_WHOLE}{_MUST}{_ENDS} (?P<x>.+)", _place("end")),
    (rf"(?P<x>.+?) {_IS}(?:first|FIRST)(?: {_THING})?{_WHERE}", _place("begin")),
    (rf"(?P<x>.+?) {_IS}(?:last|final)(?: {_THING})?{_WHERE}", _place("end")),
    (
        rf"the (?:very )?(?:first|FIRST) {_THING}(?P<scope>(?: .{{1,50}}?)?) (?:is|MUST be|MUST)(?: always)?"
        r"(?: to)? (?P<x>.+)", _place("begin"),
    ),
    (
        rf"the (?:very )?(?:last|final) {_THING}(?P<scope>(?: .{{1,50}}?)?) (?:is|MUST be|MUST)(?: always)?"
        r"(?: to)? (?P<x>.+)", _place("end"),
    ),
    (rf"(?P<x>.+?),? ATSTART{_OF}", _place("begin")),
    (rf"(?P<x>.+?),? ATEND{_OF}", _place("end")),
    (rf"ATSTART{_OF},? (?P<x>.+)", _place("begin")),
    (rf"ATEND{_OF},? (?P<x>.+)", _place("end")),
    (rf"(?P<x>.+?) NOT(?P<how>{_AT_ONCE}) be(?P<then>{_AT_ONCE}) followed by (?P<y>.+)", _never_followed),
    (rf"(?P<y>.+?) NOT(?P<how>{_AT_ONCE}) follow(?P<then>) (?P<x>.+)", _never_followed),
    (rf"(?P<x>.+?) {_MUST}(?:both )?precedes? (?P<y>.+)", _precedes),
    (
        rf"(?P<x>.+?) (?:MUST be|is|are)(?: always)?(?P<how>{_AT_ONCE}) followed(?P<then>{_AT_ONCE}) by (?P<y>.+)",
        _followed,
    ),
    (
        rf"(?P<x>.+?) (?:MUST be|is|are)(?: always)?(?P<how>{_AT_ONCE}) preceded(?P<then>{_AT_ONCE}) by (?P<y>.+)",
        _preceded,
    ),
    (
        rf"(?P<x>.+?) {_MUST}(?:requires?|needs?|calls? for|demands?|presupposes?|depends? on) (?P<y>.+)",
        _needs,
    ),
    (
        r"(?:either )?(?P<x>.+? or .+?),? (?:but )?(?:never|not|NOT) (?:be |at )?both"
        r"(?:, and one or the other MUST happen)?", _either,
    ),
    (r"(?:never|NOT) both (?P<x>.+? and .+)", _never_both),
    (r"(?:never|NOT) (?P<x>.+? and .+?) (?:both|(?:UNREAD|in) the same \w+|together)", _never_both),
    (r"(?P<x>.+? and .+?) (?:are mutually exclusive|exclude each other)", _never_both),
    (
        r"(?P<x>.+?) (?:MAY (?:be \w+|\w+(?: in| out)?) )?ANYORDER,? (?:but|and|UNREAD|provided(?: that)?) "
        r"(?P<y>.*\b(?:both|all|they)\b.+)", _any_order,
    ),
    (rf"(?!.*\b(?:{JOINS}|NOT|never)\b)(?P<x>.+?,? (?:and )?{_NEXT} .+?)(?:,? INORDER)?", _sequence),
    (r"(?P<x>.+?),? INORDER", _in_order),
    (
        r"(?P<noun>(?:every|each|any|all|an?) )(?P<done>\w+ed) (?P<what>\w+(?: \w+)?) "
        r"(?P<rest>MUST be .+ (?:LATER|NEXT))", _done_thing,
    ),
    (
        r"(?P<x>(?:every|each|any|an?) (?P<noun>[\w-]+(?: [\w-]+)?) MUST be [a-z]\w* ?.*?) "
        r"(?P<when>FIRST|LATER|NEXT)", _own_step,
    ),
    (r"between (?:any |every |each )?(?:two|2) (?P<x>[^,]+?), (?P<y>(?!.*\b(?:NOT|MAY|never)\b).+)", _between_any),
    (r"between (?P<x>.+?) and (?P<y>.+?)(?:,| (?=there)) ?(?P<z>.+)", _between_two),
    (r"(?P<z>.+?) between (?P<x>.+?) and (?P<y>.+)", _between_two),
    (r"(?P<x>.+?) AFTER (?P<y>.+?),? (?:and|but) BEFORE (?P<z>.+)", _placed),
    (r"(?P<y>.+?) MUST wait (?:UNTIL|for|ONLYAFTER|AFTER) (?P<x>.+?)(?: to (?P<verb>.+))?", _waits),
    (r"no (?P<x>[^,]+), no (?P<y>[^,]+)", _no_without),
    (rf"(?P<x>.+? (?:is|are|MUST be) \w+|(?:the|an?) [^,]+ \w+s) last{_WHERE}", _place("end")),
    (r"(?P<x>(?!.*\b(?:NOT|never|AFTER|BEFORE|WHEN|IF)\b).+ MUST .+) FIRST(?P<scope>)", _place("begin")),
    (r"(?:2|two) (?P<x>.+) in a row FORBIDDEN", _no_two),
    (r"(?P<x>.+?),? (?P<n>\d) times in a row", _in_a_row),
    (
        rf"(?P<x>(?:never|NOT) \w+) (?P<noun>(?:(?:an?|any|the) )?\w+(?: \w+)?) {_THAT} "
        r"(?P<no>(?:not|NOT) (?:yet )?(?:been |be )?)?(?P<done>\w+)", _never_to,
    ),
    (
        r"(?P<noun>(?:(?:an?|any|the) )?\w+(?: \w+)?) (?:that|which) (?:has |have )?(?:not|NOT)(?: yet)? (?:been|be) "
        r"(?P<done>\w+) (?P<rest>NOT .+)", _not_yet,
    ),
    (r"(?:the|our) (?:order|sequence)(?: of \w+)? (?:is|MUST be)(?: as follows)?:? (?P<x>.+)", _in_order),
    (
        r"(?P<x>.+?)[,;]? (?:(?:and|but) )?(?:only (?:then|LATER)|ONLYAFTER (?:that|this)),? MAY (?P<y>.+)", _only_then,
    ),
    (r"wait (?:UNTIL|for|AFTER) (?P<x>.+?)(?: to (?P<verb>.+?))?,? BEFORE (?P<y>.+)", _waits),
    (
        r"(?P<x>.+?) (?:is|are) (?:a |the )?(?:prerequisite|precondition|condition|requirement) (?:for|of) (?P<y>.+)",
        _precedes,
    ),
    (r"(?P<y>.+?) (?:is|are) (?:conditional|dependent|contingent) (?:up)?on (?P<x>.+)", _precedes),
    (r"(?P<y>.+?) (?:requires?|presupposes?) that (?P<x>.+ (?:has|have) .+)", _precedes),
    (
        r"(?P<noun>\w+(?: \w+){0,3}?) who (?P<did>(?:has|have) (?!not\b).+?),? (?P<rest>(?:MUST|NOT|MAY) .+)",
        _who_did,
    ),
    (
        rf"(?:whatever|whoever|(?:any|every)(?:thing|body|one)(?: that| which| who)?) {_HAS_BEEN} (?P<done>.+?) "
        r"(?P<rest>(?:MUST|NOT) be .+)", _whatever,
    ),
    (rf"(?P<x>.+?) {_MUST}(?:leads? to|results? in)(?P<how>)(?P<then>) (?P<y>.+)", _followed),
    (
        r"(?P<x>.+? and .+?) (?:NOT|(?:are|is) never) (?:(?:both|all|ever) )+(?:to )?(?P<verb>\w+ .+?|\w+)"
        r"(?P<scope>,? (?:in|within|on|during) (?:one|the same|a single|any one) \w+)?", _not_both,
    ),
    (r"(?P<x>.+?) (?:takes? place|happens?|comes?|goes|occurs?) AFTER (?P<y>.+)(?P<z>)", _placed),
    (
        r"(?P<noun>(?:any|every|each|an?) \w+(?: \w+)??) (?P<done>\w+ed(?: (?:at|by|in|on|to|from) .+?)?) "
        r"(?P<rest>(?:MUST|NOT) .+)", _done_to,
    ),
    (
        rf"(?P<noun>\w+(?: \w+){{0,4}}?)(?: {_THAT}|, AFTER) (?P<done>\w+(?: back| up| off| out| over)?"
        r"(?: (?:at|by|in|on|to) .+?)?),? (?P<rest>(?:MUST|NOT|MAY) .+)", _done_to,
    ),
)  # fmt: skip


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], _Make], ...]:
    """The forms as patterns; made when the first sentence is read, as they take long."""
    return tuple((re.compile(form), make) for form, make in _FORMS)
