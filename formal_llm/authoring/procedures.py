"""Sentences that describe consecutive steps, such as "First A. Then B or C.".

A procedure is a formula over the steps that it names. It is performed once; other steps may occur anywhere in between
(:func:`weave_steps`), as other sentences allow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from formal_llm.authoring.events import EventReader
from formal_llm.authoring.meanings import any_order
from formal_llm.authoring.names import NoName, question_of
from formal_llm.automata.models.formula import EMPTY, Atom, Formula, Until, next_, or_, until

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
