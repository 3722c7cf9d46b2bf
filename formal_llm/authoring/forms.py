"""Sentences with a form of their own, whose rules are not determined by their clauses alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Protocol

from formal_llm.authoring.clauses import JOINS, Groups, ParsedClause, one_of_many, split_marks, split_mode, with_verb
from formal_llm.authoring.names import NoName, RefusedSentence, Unclear
from formal_llm.authoring.rules import SentenceRule, ask_after, ask_before, ask_until, each_mark, make_rule, scope_doubt
from formal_llm.authoring.verbs import base_form, gerund_base, participle_base


class Reader(Protocol):
    """A reader of the parts of one sentence."""

    def parse_rules(self, text: str) -> list[SentenceRule]:
        """Return the rules of a sentence."""

    def parse_main(self, text: str) -> ParsedClause:
        """Read a clause with no other clause joined to it."""

    def parse_steps(self, text: str) -> Groups:
        """Read the steps of a list of clauses."""


_Make = Callable[[Reader, re.Match[str]], list[SentenceRule]]


def _read_precedence(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    return [make_rule("before", A=sentence.parse_steps(found["x"]), B=sentence.parse_steps(found["y"]))]


def _place_rule(where: str) -> _Make:
    def read_place(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
        scope = " ".join((found.groupdict().get("scope") or "").split())
        main = sentence.parse_main(found["x"])
        if main.mode not in ("DO", "MUST") or main.least or main.most or main.marks or main.scope:
            raise NoName(found[0])
        return [make_rule(f"{where} with", scope_doubt(scope), A=main.steps)]

    return read_place


def _read_first(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    (begin_rule,) = _place_rule("begin")(sentence, found)
    return [replace(begin_rule, doubt="'first' is read as: before all other steps")]


def _begin_and_end(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    first, last = sentence.parse_steps(found["x"]), sentence.parse_steps(found["y"])
    return [make_rule("begin with", scope_doubt(found["scope"].strip()), A=first), make_rule("end with", A=last)]


def _read_need(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    marks, needed = split_marks(found["y"])
    again, first = split_marks(found["x"])
    if again - {"AGAIN"} or (again and marks - {"FIRST"}):
        raise NoName(found[0])
    step, other = sentence.parse_steps(first), sentence.parse_steps(needed)
    if again:
        return ask_until(ParsedClause("NOT", step, marks=frozenset(again), other=other))
    clause = ParsedClause("MUST", other, marks=frozenset(marks), other=step)
    if "NEXT" in marks or "LATER" in marks:
        return ask_after(clause)
    if _PERMISSION.search(needed) or re.search(r" (?:presupposes?|depends? on) ", found[0]):
        marks |= {"FIRST"}
    if not marks & {"FIRST", "OWN"}:
        if any("_" in name for groups in (step, other) for group in groups for name in group):
            raise RefusedSentence("it may come before or after; write 'first' or 'afterwards' behind it")
        doubt = "it may come before or after; write 'first' or 'afterwards' if one of them is meant"
        return [make_rule("requires", doubt, A=step, B=other)]
    return ask_before(other, step, clause)


def _read_followed(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    marks, text = split_marks(found["y"])
    marks |= {"NEXT"} if found["how"] or found["then"] else set()
    if " by " in text and " and " in text:
        raise NoName(found[0])
    step = sentence.parse_steps(found["x"])
    return ask_after(ParsedClause("MUST", sentence.parse_steps(text), marks=frozenset(marks), other=step))


def _read_preceded(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    marks, text = split_marks(found["y"])
    marks |= {"NEXT"} if found["how"] or found["then"] else set()
    step = sentence.parse_steps(found["x"])
    if " by " in text and " and " in text:
        raise NoName(found[0])
    first = sentence.parse_steps(text)
    return ask_before(first, step, ParsedClause("MUST", first, marks=frozenset(marks | each_mark(found["x"]))))


def _read_either(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    mode, text = split_mode(found["x"])
    steps = sentence.parse_steps(text)
    if mode not in ("DO", "MUST") or len(steps) != 1 or len(steps[0]) < 2:
        raise NoName(found[0])
    return [make_rule("exactly one of", A=steps)]


def _never_both(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    steps = sentence.parse_steps(found["x"])
    if len(steps) < 2:
        raise NoName(found[0])
    return [make_rule("at most one of", A=steps)]


def _in_order(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    done = re.fullmatch(r"(.+?) (?:MUST (?:always )?)?(?:go|come|happen|take place|occur|be done|are done)", found["x"])
    listed = done[1] if done else found["x"]
    steps = sentence.parse_steps(listed if " and " in listed else re.sub(r", (?=[^,]+$)", " and ", listed))
    ordered = make_rule("in this order", A=steps)
    all_happen = done or any("_" in name for group in steps for name in group)
    return [ordered, make_rule("must", A=steps)] if all_happen else [ordered]


def _between_two(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    if " " not in found["x"] and " " in found["y"] and gerund_base(found["x"]) and gerund_base(found["y"].split()[0]):
        raise NoName(found[0])  # "between closing and reopening the valve"
    start, end = sentence.parse_steps(found["x"]), sentence.parse_steps(found["y"])
    clause = sentence.parse_main(re.sub(r"^there (?:MUST be|is|are) (?:at least one )?", "MUST ", found["z"]))
    if clause.least or clause.most or clause.marks - {"ONLY"}:
        raise NoName(found[0])
    if "ONLY" in clause.marks:
        return [make_rule("only between", A=clause.steps, B=start, C=end)]
    if clause.mode == "NOT":
        return [make_rule("never between", A=clause.steps, B=start, C=end)]
    if clause.mode == "MAY":
        raise Unclear("it may, so it need not; write: only between")
    return [make_rule("between", A=start, B=clause.steps, C=end)]


def _own_step(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "a rollback MUST be announced LATER": the subject is a step, and what is done to it another one."""
    step = sentence.parse_steps(found["noun"])
    main = sentence.parse_main(found["x"])
    if main.least or main.most or main.marks - {"ALL"} or len(step) > 1:
        raise NoName(found[0])
    doubt = f"{found['noun']!r} is read as a step"
    clause = ParsedClause("MUST", main.steps, marks=frozenset({found["when"]}), other=step)
    rules = ask_before(main.steps, step, clause) if found["when"] == "FIRST" else ask_after(clause)
    return [replace(one, doubt=doubt) for one in rules]


