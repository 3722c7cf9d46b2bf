"""The rules that a clause and the clause joined to it mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from formal_llm.authoring.clauses import Groups, ParsedClause
from formal_llm.authoring.names import NoName, RefusedSentence, Unclear


@dataclass(frozen=True)
class SentenceRule:
    """A rule of a sentence.

    Attributes:
        pattern: the name of a pattern.
        steps: the steps at its places.
        numbers: the numbers at its places.
        given: the fact under which it applies; empty if it always does.
        doubt: a possible misreading; empty if there is none.
        agents: who performs which step, as far as the sentence specifies it.
    """

    pattern: str
    steps: dict[str, Groups]
    numbers: dict[str, int]
    given: str = ""
    doubt: str = ""
    agents: Mapping[str, AbstractSet[str]] = field(default_factory=dict)


def make_rule(pattern: str, doubt: str = "", numbers: dict[str, int] | None = None, **steps: Groups) -> SentenceRule:
    """Return a rule of this kind for these steps."""
    return SentenceRule(pattern, steps, numbers or {}, doubt=doubt)


def each_mark(text: str) -> set[str]:
    """Return whether a clause applies to each or to every one, as a mark of the clause."""
    return {"EACH"} if re.match(r"\s*each\b", text) else {"EVERY"} if re.match(r"\s*every\b", text) else set()


def rules_of(clause: ParsedClause) -> list[SentenceRule]:
    """Return the rules that a clause and the clause joined to it mean."""
    if not clause.join:
        return _rules_alone(clause)
    if clause.scope and "ALL" not in clause.marks:
        raise Unclear(f"{clause.scope!r} is left over")
    repeated = clause.most == 1 or "AGAIN" in clause.marks
    if "INBETWEEN" in clause.marks and repeated and (clause.mode, clause.join) == ("NOT", "WITHOUT"):
        return [make_rule("between any two", A=clause.steps, B=clause.other)]
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
        return [make_rule("needs n first", doubt, numbers={"n": clause.least or 0}, B=clause.other, A=clause.steps)]
    return make(clause)


def _rules_alone(clause: ParsedClause) -> list[SentenceRule]:
    steps, least, most = clause.steps, clause.least, clause.most
    if clause.marks - {"ALL"}:
        raise NoName("a word is left over")
    doubt = scope_doubt(clause.scope)
    if least is not None and least == most:
        return [make_rule("exactly", doubt, numbers={"n": least}, A=steps)]
    if least is not None:
        return [make_rule("at least", doubt, numbers={"n": least}, A=steps)]
    if most is not None and clause.mode == "NOT":
        return [make_rule("never n times", doubt, numbers={"n": most + 1}, A=steps)]
    if most is not None:
        return [make_rule("at most", doubt, numbers={"n": most}, A=steps)]
    if clause.mode == "MUST" and "ALL" in clause.marks:
        raise RefusedSentence("it asks something of each thing of a kind; write what comes before it or after it")
    if clause.mode == "DO":
        raise Unclear("it names one step, and not when")
    return [make_rule({"MUST": "must", "MAY": "may", "NOT": "never"}[clause.mode], A=steps)]


def scope_doubt(scope: str) -> str:
    """Return the possible misreading if a sentence has a scope: ``per shift``."""
    return f"{scope!r} is read as: in each plan" if scope else ""


def ask_before(first: Groups, then: Groups, clause: ParsedClause) -> list[SentenceRule]:
    """Require that the first of the one precedes the other."""
    if "NEXT" in clause.marks:
        return [make_rule("directly preceded", A=then, B=first)]
    if "ALL" in clause.marks and clause.join == "BEFORE":
        return [make_rule("all before", A=first, B=then)]
    doubt = "one may serve for several; write 'each', or 'of its own', if that is not meant"
    rules = [
        make_rule("before", doubt if clause.marks & {"OWN", "EACH", "EVERY"} == {"EVERY"} else "", A=first, B=then)
    ]
    if clause.marks & {"OWN", "EACH"} and clause.join not in ("UNTIL", "UNLESS"):
        rules += [make_rule("between any two", A=then, B=first)]
    return rules


def ask_after(clause: ParsedClause) -> list[SentenceRule]:
    """Require something after each occurrence of something else."""
    if "FIRST" in clause.marks:
        return ask_before(clause.steps, clause.other, replace(clause, marks=clause.marks - {"FIRST"}))
    if len(clause.other) > 1:
        raise Unclear("say after which one of them; or write one sentence for each")
    if "NEXT" in clause.marks:
        return [make_rule("directly followed", A=clause.other, B=clause.steps)]
    own = [make_rule("between any two", A=clause.other, B=clause.steps)] if "OWN" in clause.marks else []
    return [make_rule("followed", A=clause.other, B=clause.steps), *own]


def _tail_after(clause: ParsedClause) -> list[SentenceRule]:
    if clause.marks & {"EACH", "EVERY"} or "NEXT" in clause.marks or "LATER" in clause.marks:
        return ask_after(clause)
    if "ONLY" in clause.marks:
        return ask_before(clause.other, clause.steps, clause)
    step, before = (
        " and ".join(name.replace("_", " ") for group in all_ for name in group)
        for all_ in (clause.steps, clause.other)
    )
    raise RefusedSentence(
        f"it may mean: {step} only after {before}; or: after each {before}, {step} must happen; write one of them"
    )


def _not_after(clause: ParsedClause) -> list[SentenceRule]:
    if len(clause.other) > 1:
        raise Unclear("say after which one of them; or write one sentence for each")
    return [
        make_rule("never directly after" if "NEXT" in clause.marks else "never after", A=clause.steps, B=clause.other)
    ]


def ask_until(clause: ParsedClause) -> list[SentenceRule]:
    """Forbid the clause until the other clause has happened."""
    if "AGAIN" in clause.marks:
        doubt = "it is read as: one since the last time, and not only one before the second time"
        return [make_rule("between any two", doubt, A=clause.steps, B=clause.other)]
    return ask_before(clause.other, clause.steps, clause)


def _only_before(clause: ParsedClause) -> list[SentenceRule]:
    if "ONLY" not in clause.marks:
        raise Unclear("it may, so it need not; write: only before")
    return [make_rule("never after", A=clause.steps, B=clause.other)]


def _must_unless(clause: ParsedClause) -> list[SentenceRule]:
    if clause.mode != "MUST" or not clause.is_plain:
        raise Unclear("it is not clear what is asked of plans")
    return [make_rule("must, unless", A=clause.steps, B=clause.other)]


_TABLE: dict[tuple[str, str], Callable[[ParsedClause], list[SentenceRule]]] = {
    ("BEFORE", "MUST"): lambda one: ask_before(one.steps, one.other, one),
    ("BEFORE", "NOT"): lambda one: (
        [make_rule("never directly after", A=one.other, B=one.steps)] if "NEXT" in one.marks else ask_until(one)
    ),
    ("BEFORE", "MAY"): _only_before,
    ("AFTER", "MUST"): _tail_after,
    ("AFTER", "NOT"): _not_after,
    ("AFTER", "MAY"): _tail_after,
    ("WHEN", "MUST"): ask_after,
    ("WHEN", "NOT"): _not_after,
    ("WHEN", "MAY"): _tail_after,
    ("ONLYAFTER", "MUST"): ask_until,
    ("ONLYAFTER", "MAY"): ask_until,
    ("UNTIL", "NOT"): ask_until,
    ("UNLESS", "NOT"): ask_until,
    ("WITHOUT", "NOT"): ask_until,
    ("UNLESS", "MAY"): _not_after,
    ("UNLESS", "MUST"): _must_unless,
}


def ask_between(join: str, after: Groups, clause: ParsedClause) -> list[SentenceRule]:
    """Require, from some event on, that the one precedes the other."""
    if join in ("AFTER", "WHEN") and clause.join == "UNLESS" and clause.mode in ("MUST", "DO") and clause.is_plain:
        return [make_rule("followed, unless", A=after, B=clause.steps, C=clause.other)]
    if (
        join not in ("AFTER", "WHEN")
        or len(after) > 1
        or clause.least
        or clause.most
        or clause.marks - {"FIRST", "AGAIN"}
    ):
        raise Unclear("it is not clear what is asked of plans")
    if clause.join == "BEFORE" and clause.mode in ("MUST", "DO"):
        between = make_rule("between", A=after, B=clause.steps, C=clause.other)
        return [make_rule("followed", A=after, B=clause.steps), between]  # it is both required and ordered
    if (clause.join in ("UNTIL", "BEFORE", "UNLESS", "WITHOUT") and clause.mode == "NOT") or clause.join == "ONLYAFTER":
        first, then = clause.other, clause.steps
    else:
        raise Unclear("it is not clear what is asked of plans")
    return [make_rule("between", A=after, B=first, C=then)]
