"""Sentences turned into fewer forms: the passive, pronouns, and what "and only after ..." leaves out.

Each turn keeps the meaning, or is not made. A pronoun is taken for the one thing that the sentence names before it;
where it names two, the pronoun stays, and so the sentence is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from formal_llm.authoring.names import IRREGULAR, RESERVED

#: Participles that are part of how sentences are built, and so name no step.
_BUILT = "allowed|permitted|required|needed|repeated|preceded|followed|used|called|performed|executed|excluded|finished"
_PARTICIPLE = rf"(?!(?:{_BUILT})\b)(?:[a-z]+ed|{'|'.join(sorted(IRREGULAR))})"
_WORD = rf"(?!(?:{'|'.join(sorted(RESERVED))})\b)[\w'-]+"
#: "the label may be printed": what is done to a thing, and how that is said.
_PASSIVE = re.compile(
    rf"\b(?P<which>the|an?|no|every|each|any) (?P<noun>(?:{_WORD} ){{1,3}}?)"
    r"(?P<modal>(?:(?:must|may|can|should|never|only) )*)"
    rf"(?:be|is|are|was|were|has been|have been|had been) (?P<verb>{_PARTICIPLE})\b"
)
#: A thing, as the pronouns after it mean it.
_THING = re.compile(rf"\b(?:the|an?|no|your|any|every|each) ({_WORD}(?: {_WORD}){{0,2}})")
_PRONOUN = re.compile(r"\b(?:it|them)\b")
#: What is said of a step behind a comma without naming it again.
_REST = re.compile(
    r"(?P<first>.+?),? (?:and|but)(?: (?:then )?(?:do so|that|this))? "
    r"(?P<rest>(?:only (?:directly )?(?:after|between)|never (?:directly )?(?:after|before|between|in a row)"
    r"|never more than|at most|at least|exactly \d+ times).*)"
)
_STEP = re.compile(
    rf"(?:never |always |no )?(?P<step>{_WORD}(?: (?:{_WORD}|any))*) "
    r"(?:at|exactly|only|never|may|must|can|before|after|between|happens|is|are|more|\d+)\b"
)


def active(text: str) -> str:
    """A sentence without the passive: "the label may be printed" is "printed label may".

    Questions stay as they are: what "if the account is blocked" asks is no step.
    """

    def turned(found: re.Match[str]) -> str:
        which = f"{found['which']} " if found["which"] in ("no", "every", "each", "any") else ""
        modal = "" if which == "no " else f" {found['modal'].strip()}"
        return f"{which}{found['verb']} {found['noun'].strip()}{modal}".strip()

    return text if re.match(r"(?:if|then if|otherwise)\b", text) else _PASSIVE.sub(turned, text)


def named(text: str) -> str:
    """A sentence in which the thing stands for its pronoun, where it names only one before it."""
    found = _PRONOUN.search(text)
    if found is None or text.startswith("if "):
        return text
    things = dict.fromkeys(thing[1] for thing in _THING.finditer(text[: found.start()]))
    return _PRONOUN.sub(f"the {next(iter(things))}", text) if len(things) == 1 else text


def parted(text: str) -> Iterator[str]:
    """A sentence as those that it holds: "taste it at least twice, but never before salting" is two."""
    found = _REST.fullmatch(text)
    step = _STEP.match(text)
    if found is None or step is None or step.end("step") > found.end("first"):
        yield text
        return
    yield found["first"].strip(" ,")
    never = "never " if found["rest"].startswith("never ") else ""
    yield f"{never}{step['step']} {found['rest'].removeprefix(never)}"