def _between_any(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    step = sentence.parse_steps(one_of_many(found["x"]))
    main = sentence.parse_main(re.sub(r"^there (?:MUST be|is|are) ", "MUST ", found["y"]))
    if main.least or main.most or main.marks or main.mode not in ("MUST", "DO"):
        raise NoName(found[0])
    return [make_rule("between any two", A=step, B=main.steps)]


def _read_placed(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "migrations are run after the backup and before the release": the position of a step."""
    step = sentence.parse_main(found["x"])
    if step.mode not in ("MUST", "DO", "MAY") or step.least or step.most or step.marks:
        raise NoName(found[0])
    rules = [make_rule("before", A=sentence.parse_steps(found["y"]), B=step.steps)]
    return [*rules, make_rule("before", A=step.steps, B=sentence.parse_steps(found["z"]))] if found["z"] else rules


def _read_sequence(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "a first, then b, and finally c"."""
    if "ANYORDER" in found[0]:
        raise NoName(found[0])
    parts = re.split(
        rf",? (?:and )?{_NEXT},? |, (?:and )?(?=then )",
        re.sub(r",? INORDER$", "", found[0]).removeprefix("FIRST, ").removeprefix("FIRST "),
    )
    steps: Groups = ()
    for number, part in reversed([*enumerate(parts)]):  # "proof the dough, shape the loaves, then bake them"
        orders = part.split(", ")
        if len(orders) > 1 and all(base_form(one.split()[0]) == one.split()[0] for one in orders):
            parts[number : number + 1] = orders
    for part in parts:
        part = re.sub(r"^then ", "", part.strip(" ,")).removesuffix(" FIRST")
        words = part.split()
        if (
            participle_base(words[-1])
            and len(words) > 1
            and base_form(words[0]) != words[0]
            and not set(words) & {"be", "is", "are", "has", "have"}
        ):
            part = " ".join([*words[:-1], "be", words[-1]])  # "the card signed"
        steps += sentence.parse_main(part).steps
    if len(steps) != len(parts) or any(len(group) > 1 for group in steps):
        raise NoName(found[0])
    return [make_rule("in this order, once each", A=steps)]


def _never_followed(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    pattern = "never directly after" if found["how"] or found["then"] else "never after"
    first = sentence.parse_steps(found["x"])
    return [make_rule(pattern, A=sentence.parse_steps(found["y"]), B=first)]


def _any_order(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "a and b may be done in any order, but both before c"."""
    rest = re.sub(r"^(?:both|all(?: (?:\w+))?) are done (?=BEFORE)", f"{found['x']} ", found["y"])
    rest = re.sub(
        r"\b(?:both|all (?:two|three|four|five|of them)|they(?: all| both)?|all)(?= )", found["x"], rest, count=1
    )
    if rest == found["y"]:
        raise NoName(found[0])
    return sentence.parse_rules(rest)


def _done_to(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "a fish that has been thawed NOT be refrozen": what is done to a thing after another step on it."""
    noun = re.sub(r"^(?:any|every|each|an?|the|no) ", "", found["noun"])
    which = "no" if found["noun"].startswith("no ") else "the"
    return sentence.parse_rules(f"AFTER the {noun} be {found['done']}, {which} {noun} {found['rest']}")


def _read_waiting(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "icing the cake MUST wait UNTIL the glaze has set"."""
    first = f"{found['x']} VERB {found['verb']}" if found["verb"] else found["x"]
    then = sentence.parse_steps(found["y"])
    return [make_rule("before", A=sentence.parse_steps(first), B=then)]


def _no_without(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "no ticket, no entry"."""
    doubt = f"it is read as: {found['x']} comes before {found['y']}"
    return [make_rule("before", doubt, A=sentence.parse_steps(found["x"]), B=sentence.parse_steps(found["y"]))]


def _no_two(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    return [make_rule("no two in a row", A=sentence.parse_steps(one_of_many(found["x"])))]


def _in_a_row(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    main = sentence.parse_main(found["x"])
    if main.mode != "NOT" or not main.is_plain:
        raise NoName(found[0])
    return [make_rule("in a row, never", numbers={"n": int(found["n"])}, A=main.steps)]


def _never_to(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "never sell bread that has been dropped", or "... has not been weighed"."""
    noun = re.sub(r"^(?:an?|any|the) ", "", found["noun"])
    return sentence.parse_rules(
        f"{found['x']} the {noun} UNTIL the {noun} has been {found['done']}"
        if found["no"]
        else f"AFTER the {noun} be {found['done']}, {found['x']} the {noun}"
    )


def _not_yet(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "an invoice that has not been approved NOT be paid"."""
    noun = re.sub(r"^(?:an?|any|the) ", "", found["noun"])
    return sentence.parse_rules(f"the {noun} {found['rest']} UNTIL the {noun} has been {found['done']}")


def _who_did(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "guests who have checked out NOT be readmitted"."""
    noun = re.sub(r"^(?:any|every|each|an?|the|all|no) ", "", found["noun"])
    which = "no" if found["noun"].startswith("no ") else "the"
    return sentence.parse_rules(f"AFTER the {noun} {found['did']}, {which} {noun} {found['rest']}")


def _only_then(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "the site is observed, and only then MAY the patient leave"."""
    first = sentence.parse_main(found["x"].removesuffix(" FIRST"))
    if first.mode not in ("DO", "MUST") or not first.is_plain:
        raise NoName(found[0])
    return [make_rule("before", A=first.steps, B=sentence.parse_steps(with_verb(found["y"])))]


def _read_whatever(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "whatever is locked out MUST be unlocked LATER": the steps are named by their verbs alone."""
    done, *more = found["done"].split()
    rest = re.sub(r"be (\w+)", lambda match: participle_base(match[1]) or match[0], found["rest"], count=1)
    return sentence.parse_rules(f"AFTER {' '.join([participle_base(done) or done, *more])}, you {rest}")


def _done_thing(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "each accepted return MUST be shelved LATER"."""
    if not base_form(found["done"]):
        raise NoName(found[0])
    return sentence.parse_rules(f"AFTER the {found['what']} be {found['done']}, the {found['what']} {found['rest']}")


def _not_both(sentence: Reader, found: re.Match[str]) -> list[SentenceRule]:
    """Read "feed a and feed b NOT both be switched off in one window"."""
    verb = found["verb"] if found["verb"].startswith("be ") else f"VERB {found['verb']}"
    steps = sentence.parse_steps(f"{found['x']} {verb}")
    if len(steps) < 2:
        raise NoName(found[0])
    return [make_rule("at most one of", scope_doubt((found["scope"] or "").strip(" ,")), A=steps)]


#: Things that precede what they permit.
_PERMISSION = re.compile(r"\b(?:approval|permission|consent|authori[sz]ation|sign-off|clearance|go-ahead|permit)\b")
_HAS_BEEN = r"(?:is|are|was|were|gets|has been|have been)"
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
#: The forms of these sentences with the functions that return their rules; the first that succeeds applies.
_FORMS: tuple[tuple[str, _Make], ...] = (
    (rf"{_WHOLE}{_STARTS} (?P<x>.+?),? and {_ENDS} (?P<y>.+)", _begin_and_end),
    (
        rf"{_ALL}{_MUST}(?:start|begin|kick off|open|commence)(?: off| out)?{_ITS} (?:by|with) (?P<x>.+)",
        _place_rule("begin"),
    ),
    (
        rf"{_ALL}{_MUST}(?:end|finish|conclude|close|wrap up)(?: off| up)?{_ITS} (?:by|with) (?P<x>.+)",
        _place_rule("end"),
    ),
    (rf"{_WHOLE}{_MUST}{_STARTS} (?P<x>.+)", _place_rule("begin")),
    (rf"{_WHOLE}{_MUST}{_ENDS} (?P<x>.+)", _place_rule("end")),
    (rf"(?P<x>.+?) {_IS}(?:first|FIRST)(?: {_THING})?{_WHERE}", _place_rule("begin")),
    (rf"(?P<x>.+?) {_IS}(?:last|final)(?: {_THING})?{_WHERE}", _place_rule("end")),
    (
        rf"the (?:very )?(?:first|FIRST) {_THING}(?P<scope>(?: .{{1,50}}?)?) (?:is|MUST be|MUST)(?: always)?"
        r"(?: to)? (?P<x>.+)",
        _place_rule("begin"),
    ),
    (
        rf"the (?:very )?(?:last|final) {_THING}(?P<scope>(?: .{{1,50}}?)?) (?:is|MUST be|MUST)(?: always)?"
        r"(?: to)? (?P<x>.+)",
        _place_rule("end"),
    ),
    (rf"(?P<x>.+?),? ATSTART{_OF}", _place_rule("begin")),
    (rf"(?P<x>.+?),? ATEND{_OF}", _place_rule("end")),
    (rf"ATSTART{_OF},? (?P<x>.+)", _place_rule("begin")),
    (rf"ATEND{_OF},? (?P<x>.+)", _place_rule("end")),
    (rf"(?P<x>.+?) NOT(?P<how>{_AT_ONCE}) be(?P<then>{_AT_ONCE}) followed by (?P<y>.+)", _never_followed),
    (rf"(?P<y>.+?) NOT(?P<how>{_AT_ONCE}) follow(?P<then>) (?P<x>.+)", _never_followed),
    (rf"(?P<x>.+?) {_MUST}(?:both )?precedes? (?P<y>.+)", _read_precedence),
    (
        rf"(?P<x>.+?) (?:MUST be|is|are)(?: always)?(?P<how>{_AT_ONCE}) followed(?P<then>{_AT_ONCE}) by (?P<y>.+)",
        _read_followed,
    ),
    (
        rf"(?P<x>.+?) (?:MUST be|is|are)(?: always)?(?P<how>{_AT_ONCE}) preceded(?P<then>{_AT_ONCE}) by (?P<y>.+)",
        _read_preceded,
    ),
    (
        rf"(?P<x>.+?) {_MUST}(?:requires?|needs?|calls? for|demands?|presupposes?|depends? on) (?P<y>.+)",
        _read_need,
    ),
    (
        r"(?:either )?(?P<x>.+? or .+?),? (?:but )?(?:never|not|NOT) (?:be |at )?both"
        r"(?:, and one or the other MUST happen)?",
        _read_either,
    ),
    (r"(?:never|NOT) both (?P<x>.+? and .+)", _never_both),
    (r"(?:never|NOT) (?P<x>.+? and .+?) (?:both|(?:UNREAD|in) the same \w+|together)", _never_both),
    (r"(?P<x>.+? and .+?) (?:are mutually exclusive|exclude each other)", _never_both),
    (
        r"(?P<x>.+?) (?:MAY (?:be \w+|\w+(?: in| out)?) )?ANYORDER,? (?:but|and|UNREAD|provided(?: that)?) "
        r"(?P<y>.*\b(?:both|all|they)\b.+)",
        _any_order,
    ),
    (rf"(?!.*\b(?:{JOINS}|NOT|never)\b)(?P<x>.+?,? (?:and )?{_NEXT} .+?)(?:,? INORDER)?", _read_sequence),
    (r"(?P<x>.+?),? INORDER", _in_order),
    (
        r"(?P<noun>(?:every|each|any|all|an?) )(?P<done>\w+ed) (?P<what>\w+(?: \w+)?) "
        r"(?P<rest>MUST be .+ (?:LATER|NEXT))",
        _done_thing,
    ),
    (
        r"(?P<x>(?:every|each|any|an?) (?P<noun>[\w-]+(?: [\w-]+)?) MUST be [a-z]\w* ?.*?) "
        r"(?P<when>FIRST|LATER|NEXT)",
        _own_step,
    ),
    (r"between (?:any |every |each )?(?:two|2) (?P<x>[^,]+?), (?P<y>(?!.*\b(?:NOT|MAY|never)\b).+)", _between_any),
    (r"between (?P<x>.+?) and (?P<y>.+?)(?:,| (?=there)) ?(?P<z>.+)", _between_two),
    (r"(?P<z>.+?) between (?P<x>.+?) and (?P<y>.+)", _between_two),
    (r"(?P<x>.+?) AFTER (?P<y>.+?),? (?:and|but) BEFORE (?P<z>.+)", _read_placed),
    (r"(?P<y>.+?) MUST wait (?:UNTIL|for|ONLYAFTER|AFTER) (?P<x>.+?)(?: to (?P<verb>.+))?", _read_waiting),
    (r"no (?P<x>[^,]+), no (?P<y>[^,]+)", _no_without),
    (rf"(?P<x>.+? (?:is|are|MUST be) \w+|(?:the|an?) [^,]+ \w+s) last{_WHERE}", _place_rule("end")),
    (r"(?P<x>(?!.*\b(?:NOT|never|AFTER|BEFORE|WHEN|IF)\b).+ MUST .+) FIRST(?P<scope>)", _read_first),
    (r"(?:2|two) (?P<x>.+) in a row FORBIDDEN", _no_two),
    (r"(?P<x>.+?),? (?P<n>\d) times in a row", _in_a_row),
    (
        rf"(?P<x>(?:never|NOT) \w+) (?P<noun>(?:(?:an?|any|the) )?\w+(?: \w+)?) {_THAT} "
        r"(?P<no>(?:not|NOT) (?:yet )?(?:been |be )?)?(?P<done>\w+)",
        _never_to,
    ),
    (
        r"(?P<noun>(?:(?:an?|any|the) )?\w+(?: \w+)?) (?:that|which) (?:has |have )?(?:not|NOT)(?: yet)? (?:been|be) "
        r"(?P<done>\w+) (?P<rest>NOT .+)",
        _not_yet,
    ),
    (r"(?:the|our) (?:order|sequence)(?: of \w+)? (?:is|MUST be)(?: as follows)?:? (?P<x>.+)", _in_order),
    (
        r"(?P<x>.+?)[,;]? (?:(?:and|but) )?(?:only (?:then|LATER)|ONLYAFTER (?:that|this)),? MAY (?P<y>.+)",
        _only_then,
    ),
    (r"wait (?:UNTIL|for|AFTER) (?P<x>.+?)(?: to (?P<verb>.+?))?,? BEFORE (?P<y>.+)", _read_waiting),
    (
        r"(?P<x>.+?) (?:is|are) (?:a |the )?(?:prerequisite|precondition|condition|requirement) (?:for|of) (?P<y>.+)",
        _read_precedence,
    ),
    (r"(?P<y>.+?) (?:is|are) (?:conditional|dependent|contingent) (?:up)?on (?P<x>.+)", _read_precedence),
    (r"(?P<y>.+?) (?:requires?|presupposes?) that (?P<x>.+ (?:has|have) .+)", _read_precedence),
    (
        r"(?P<noun>\w+(?: \w+){0,3}?) who (?P<did>(?:has|have) (?!not\b).+?),? (?P<rest>(?:MUST|NOT|MAY) .+)",
        _who_did,
    ),
    (
        rf"(?:whatever|whoever|(?:any|every)(?:thing|body|one)(?: that| which| who)?) {_HAS_BEEN} (?P<done>.+?) "
        r"(?P<rest>(?:MUST|NOT) be .+)",
        _read_whatever,
    ),
    (rf"(?P<x>.+?) {_MUST}(?:leads? to|results? in)(?P<how>)(?P<then>) (?P<y>.+)", _read_followed),
    (
        r"(?P<x>.+? and .+?) (?:NOT|(?:are|is) never) (?:(?:both|all|ever) )+(?:to )?(?P<verb>\w+ .+?|\w+)"
        r"(?P<scope>,? (?:in|within|on|during) (?:one|the same|a single|any one) \w+)?",
        _not_both,
    ),
    (r"(?P<x>.+?) (?:takes? place|happens?|comes?|goes|occurs?) AFTER (?P<y>.+)(?P<z>)", _read_placed),
    (
        r"(?P<noun>(?:any|every|each|an?) \w+(?: \w+)??) (?P<done>\w+ed(?: (?:at|by|in|on|to|from) .+?)?) "
        r"(?P<rest>(?:MUST|NOT) .+)",
        _done_to,
    ),
    (
        rf"(?P<noun>\w+(?: \w+){{0,4}}?)(?: {_THAT}|, AFTER) (?P<done>\w+(?: back| up| off| out| over)?"
        r"(?: (?:at|by|in|on|to) .+?)?),? (?P<rest>(?:MUST|NOT|MAY) .+)",
        _done_to,
    ),
)


@cache
def compiled_forms() -> tuple[tuple[re.Pattern[str], _Make], ...]:
    """Return the forms as patterns, compiled when the first sentence is read, since this is slow."""
    return tuple((re.compile(form), make) for form, make in _FORMS)
