"""Read the number of travellers and their budget."""

from __future__ import annotations

import re
from decimal import ROUND_FLOOR, Decimal

from formal_llm.packs.travel.query import TripWish, WishKind, dollars
from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.numbers import COUNT, DIGITS, IN_WORDS, amount_of, count_of
from formal_llm.packs.travel.reading.passages import Passage
from formal_llm.packs.travel.rows import Money

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
        rf"(?<![$€£.,\d])\b(?!one of us)(?P<n>{COUNT}|a single|single)[\s-]*(?:(?!per\b)\w+\s+)?{_PEOPLE}\b(?!\s*under)",
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
    rf"\bwith\s+(?P<n>{COUNT})\s+(?:(?:other\s+|of my\s+)?(?:friends|colleagues|others|buddies|{_CHILDREN})|other people)\b|"
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
_CURRENCY = r"(?:€|£|¥|euros?\b|EUR\b|pounds?\b|GBP\b|yen\b|pesos?\b)"
#: The dollars for one of another currency.
_RATE = re.compile(
    rf"\b(?:1|one|an?)\s*{_CURRENCY}\s*(?:is|=|equals|costs|for)\s*\$?\s*(?P<a>\d+(?:\.\d+)?)(?:\s*(?:\$|dollars?|USD))?|"
    rf"{_CURRENCY}\s?1\s*(?:is|=|equals)\s*\$?\s*(?P<b>\d+(?:\.\d+)?)(?:\s*(?:\$|dollars?|USD))?|"
    rf"\$?\s?(?P<c>\d+(?:\.\d+)?)\s*(?:\$|dollars?|USD)?\s*(?:a|per|to the|for (?:a|one)|/)\s*{_CURRENCY}|"
    r"\brate\s*(?:of|is|:)?\s*(?P<d>\d+\.\d+)",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"[\s,]*(?:and )?(?:(?:(?:per|an?|each|every|for each|for every)\s|/)\s*"
    r"(?P<unit>person|head|capita|adult|travell?er|day|night|meal)\b|(?P<each>each|apiece|pp|for each of us)\b)",
    re.IGNORECASE,
)
_DAILY = re.compile(r"\b(?:daily|per day|a day)\b[^.;,!?]{0,30}$", re.IGNORECASE)
_WHAT = (
    r"(?:(?P<bed>hotels?|rooms?|accommodations?|lodgings?|beds?)|(?P<meals>meals?|food|eating|restaurants?|dinners?)|"
    r"(?P<ways>flights?|transport\w*|tickets?|fares?))"
)
#: The part of a trip that an amount is for, behind it and before it.
_FOR_WHAT = re.compile(rf"^\s*(?:in total |at most )?(?:for|on)\s+(?:(?:the|our|my|all|a)\s+)*{_WHAT}\b", re.IGNORECASE)
_WHAT_COSTS = re.compile(
    rf"\b{_WHAT}\s+(?:(?!and\b|or\b|our\b|with\b|for\b)\w+\s+){{0,2}}?(?:may|can|should|must|costs?|budget|under|up to|"
    r"for|at)\b(?:(?!\bbudget is|\band\b)[^.;,!?]){0,40}$",
    re.IGNORECASE,
)


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
    """Record the budget, and bounds for parts of the trip. Several different budgets are an error."""
    text = passage.text
    rates = list(_RATE.finditer(text)) if _OTHER_MONEY.search(text) else []
    passage.mark_spans(*[one.span() for one in rates])
    rate = Decimal(next(filter(None, rates[0].groups()))) if rates else None
    found = [one for one in _MONEY.finditer(text) if passage.is_free(*one.span())]
    if not found:
        found = [one for one in _BARE.finditer(text) if passage.is_free(*one.span("a"))]
    others = [one for one in _OTHER_MONEY.finditer(text) if passage.is_free(*one.span())]
    passage.mark_spans(*[one.span() for one in [*found, *others]])
    amounts: list[tuple[Money, re.Match[str]]] = [
        (amount_of(next(filter(None, one.groups()))), one) for one in found
    ]  # fmt: skip
    for one in others:
        if rate is not None:
            exact = amount_of(re.sub(r"[^\d.,]", "", one.group())) * rate
            amounts.append((dollars(exact.quantize(Decimal("0.01"), ROUND_FLOOR)), one))
            draft.assumed.append(f"{one.group()} is ${amounts[-1][0]:,}, at ${rate} for one")
        elif found:
            draft.not_understood.append(one.group())
        else:
            draft.add_problem(
                "budget", f"the budget is not in dollars: {one.group()}",
                "write it in dollars: $1,700, or give a rate: 1 euro is 1.10 dollars",
            )  # fmt: skip
            return
    budgets: dict[tuple[Money, frozenset[str]], re.Match[str]] = {}
    for amount, one in amounts:
        part, units = _find_use(passage, one)
        if part:
            _add_bound(passage, draft, part, units, amount, one)
        else:
            budgets.setdefault((amount, units), one)
    whole = [key for key in budgets if not key[1]]
    for key in [key for key in budgets if len(whole) == 1 and "day" in key[1]]:  # besides one for the whole trip
        _add_bound(passage, draft, "trip", key[1], key[0], budgets.pop(key))
    if len(budgets) > 1:
        listed = " and ".join(one.group().strip() for one in budgets.values())
        draft.add_problem("budget", f"there are several amounts of money: {listed}", "give one budget for all: $1,700")
    for draft.budget, draft.budget_units in budgets:
        pass


def _find_use(passage: Passage, money: re.Match[str]) -> tuple[str, frozenset[str]]:
    """Return the part of the trip that an amount is for, empty for all of it, and for what each time."""
    begin, end = passage.sentence_span(money.start())
    units, at = set(), money.end()
    while unit := _UNIT.match(passage.text, at, end):
        word = (unit["unit"] or "person").casefold()
        units.add(word if word in ("day", "night", "meal") else "person")
        passage.mark_spans((at, unit.end()))
        at = unit.end()
    before = passage.text[begin : money.start()]
    if not units & {"day", "night", "meal"} and _DAILY.search(before):
        units.add("day")
    what = _FOR_WHAT.match(passage.text[at:end]) or _WHAT_COSTS.search(before)
    if what is not None and what.re is _FOR_WHAT:
        passage.mark_spans((at, at + what.end()))
    part = next((name for name, word in what.groupdict().items() if word), "") if what else ""
    return part or ("bed" if "night" in units else "meals" if "meal" in units else ""), frozenset(units)


def _add_bound(
    passage: Passage, draft: QueryDraft, part: str, units: frozenset[str], amount: Money, money: re.Match[str]
) -> None:  # fmt: skip
    per = next(iter(sorted(units & {"night", "meal", "day"})), "trip")
    total = amount * (draft.people or 1) if "person" in units else amount
    text = passage.text[slice(*passage.clause_span(money.start()))].strip()
    draft.wishes.append(TripWish(WishKind.at_most, (part, per), (total,), text))
