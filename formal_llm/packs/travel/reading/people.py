"""Read the number of travellers and their budget."""

from __future__ import annotations

import re

from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.numbers import COUNT, DIGITS, IN_WORDS, amount_of, count_of
from formal_llm.packs.travel.reading.passages import Passage

_PEOPLE = (
    r"(?:people|persons?|individuals?|travell?ers?|guests|pax|ppl|participants|members|passengers|tourists|visitors|"
    r"friends|colleagues|students|adults?|of us|grown-ups|men|women)"
)
_KIN = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|sister|brother|friend|mother|father|mum|mom|dad|"
    r"son|daughter|aunt|uncle|cousin|colleague|grandmother|grandfather|roommate|buddy|best friend)"
)
_CHILDREN = r"(?:children|child|kids?|teenagers|teens|toddlers?|babies|baby|infants?|sons|daughters|young(?:er)? ones)"
_SMALL = r"(?:little|small|young|teenage|adult|grown-up|own|dear|good|best|old)"
_TOTALS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"\b(?:group|party|family|team|crew|bunch|company|total)\s+of\s+(?P<n>{COUNT})\b(?!\s*-?\s*(?:days|nights))",
        rf"\b(?P<pairs>{COUNT})\s+couples\b",
        rf"\bnumber\s+of\s+(?:people|persons|travell?ers|guests)\s*(?:is|:|=)?\s*(?P<n>{COUNT})\b",
        rf"(?<![$€£.,\d])\b(?P<n>{COUNT}|a single|single)[\s-]*(?:(?!per\b)\w+\s+)?{_PEOPLE}\b(?!\s*under)",
        rf"\b(?:we|us)\s*(?:two|both|\((?P<n>{COUNT})\))|\b(?:we|us),?\s+(?P<m>two|three|four|five|six)\b",
        rf"\b(?:we|there)\s*(?:are|'re|’re|will be|'ll be)\s+(?:only\s+)?(?P<n>{COUNT})\b"
        r"(?!\s*(?:days|nights|cities|couples))",
        rf"\bthere\s*(?:'ll be|will be|are)\s+(?P<n>{COUNT})\s+of\s+us",
        rf"\bthe\s+(?P<n>{COUNT})\s+of\s+us\b",
        rf"\bfor\s+(?P<n>{COUNT})\b(?!\s*[-–]?\s*(?:full\s+)?(?:days?|nights?|weeks?|hours?|cit|town|dollars|%|,?\d))",
    )
)
_ONE = re.compile(
    r"\b(?:solo|alone|by myself|on my own|(?:just|only|it'?s) me|me alone|single (?:person|travell?er|adult)|"
    r"only for me|just for me|one adult)\b",
    re.IGNORECASE,
)
_TWO = re.compile(
    rf"\b(?:couple|pair|duo|honeymoon|both of us|two of us|my {_KIN} and (?:I|me)|me and my {_KIN}|"
    rf"with my (?:{_SMALL} )?{_KIN})\b",
    re.IGNORECASE,
)
_THREE = re.compile(r"\b(?:trio|three of us|my parents and (?:I|me)|with my parents)\b", re.IGNORECASE)
_OTHERS = re.compile(
    rf"\bwith\s+(?P<n>{COUNT})\s+(?:other\s+|of my\s+)?(?:friends|colleagues|others|buddies|people|{_CHILDREN})\b|"
    rf"\bmy\s+(?P<m>{COUNT})\s+(?:{_SMALL}\s+)?(?:friends|brothers|sisters|{_CHILDREN})\b[^.,;!?]{{0,25}}\band\s+(?:I|me)\b",
    re.IGNORECASE,
)
_SUM = re.compile(
    rf"\b(?<!of )(?P<old>{COUNT}|mum,? (?:and )?dad|mom,? (?:and )?dad|a couple)\s*(?:adults?|grown-ups|parents)?\s*"
    r"(?:,|and|&|\+|with|,\s*and)\s*"
    rf"(?:our |their |my )?(?P<young>{COUNT}|a)\s+(?:{_SMALL}\s+)?{_CHILDREN}\b",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"\b(?:we|us|our|ours)\b", re.IGNORECASE)
