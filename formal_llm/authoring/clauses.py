"""Clauses of simplified sentences: their modes (such as obligation or prohibition), bounds and steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from formal_llm.authoring.events import EventReader
from formal_llm.authoring.meanings import Group
from formal_llm.authoring.names import NoName, Unclear
from formal_llm.authoring.simplifying import simplify
from formal_llm.authoring.verbs import PARTICLES, base_form, gerund_base, participle_base
from formal_llm.authoring.word_forms import singularize_noun

#: Steps that are all meant; each of them is one step or several alternatives.
Groups = tuple[Group, ...]
#: The words that join a clause to the main one.
JOINS = "ONLYAFTER|SOONAFTER|BEFORE|AFTER|WHEN|IF|UNTIL|UNLESS|WITHOUT"
#: The scope that corresponds to one plan: "per shift".
_SCOPE = re.compile(
    r",? ((?:per|(?:with)?in (?:each|every|any|one|a single)|for (?:each|every|any)|"
    r"(?:UNREAD|on|at|of) (?:each|every|the same)) \w+)$"
)
_PARTS = re.compile(r"\s*,\s*(?:and |or |nor )?|\s+(?:and|or|nor)\s+")
_DUMMY = re.compile(r"(?:happen|occur|take place|come|go|be (?:done|made|run)|follow)")
_DUMMY_NOW = re.compile(r"(.+?) (?:comes?|happens?|occurs?|takes? place|is done|are done)")
_PEOPLE = "you|we|they|anyone|anybody|someone"
_FINITE = {"be", "is", "are", "was", "were", "has", "have", "VERB"}
_NEAR = {"to", "from", "by", "into", "for", "at", "with", "of"}
_ARTICLES = ("the", "a", "an", "your", "its", "their")
_MARKS = ("NEXT", "LATER", "OWN", "AGAIN", "DIRECTLY", "INBETWEEN")
_ONLY = re.compile(
    r" only$|\b(?<=MAY) only\b|\b(?<=MUST) only\b|\b(?<=is) only\b|\b(?<=are) only\b|^only (?!\d|one |a single)"
)
_HOW = "at most|at least|exactly|more than"
#: The bounds relative to the number; None if there is no bound.
_BOUNDS = {"at most": (None, 0), "at least": (0, None), "more than": (1, None), "exactly": (0, 0), "only": (0, 0)}
_TIMES = re.compile(rf",? ?(?:({_HOW}|only) )?(\d{{1,4}}) times(?: (at most|at least))?")
#: "at most 3 encores", before or after the verb.
_MANY = re.compile(
    rf"((?:NOT |never |MUST )?)({_HOW}|only|a single)(?: (\d{{1,4}}|one|a single))? (?!(?:one )?of\b|steps?\b)([a-z].+)"
)
_MANY_DONE = re.compile(rf"(.+? )({_HOW}) (\d{{1,4}}) (?!of\b|steps?\b)([a-z].+)")


@dataclass(frozen=True)
class ParsedClause:
    """The main clause of a sentence, and the clause that is joined to it.

    Attributes:
        mode: obligation, permission, prohibition or order: ``MUST``, ``MAY``, ``NOT``, ``DO``.
        least: the minimum number of times; None if there is none.
        most: the maximum number of times.
        marks: modifiers: ``NEXT``, ``LATER``, ``FIRST``, ``OWN``, ``AGAIN``, ``INBETWEEN``, ``ONLY``;
                ``EACH`` and ``EVERY`` of the other clause, ``ALL`` if the clause itself applies to each of some things.
        join: the word that joins the other clause: one of :data:`JOINS`.
        other: the steps of the other clause.
        scope: the scope that corresponds to one plan: "per shift".
    """

    mode: str
    steps: Groups
    least: int | None = None
    most: int | None = None
    marks: frozenset[str] = frozenset()
    join: str = ""
    other: Groups = ()
    scope: str = ""

    @property
    def obliges(self) -> bool:
        """Whether it requires its steps and nothing else."""
        return self.mode in ("MUST", "DO") and self.is_plain

    @property
    def is_plain(self) -> bool:
        """Whether it has a mode and no modifiers."""
        return not (self.least or self.most or self.marks or self.scope)


def read_steps(phrase: str, reader: EventReader | None = None) -> Groups:
    """Read the steps of a list of clauses: all of some steps, each of which is one or several alternatives.

    ``"a and b"`` is ``(("a",), ("b",))``: both. ``"a, b or c"`` is ``(("a", "b", "c"),)``: any one of them.

    Args:
        phrase: the list.
        reader: reads the clauses of this sentence.

    Raises:
        NoName: a part is not a step, or there are both ``and`` and ``or``.
    """
    text = re.sub(r"^(?:both|either|neither|there (?:MUST be|is|has been)) ", "", phrase.strip(" ,"))
    text = re.sub(r"^(?:every|each|any|all) (?:single )?", "the ", re.sub(r",? ?\bANYORDER\b,?", "", text))
    text = re.sub(r"\b(?:either (?=.+ or )|both (?=.+ and ))", "", text)
    text = re.sub(rf"\b({_PEOPLE}|it) (?:MAY|MUST) ", r"\1 ", text)
    if re.search(r"\b(?!VERB)[A-Z]{3,}\b", text):
        raise NoName(text)
    joins = set(re.findall(r"(?<=[\s,])(and|or|nor)(?=\s)", text))
    parts = _complete_parts(_shared_subject(text) or _PARTS.split(text), joins == {"or"})
    if len(joins) > 1 or (len(parts) > 1 and not joins):
        raise NoName(text)
    reader = reader or EventReader()
    names = [reader.read(part).name for part in parts]
    if joins == {"or"} and _shared_subject(text) and len(set(names)) == 1:  # "a parent or a guardian signs the form"
        reader.agents[names[0]] = {" or ".join(sorted(reader.agents[names[0]]))}
        return ((names[0],),)
    if len(set(names)) < len(names) or any(b.startswith(f"{a}_by_") for a in names for b in names):
        raise NoName(text)
    return (tuple(names),) if joins == {"or"} else tuple((name,) for name in names)


def _shared_subject(text: str) -> list[str]:
    """Return the clauses of a verb with several subjects: "the safe and the till be opened"; else an empty list."""
    words = text.split()
    at = next((number for number, word in enumerate(words) if word in _FINITE), 0)
    subjects = _PARTS.split(" ".join(words[:at]))
    if at < 1 or len(subjects) < 2 or any(EventReader().has_verb(one) for one in subjects):
        return []
    return [f"{re.sub('^(?:both|either|neither) ', '', one)} {' '.join(words[at:])}" for one in subjects]


def _complete_parts(parts: Sequence[str], either: bool) -> list[str]:
    """Complete each part of a list of clauses with the subject, verb or object that it shares with another part."""
    return list(parts) if len(parts) == 1 else [_complete_part(part, parts, either) for part in parts]


def _complete_part(part: str, parts: Sequence[str], either: bool) -> str:
    words, first = part.split(), parts[0].split()
    passive = re.match(r"(.+? (?:be|is|are|been|was|were)) ", parts[0])
    if part is parts[0]:
        last = parts[-1].split()
        alone = (len(words) == 1 and (gerund_base(part) or base_form(part) == part)) or words[-2:-1] == ["VERB"]
        if not alone or len(last) == 1 or not (gerund_base(last[0]) or base_form(last[0])) or last[1] in _NEAR:
            return part
        return f"{part} {' '.join(last[1:])}"  # "sweep and air the hall"
    if passive and participle_base(words[0]) and (len(words) == 1 or words[1] in PARTICLES | _NEAR):
        return f"{passive[1]} {part}"  # "the dough be kneaded and baked"
    if passive and participle_base(words[-1]) and not set(words) & _FINITE:
        return f"{' '.join(words[:-1])} be {words[-1]}"  # "and a heap dump taken"
    verb = (
        first[: first.index("VERB") + 2]
        if "VERB" in first
        else first[:1]
        if gerund_base(first[0]) or base_form(first[0]) == first[0]
        else []
    )
    has_own_verb = "VERB" in words or set(words) & _FINITE or gerund_base(words[0]) or base_form(words[0])
    if has_own_verb or not verb or len(first) == len(verb):
        if "VERB" in verb and base_form(words[0]) == words[0]:
            return f"{' '.join(verb[:-1])} {part}"
        if passive and not has_own_verb:
            raise NoName(part)
        return (
            part
            if len(words) > 1 or part is parts[-1] or len(parts[-1].split()) == 1
            else f"{part} {' '.join(parts[-1].split()[1:])}"
        )
    if words[0] not in _ARTICLES and not either:
        raise NoName(part)  # "terms and conditions" may be one thing, or two
    return f"{' '.join(verb)} {part}"


# -- one clause --------------------------------------------------------------------------------------------------------


def read_main(text: str, reader: EventReader) -> ParsedClause:
    """Read a clause that obliges, allows or forbids, with no other clause joined to it.

    Raises:
        NoName: it has no step, or a word remains unread.
    """
    scope = _SCOPE.search(text)
    marks, text = split_marks(text[: scope.start()] if scope else text)
    every = re.match(r"((?:every|each|any|all) \w+)", text)
    if every or re.search(r" (?:every|each) ", text):
        marks |= {"ALL"}
    if re.match(r"(?:two|three|four|five|six|several|\d+) ", text) and not re.match(r"\d+ times", text):
        raise NoName(text)  # a number of things is not a number of times: at least 2 ...
    bare = re.search(r"(?<!most )(?<!least )(?<!exactly )(?<!only )(?<!than )\b\d+ times(?! at)", text) is not None
    least, most, text = split_count(text)
    mode, text = split_mode(text)
    if mode == "NOT" and least is not None and least > 0 and most in (None, least):
        most, least = least - 1, None
    elif mode == "MAY" and least:
        if bare or most != least:
            raise Unclear("it may, so it need not; write: at most, or exactly")
        least = None
    of_one = scope[1] if scope else every[1] if every and (least or most) else ""
    return ParsedClause(mode, read_steps(text, reader), least, most, frozenset(marks), scope=of_one)


def split_marks(text: str) -> tuple[set[str], str]:
    """Return the marks of a clause, and the clause without them."""
    marks = {mark for mark in _MARKS if re.search(rf"\b{mark}\b", text)}
    text = re.sub(rf",? ?\b(?:{'|'.join(_MARKS)}|ANYORDER)\b,?", "", text).strip(" ,")
    if _ONLY.search(text):
        marks.add("ONLY")
        text = _ONLY.sub("", text)
    if text.endswith((" FIRST", " first")):
        marks.add("FIRST")
        text = text[:-6]
    return marks, text.strip()


def split_count(text: str) -> tuple[int | None, int | None, str]:
    """Return the least and the most number of times of a clause, and the clause without them."""
    if re.search(rf"\b(?:{_HOW}|only|a single)\b", text):
        text = re.sub(r",? (?:in total|in all|altogether|overall)$", "", text)
    found = _TIMES.search(text)
    if found is not None:
        bound, number = found[1] or found[3] or "exactly", int(found[2])
        text = (text[: found.start()] + text[found.end() :]).strip()
    else:
        found = _MANY.match(text) or _MANY_DONE.match(text)
        if found is None:
            return None, None, text
        bound = "exactly" if found[2] == "a single" else found[2]
        number = int(found[3]) if found[3] and found[3].isdigit() else 1
        text = found[1] + one_of_many(found[4])
    low, high = _BOUNDS[bound]
    return (None if low is None else number + low), (None if high is None else number + high), text


def one_of_many(text: str) -> str:
    """Change the first noun to the singular: "restarts of the service ALLOWED" means a restart."""
    words = text.split()
    ends = {"of", "to", "for", "from", "in", "MAY", "MUST", "ALLOWED", "REQUIRED", "FORBIDDEN", "are", "is"}
    at = next((number for number, word in enumerate(words) if word in ends), len(words))
    if at:
        words[at - 1] = singularize_noun(words[at - 1])
    return " ".join(words)


def split_mode(text: str) -> tuple[str, str]:
    """Return the mode of a clause (obligation, permission, prohibition, order), and the clause as a description.

    Raises:
        NoName: it has two helping verbs, or lacks a required one.
    """
    text = re.sub(r" (FORBIDDEN|REQUIRED|ALLOWED) ((?:in|on|at|to|for|from|with|by) .+)$", r" \2 \1", text)
    judged = re.fullmatch(r"(?P<no>(?:neither|no) )?(?P<what>.+) (?P<how>FORBIDDEN|REQUIRED|ALLOWED)", text)
    if judged:
        if judged["no"] and judged["how"] != "ALLOWED":
            raise NoName(text)
        return "NOT" if judged["no"] else {"FORBIDDEN": "NOT", "REQUIRED": "MUST", "ALLOWED": "MAY"}[
            judged["how"]
        ], judged["what"]
    if text.startswith("NEVER "):  # "under no circumstances may reception disclose a number"
        return "NOT", with_verb(text[6:])
    nothing = re.fullmatch(r"nothing (?:MAY |MUST |is |are )(?:be )?(\w+)(.*)", text)
    if nothing and participle_base(nothing[1]):
        return "NOT", f"{participle_base(nothing[1])}{nothing[2]}"
    never = re.fullmatch(r"(never|no|neither) (.+)", text)
    if never:
        return "NOT", _describe_forbidden(never[1], never[2])
    found = re.fullmatch(r"(|.+? )(MUST|MAY|NOT) (.+)", text)
    if found is None:
        dummy = _DUMMY_NOW.fullmatch(text)
        return "DO", dummy[1] if dummy else text
    return _split_modal(found[2], found[1].strip(), found[3])


def _describe_forbidden(word: str, text: str) -> str:
    """Return what "never", "no" or "neither" forbids, as a clause."""
    first, _, rest = text.partition(" ")
    verb = base_form(first)
    done = re.fullmatch(r"be (\w+)(.*)", text)
    if word == "never" and done and participle_base(done[1]):  # "nobody may be hired"
        return f"{participle_base(done[1])}{done[2]}"
    if word == "never" and verb and verb != first and not gerund_base(first):  # "nobody rolls back"
        text = f"{verb} {rest}".strip()
    return re.sub(r" (?:MUST|MAY) ", " VERB ", re.sub(r" (?:MUST|MAY) be ", " be ", text))


def _split_modal(mode: str, subject: str, rest: str) -> tuple[str, str]:
    """Return the mode of a clause with a helping verb, and the clause without it: "the label", "MAY", "be printed"."""
    if re.search(r"\b(?:MUST|MAY|NOT)\b", rest):
        raise NoName(rest)
    if re.match(r"(?:no|neither) ", subject):
        mode, subject = "NOT", subject.partition(" ")[2]
    if rest.startswith("have been "):
        rest = rest.replace("have been ", "be ", 1)
    elif rest.startswith("have "):
        first, _, remainder = rest[5:].partition(" ")
        rest = f"{participle_base(first) or first} {remainder}".strip()
    if re.search(r"\b(?:is|are|was|were|has|have)\b", subject):
        raise NoName(subject)  # "work is suspended and" is a clause of its own
    if subject in ("", "you", "we"):
        return mode, rest
    if subject == "there":
        return mode, re.sub(r"^(?:be|happen) ", "", rest)
    if _DUMMY.fullmatch(rest):
        return mode, subject
    return mode, f"{subject} {rest}" if rest.startswith("be ") else f"{subject} VERB {rest}"


def with_verb(text: str) -> str:
    """Mark the verb of a clause whose helping verb preceded the subject.

    Raises:
        NoName: it has no known verb.
    """
    words = text.split()
    begin = 2 if words[0] in ("the", "a", "an", "any") else 1
    bare = [word.rstrip(",") for word in words]
    at = next((number for number in range(begin, len(words)) if base_form(bare[number]) == bare[number]), None)
    if at is None:
        raise NoName(text)
    return " ".join([*words[:at], *([] if bare[at] == "be" else ["VERB"]), *words[at:]])


def steps_in(sentence: str) -> list[str]:
    """Return the names of a sentence's steps, as far as its clauses can be read one by one."""
    names: list[str] = []
    text = _TIMES.sub("", simplify(sentence))
    for part in _split_phrases(text):
        try:
            clause = split_mode(split_marks(part)[1])[1]
            names += [name for group in read_steps(clause) for name in group]
        except NoName:
            continue
    return list(dict.fromkeys(names))


def _split_phrases(text: str) -> Iterable[str]:
    return re.split(rf",|;|\b(?:{JOINS}|between|and|or|then|followed by)\b", text)
