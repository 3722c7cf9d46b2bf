"""Pages: a question with very many options, asked as several small ones.

A choice among 300 restaurants with pages of 20 options begins with the 19 that fit the task best and "more: 281 other
options". Or with groups, ``by=["cost"]``: "cost 5 to 12: 20 options", "cost 13 to 15: 21 options", and so on.

A page is a fork like any other: an answer that opens the next page is a choice without moves, and is recorded in the
journal. So each option can be reached in just one way, the probability of an option is the product of those of the
answers that led to it, and the driver of a walk need not know of pages.

A selection, where several options are chosen, is asked page by page: each answer names what is chosen on this page, and
with "more" that the next page is wanted too. No answer is accepted from which no set can be chosen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias
from zlib import crc32

from formal_llm.automata.models.quantities import Number, amounts_by_quantity, format_amount
from formal_llm.errors import unknown
from formal_llm.llms.builtin import stems
from formal_llm.llms.question import Option
from formal_llm.planning.plans.vocabulary import Vocabulary
from formal_llm.planning.walks.choices import Choice, ChoiceFork, Menu, SelectionPart, collect_indices
from formal_llm.planning.walks.wording import Wording, fill_template

#: Options by their texts.
NAME = "name"
#: The characters of an option's text that name where a group begins and ends.
_EDGE = 20


@dataclass(frozen=True, slots=True)
class Offer:
    """An option, as functions that group and order options see it.

    Attributes:
        text: what is shown.
        names: the terminals that it puts into the plan at once.
        numbers: what these carry, such as ``cost``; of several terminals the sum.
    """

    text: str
    names: tuple[str, ...]
    numbers: Mapping[str, Number]


#: How options are grouped: ``"name"``, the name of a number that terminals carry, or a function that names the group.
By: TypeAlias = str | Callable[[Offer], str]
#: What comes first: ``"name"``, the name of a number (the lowest first), or a function whose lowest values come first.
Order: TypeAlias = str | Callable[[Offer], Any]


@dataclass(frozen=True, slots=True)
class Pages:
    """How large a question may be, and how a larger one is split.

    Attributes:
        options: the most options of a question, "more" among them; 2 or more.
        characters: the most characters of their lines; None for no bound. Every question has at least two lines,
            however long they are.
        by: how options are grouped where they are too many, one after the other while a group is still too large.
            ``"name"``: by the alphabet. A number that terminals carry (``"cost"``): ranges, about as many options in
            each. A function of an :class:`Offer`: what it returns names the group. A selection is not grouped.
        order: what comes first on pages and in groups; where left out, the options that share the most words with the
            task. Those that are equal stay in the order of the rules.

    Raises:
        ValueError: a bound that leaves no question.
    """

    options: int = 20
    characters: int | None = None
    by: tuple[By, ...] = ()
    order: Order | None = None

    def __post_init__(self) -> None:
        if self.options < 2:
            raise ValueError(f"a page has 2 options or more, not {self.options}")
        if self.characters is not None and self.characters < 1:
            raise ValueError(f"a page has 1 character or more, not {self.characters}")
        by: By | Iterable[By] = self.by
        object.__setattr__(self, "by", (by,) if isinstance(by, str) or callable(by) else tuple(by))

    @property
    def cache_key(self) -> list[object]:
        """What distinguishes these pages from others, as JSON data: functions by their names."""
        ways = (one if isinstance(one, str) else getattr(one, "__qualname__", "") for one in (*self.by, self.order))
        return [self.options, self.characters, *ways]

    @classmethod
    def of(cls, given: Pages | int | None) -> Pages | None:
        """Return the pages for a number of options; None for none."""
        return cls(given) if isinstance(given, int) else given


@dataclass(frozen=True)
class Pager:
    """Splits the choices of a walk into pages.

    Attributes:
        pages: how.
        wording: the texts of options.
        task: what the plan is for.
        vocabulary: what the terminals are called.
    """

    pages: Pages
    wording: Wording
    task: str
    vocabulary: Vocabulary = field(compare=False)

    def __post_init__(self) -> None:
        known = amounts_by_quantity({name: symbol.numbers for name, symbol in self.vocabulary.symbols.items()})
        for function in (*self.pages.by, self.pages.order):
            if isinstance(function, str) and function != NAME and function not in known:
                raise ValueError(
                    f"{unknown('number of options for pages', function, [NAME, *known])}; no terminal carries it"
                )

    def make_first_page(
        self, fork: ChoiceFork, texts: Callable[[ChoiceFork], Sequence[str]], last: frozenset[str] = frozenset()
    ) -> ChoiceFork:
        """The first page of a fork; the fork itself where it fits on one. ``texts`` are those of its choices.

        What reads one of the names ``last`` comes after all else.
        """
        if last:
            return self._split_fork(fork, texts(fork), last)
        found: tuple[Pager, ChoiceFork] | None = fork.paged
        if found is None or (found[0] is not self and found[0] != self):
            found = fork.paged = (self, self._split_fork(fork, texts(fork)))
        return found[1]

    def _split_fork(self, fork: ChoiceFork, texts: Sequence[str], last: frozenset[str] = frozenset()) -> ChoiceFork:
        place = _ForkPages(self, fork, dict(zip((choice.index for choice in fork.choices), texts, strict=True)))
        if place.can_fit(fork.choices):
            return fork
        ordered = tuple(sorted(place.order_choices(), key=lambda choice: not last.isdisjoint(choice.reads)))
        return place.make_selection_page(ordered, frozenset()) if fork.several else place.make_page(ordered, 0)


@dataclass(frozen=True, eq=False)
class _ForkPages:
    """The choices of a fork, with their texts by index."""

    pager: Pager
    fork: ChoiceFork
    texts: Mapping[int, str]

    def describe_choice(self, choice: Choice) -> str:
        return self.texts[choice.index] if choice.menu is None else choice.menu.text

    def make_offer(self, choice: Choice) -> Offer:
        numbers: dict[str, Number] = {}
        for name in choice.reads:
            symbol = self.pager.vocabulary.symbols.get(name)
            for quantity, value in symbol.numbers.items() if symbol is not None else ():
                numbers[quantity] = numbers[quantity] + value if quantity in numbers else value  # type: ignore[operator]
        return Offer(self.texts[choice.index], choice.reads, numbers)

    def order_choices(self) -> tuple[Choice, ...]:
        """The choices, what fits the task best first."""
        order, choices = self.pager.pages.order, self.fork.choices
        if order is None:
            worth = self._rate_choices()
            return tuple(sorted(choices, key=lambda choice: -worth[choice.index]))
        rank = _make_rank(order) if isinstance(order, str) else order
        return tuple(sorted(choices, key=lambda choice: rank(self.make_offer(choice))))

    def _rate_choices(self) -> dict[int, float]:
        """How much each choice has of the words of the task; a word counts the more, the fewer have it."""
        wanted = frozenset(stems(self.pager.task))
        words = self.pager.vocabulary
        ratings = {
            choice.index: wanted.intersection(
                stems(" ".join([self.texts[choice.index], *map(words.describe_terminal, choice.reads)]))
            )
            for choice in self.fork.choices
        } if wanted else {}  # fmt: skip
        speak = Counter(word for one in ratings.values() for word in one)
        return {c.index: sum(1 / speak[word] for word in sorted(ratings.get(c.index, ()))) for c in self.fork.choices}

    # -- pages --------------------------------------------------------------------------------------------------

    def can_fit(self, choices: Sequence[Choice]) -> bool:
        """Whether choices are one question."""
        pages = self.pager.pages
        return len(choices) <= max(2, pages.options) and (
            pages.characters is None or len(choices) <= 2 or self._count_characters(choices) <= pages.characters
        )

    def _count_characters(self, choices: Iterable[Choice]) -> int:
        return sum(
            _count_line_characters(number, self.describe_choice(choice)) for number, choice in enumerate(choices, 1)
        )

    def make_page(self, choices: tuple[Choice, ...], level: int) -> ChoiceFork:
        """The page of choices that are not grouped yet, by what groups them at a level."""
        by = self.pager.pages.by
        for place in range(level, 0 if self.can_fit(choices) else len(by)):
            groups = self._make_groups(by[place], choices)
            if len(groups) > 1:
                return self.make_listed_page(
                    tuple(self._make_group_choice(name, group, place + 1) for name, group in groups)
                )
        return self.make_listed_page(choices)

    def _make_group_choice(self, name: str, group: tuple[Choice, ...], level: int) -> Choice:
        if len(group) == 1:
            return group[0]
        text = fill_template(self.pager.wording.group_option, {"group": name, "count": len(group)})
        return self._make_menu(text, group, lambda _: self.make_page(group, level))

    def _make_menu(self, text: str, items: tuple[Choice, ...], make: Callable[[frozenset[str]], ChoiceFork]) -> Choice:
        menu = Menu(text, items, make, _hash_choices(choice for item in items for choice in item.iter_choices()))
        return Choice(menu.key, (), menu=menu)

    def make_listed_page(self, items: tuple[Choice, ...]) -> ChoiceFork:
        """The page that begins with the first of some options, with "more" where they do not fit."""
        head, rest = self._cut_page(items)
        return self._make_fork(
            (*head, self._make_more_choice(rest, lambda _: self.make_listed_page(rest))) if rest else head
        )

    def make_selection_page(self, members: tuple[Choice, ...], taken: frozenset[str]) -> ChoiceFork:
        """The page of a selection that begins with the first of some members, after others were chosen."""
        head, rest = self._cut_page(members)
        more = self._make_more_choice(rest, partial(self.make_selection_page, rest)).menu if rest else None
        later = frozenset(choice.reads[0] for choice in rest)
        here = taken.union(choice.reads[0] for choice in head)
        return self._make_fork(head, more, SelectionPart(here, taken, later, "" if more is None else more.marker))

    def _make_more_choice(self, rest: tuple[Choice, ...], make: Callable[[frozenset[str]], ChoiceFork]) -> Choice:
        count = sum(1 for item in rest for _ in item.iter_choices())
        return self._make_menu(fill_template(self.pager.wording.more_option, {"count": count}), rest, make)

    def _cut_page(self, items: tuple[Choice, ...]) -> tuple[tuple[Choice, ...], tuple[Choice, ...]]:
        """The options of a page, and those after it: none, or at least two."""
        if self.can_fit(items):
            return items, ()
        pages, count = self.pager.pages, min(self.pager.pages.options - 1, len(items) - 2)
        if pages.characters is not None:
            left = pages.characters - _count_line_characters(
                count + 1, fill_template(self.pager.wording.more_option, {"count": len(self.texts)})
            )
            while count > 1 and self._count_characters(items[:count]) > left:
                count -= 1
        return items[:count], items[count:]

    def _make_fork(
        self, choices: tuple[Choice, ...], more: Menu | None = None, part: SelectionPart | None = None
    ) -> ChoiceFork:
        whole, here = self.fork, collect_indices(choices)
        texts = [*map(self.describe_choice, choices), *([more.text] if more is not None else [])]
        options = number_options(whole, choices, texts, self.pager.wording)
        return ChoiceFork(
            choices, whole.total, whole.several, unknown=whole.unknown & here, open=whole.open & here,
            tally=whole.tally, shown=(self.pager.wording, options), more=more, part=part,
        )  # fmt: skip

    # -- groups -------------------------------------------------------------------------------------------------

    def _make_groups(self, by: By, choices: tuple[Choice, ...]) -> list[tuple[str, tuple[Choice, ...]]]:
        """Groups of choices, with their names; in each the order stays."""
        if callable(by):
            named: dict[str, list[Choice]] = {}
            for choice in choices:
                named.setdefault(str(by(self.make_offer(choice))), []).append(choice)
            return [(name, tuple(group)) for name, group in named.items()]
        if by == NAME:
            keys = {choice: self.texts[choice.index].casefold() for choice in choices}
            spans = self._split_spans(keys)
            return [(_name_range(*(self.texts[c.index][:_EDGE] for c in span)), group) for span, group in spans]
        numbers = {choice: self.make_offer(choice).numbers for choice in choices}
        spans = self._split_spans({choice: known[by] for choice, known in numbers.items() if by in known})
        found = [
            (f"{by} {_name_range(*(format_amount(numbers[c][by]) for c in span))}", group) for span, group in spans
        ]
        without = tuple(choice for choice in choices if by not in numbers[choice])
        return [*found, (f"no {by}", without)] if without else found

    def _split_spans(self, keys: Mapping[Choice, Any]) -> list[tuple[tuple[Choice, Choice], tuple[Choice, ...]]]:
        """Choices in groups from the lowest key to the highest, about as many in each; equal keys stay together.

        As many groups as there are pages, where that is no more than a question has options.
        """
        size = self.pager.pages.options
        rising = sorted(keys, key=keys.__getitem__)
        count = min(size, max(2, math.ceil(len(rising) / size)))
        edges = [0]
        for number in range(1, count):
            edge = max(edges[-1], round(number * len(rising) / count))
            while edges[-1] < edge < len(rising) and keys[rising[edge]] == keys[rising[edge - 1]]:
                edge += 1
            edges.append(edge)
        spans = [rising[one:other] for one, other in pairwise([*edges, len(rising)]) if one < other]
        inside = {choice: number for number, span in enumerate(spans) for choice in span}
        groups: list[list[Choice]] = [[] for _ in spans]
        for choice in keys:
            groups[inside[choice]].append(choice)
        return [((span[0], span[-1]), tuple(group)) for span, group in zip(spans, groups, strict=True)]


def number_options(
    fork: ChoiceFork, choices: Sequence[Choice], texts: Sequence[str], wording: Wording
) -> tuple[Option, ...]:
    """The options of choices of a fork; those that are undecided are marked as the wording says."""
    certain = [True] * len(texts)
    if fork.unknown:
        for number, choice in enumerate(choices):
            certain[number] = fork.unknown.isdisjoint(one.index for one in choice.iter_choices())
    return tuple([
        Option(number, text if known or not wording.uncertain_option
               else fill_template(wording.uncertain_option, {"option": text}), known)
        for number, (text, known) in enumerate(zip(texts, certain, strict=True), 1)
    ])  # fmt: skip


def _make_rank(quantity: str) -> Callable[[Offer], Any]:
    if quantity == NAME:
        return lambda offer: offer.text.casefold()
    return lambda offer: (quantity not in offer.numbers, offer.numbers.get(quantity, 0))


def _name_range(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _hash_choices(choices: Iterable[Choice]) -> int:
    return -1 - crc32(repr(sorted((choice.index, choice.reads) for choice in choices)).encode())


def _count_line_characters(number: int, text: str) -> int:
    return len(f"{number}: {text}\n")