_MONEY = re.compile(
    rf"(?:US\s?)?\$\s?(?P<a>{DIGITS})|\bUSD\s?(?P<b>{DIGITS})|"
    rf"(?<![\w.,$])(?P<c>{DIGITS})\s?(?:\$(?!\s?\d)|US dollars\b|dollars?\b|bucks\b|USD\b)|"
    rf"\b(?P<d>{IN_WORDS})\s+(?:dollars|bucks)\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"\bbudget(?:\s+(?:is|of|for|set|this|the|trip|our|my|at|to|limit|:))*\s*(?P<a>{DIGITS})(?!\s*(?:days|people|%))",
    re.IGNORECASE,
)
_OTHER_MONEY = re.compile(
    rf"[€£¥]\s?{DIGITS}|\b{DIGITS}\s?(?:€|£|euros?\b|EUR\b|pounds\b|GBP\b|yen\b|pesos\b)", re.IGNORECASE
)
_EACH = re.compile(r"\s*(?:per (?:person|head|capita|adult|traveller|traveler)|each|a head|apiece|pp\b)", re.IGNORECASE)


def read_people(passage: Passage, draft: QueryDraft) -> None:
    """Record the number of travellers. Contradictory numbers are an error."""
    text = passage.text
    found: list[tuple[int, tuple[int, int]]] = []
    for form, extra in ((_SUM, 0), (_OTHERS, 1)):
        for one in form.finditer(text):
            if form is _SUM:
                old = one["old"].casefold()
                count = (2 if " " in old else count_of(old)) + (1 if one["young"] == "a" else count_of(one["young"]))
            else:
                count = count_of(one["n"] or one["m"]) + extra
            found.append((count, one.span()))
    if not found:
        for form in _TOTALS:
            found += [(_count_people(one), one.span()) for one in form.finditer(text) if passage.is_free(*one.span())]
    if not found:
        for form, count in ((_THREE, 3), (_TWO, 2), (_ONE, 1)):
            found += [(count, one.span()) for one in form.finditer(text)]
            if found:
                break
    else:
        passage.mark_spans(*[one.span() for form in (_THREE, _TWO, _ONE) for one in form.finditer(text)])
    passage.mark_spans(*[span for _, span in found])
    counts = list(dict.fromkeys(count for count, _ in found))
    if len(counts) > 1:
        parts = " and ".join(repr(text[begin:end]) for _, (begin, end) in found)
        draft.add_problem("people", f"it is told in two ways how many travel: {parts}", "say it once: for 2 people")
    elif counts:
        draft.people = counts[0]
    elif _PLURAL.search(text):
        draft.add_problem("people", "it is not told how many travel", "say it: for 2 people")


def _count_people(found: re.Match[str]) -> int:
    words = found.groupdict()
    if words.get("pairs"):
        return 2 * count_of(words["pairs"])
    word = (words.get("n") or words.get("m") or "two").casefold()
    return 1 if word in ("single", "a single") else count_of(word)


def read_budget(passage: Passage, draft: QueryDraft) -> None:
    """Record the budget. Several different amounts are an error."""
    text = passage.text
    found = [one for one in _MONEY.finditer(text) if passage.is_free(*one.span())]
    if not found:
        found = [one for one in _BARE.finditer(text) if passage.is_free(*one.span("a"))]
    amounts = list(dict.fromkeys(amount_of(next(filter(None, one.groups()))) for one in found))
    if not amounts:
        if other := _OTHER_MONEY.search(text):
            draft.add_problem("budget", f"the budget is not in dollars: {other.group()}", "write it in dollars: $1,700")
        return
    others = list(_OTHER_MONEY.finditer(text))
    passage.mark_spans(*[one.span() for one in [*found, *others]])
    draft.not_understood += [one.group() for one in others]
    if len(amounts) > 1:
        listed = " and ".join(one.group().strip() for one in found)
        draft.add_problem("budget", f"there are several amounts of money: {listed}", "give one budget for all: $1,700")
        return
    draft.budget = amounts[0]
    each = next((each for one in found if (each := _EACH.match(text, one.end()))), None)
    if each is not None:
        passage.mark_spans(each.span())
        draft.budget = amounts[0] * (draft.people or 1)
