"""Read the number of travellers and their budget."""

from __future__ import annotations

import re
from decimal import ROUND_FLOOR, Decimal

from formal_llm.packs.travel.query import TripWish, WishKind, dollars
from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.numbers import amount_of, count_of
from formal_llm.packs.travel.reading.passages import Passage, read_forms
from formal_llm.packs.travel.rows import Money

_FORMS, _TOTALS, _MONEY_FORMS = read_forms("people"), read_forms("totals"), read_forms("money")
_FEW = (("three", 3), ("two", 2), ("one", 1))


def read_people(passage: Passage, draft: QueryDraft) -> None:
    """Record the number of travellers. Contradictory numbers are an error."""
    text = passage.text
    found: list[tuple[int, tuple[int, int]]] = []
    for form, extra in ((_FORMS["sum"], 0), (_FORMS["others"], 1)):
        for one in form.finditer(text):
            if form is _FORMS["sum"]:
                old = one["old"].casefold()
                count = (2 if " " in old else count_of(old)) + (1 if one["young"] == "a" else count_of(one["young"]))
            else:
                count = count_of(next(filter(None, one.groups()))) + extra
            found.append((count, one.span()))
    if not found:
        for form in _TOTALS.values():
            found += [(_count_people(one), one.span()) for one in form.finditer(text) if passage.is_free(*one.span())]
    few = [(count, one.span()) for name, count in _FEW for one in _FORMS[name].finditer(text)]
    if found:
        draft.not_understood += [text[slice(*span)] for count, span in few if count > max(found)[0]]
    passage.mark_spans(*[span for _, span in [*found, *few]])
    found = found or [one for one in few if one[0] == few[0][0]]
    counts = list(dict.fromkeys(count for count, _ in found))
    if len(counts) > 1:
        parts = " and ".join(repr(text[begin:end]) for _, (begin, end) in found)
        draft.add_problem("people", f"it is told in two ways how many travel: {parts}", "say it once: for 2 people")
    elif counts:
        draft.people = counts[0]
    elif _FORMS["plural"].search(text):
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
    rates = list(_MONEY_FORMS["rate"].finditer(text)) if _MONEY_FORMS["other_money"].search(text) else []
    passage.mark_spans(*[one.span() for one in rates])
    rate = Decimal(next(filter(None, rates[0].groups())) if rates else 0)
    found = [one for one in _MONEY_FORMS["money"].finditer(text) if passage.is_free(*one.span())]
    if not found:
        found = [one for one in _MONEY_FORMS["bare"].finditer(text) if passage.is_free(*one.span("a"))]
    others = [one for one in _MONEY_FORMS["other_money"].finditer(text) if passage.is_free(*one.span())]
    passage.mark_spans(*[one.span() for one in [*found, *others]])
    amounts: list[tuple[Money, re.Match[str]]] = [(amount_of(next(filter(None, one.groups()))), one) for one in found]
    for one in others if rate else ():
        exact = (amount_of(re.sub(r"[^\d.,]", "", one.group())) * rate).quantize(Decimal("0.01"), ROUND_FLOOR)
        amounts.append((dollars(exact), one))
        draft.assumed.append(f"{one.group()} is ${amounts[-1][0]:,}, at ${rate} for one")
    if others and not amounts:
        way_out = "write it in dollars: $1,700, or give a rate: 1 euro is 1.10 dollars"
        draft.add_problem("budget", f"the budget is not in dollars: {others[0].group()}", way_out)
    elif not rate:
        draft.not_understood += [one.group() for one in others]
    _settle_budget(passage, draft, amounts)


def _settle_budget(passage: Passage, draft: QueryDraft, amounts: list[tuple[Money, re.Match[str]]]) -> None:
    """Record what each amount is for."""
    text, more = passage.text, Decimal(0)
    budgets: dict[tuple[Money, frozenset[str]], re.Match[str]] = {}
    for amount, one in amounts:
        part, units = _find_use(passage, one)
        before = text[passage.clause_span(one.start())[0] : one.start()]
        if beside := _MONEY_FORMS["excluded"].match(text[one.end() :]):  # "$900 without the flights" is no wish
            draft.not_understood.append(text[one.start() : one.end() + beside.end()])
            passage.mark_spans((one.end(), one.end() + beside.end()))
        if _MONEY_FORMS["floor"].search(before):
            draft.not_understood.append(passage.quote_clause(one.start()))
        elif part:
            _add_bound(passage, draft, part, units, amount, one)
        elif not units and _MONEY_FORMS["more"].search(before):
            more += amount
        else:
            budgets.setdefault((amount, units), one)
    for amount in [key[0] for key in budgets if key[1]]:  # "$900 ... The $900 is for each of us"
        budgets.pop((amount, frozenset()), None)
    whole = [key for key in budgets if not key[1]]
    for key in [key for key in budgets if len(whole) == 1 and "day" in key[1]]:  # besides one for the whole trip
        _add_bound(passage, draft, "trip", key[1], key[0], budgets.pop(key))
    if len(budgets) > 1:
        listed = " and ".join(one.group().strip() for one in budgets.values())
        draft.add_problem("budget", f"there are several amounts of money: {listed}", "give one budget for all: $1,700")
    for amount, draft.budget_units in budgets:
        draft.budget = dollars(amount + more)
        if more:
            draft.assumed.append(f"the budget is ${more:,} more, ${draft.budget:,} in all")


def _find_use(passage: Passage, money: re.Match[str]) -> tuple[str, frozenset[str]]:
    """Return the part of the trip that an amount is for, empty for all of it, and for what each time."""
    begin, end = passage.sentence_span(money.start())
    units, at = set(), money.end()
    while unit := _MONEY_FORMS["unit"].match(passage.text, at, end):
        word = (unit["unit"] or "person").casefold()
        units.add(word if word in ("day", "night", "meal") else "person")
        passage.mark_spans((at, unit.end()))
        at = unit.end()
    before = passage.text[begin : money.start()]
    if not units & {"day", "night", "meal"} and _MONEY_FORMS["daily"].search(before):
        units.add("day")
    if _MONEY_FORMS["each"].search(before):
        units.add("person")
    what = _MONEY_FORMS["for_what"].match(passage.text[at:end]) or _MONEY_FORMS["what_costs"].search(before)
    what = what or (_MONEY_FORMS["beside"].search(before) if units else None)
    if what is not None and what.re is not _MONEY_FORMS["what_costs"]:
        place = at if what.re is _MONEY_FORMS["for_what"] else begin
        passage.mark_spans((place + what.start(), place + what.end()))
    part = next((name for name, word in what.groupdict().items() if word), "") if what else ""
    if part == "meals" and what and re.search(r"\ba\s", what.group()):
        units.add("meal")
    return part or ("bed" if "night" in units else "meals" if "meal" in units else ""), frozenset(units)


def _add_bound(
    passage: Passage, draft: QueryDraft, part: str, units: frozenset[str], amount: Money, money: re.Match[str]
) -> None:  # fmt: skip
    per = next(iter(sorted(units & {"night", "meal", "day"})), "trip")
    total = amount * (draft.people or 1) if "person" in units else amount
    draft.wishes.append(TripWish(WishKind.at_most, (part, per), (total,), passage.quote_clause(money.start())))
