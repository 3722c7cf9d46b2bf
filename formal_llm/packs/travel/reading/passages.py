"""A text with the parts of it that have been understood."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

#: Words that do not describe a trip by themselves, or only express that one is wanted.
_FILLER_WORDS = """
    a able about absolutely accommodate accommodated accommodation accommodations additionally adult adventure
    afford after afternoon again ahead all allocate allocated allotted allow allowed allows alone along also
    alternative altogether am an and any anything approximately are around arrange arranging arrival arrive arriving
    as ask assemble assist at available avoid back be because been before begin beginning begins being below best
    between beyond blend book both break brief bring bringing budget budgeted budgeting but by can capped city
    colleagues come comes coming commence commencing company compose concerned conclude consider considering cooking
    cost cost-effective costs could couple cover covering covers craft crafting create creating cuisine cuisines
    culinary curious currently date dates day days dear depart departing departs departure design desired
    destination destinations details develop devise different dining dinner distinct do does dollars done down draft
    during each eat eating else embark embarking end ending ends enjoy enough ensure entire entirely etc even every
    everyone everything exactly exceed exceeding excited expect expenses experience explore exploring extending far
    find fine first flexible fly follow following fond food foods for formulate forward friendly friends from full
    fully further generate generating get getaway give go goal going good grateful great ground group guests guide
    had happy has have having he head headed heading hello help helpful helping her here hey hi him his holiday
    holidays home hope hoping hotel hotels house how however i idea ideal ideally if imperative important in include
    included includes including individual indulge intend intended intending interested into involve is it itinerary
    its itself journey just keen keep keeping kick kicking kind kindest kindly know last lasting lasts late later
    least leave leaving leisure less let lie like limit limited little live local lodging lodgings long look looking
    lot love lovely lovers made make making many map march max maximum may me meal meals means meet might mind money
    month more morning most move moving much must my myself necessary necessity need needed needing needs new next
    nice night nights no nor normally not note nothing now number of off offer offering offers ok okay on once one
    ones only onwards open option options or order organise organising organize organizing origin other our ours
    ourselves out outline outlined over overall own particular particularly party pay pays people per perhaps
    permissible permit person persons place places plan planned planner planning plans please plus pocket possible
    prefer preferable preferably preference preferences preferred prepare prepared proposal propose provide provided
    providing put question quick range rather ready really reason refuse regard regarding regards rent request
    require required requirement requirements requires residing responsible restaurants return returning revised
    rough round route rules same sample schedule scheduled searching see seek seeking series serve set setting
    settle several shall she short should show since single sketch so some someone something soon span spanning
    specific specifically spend spending stage start started starting starts state states stay stayed staying stays
    step still stop stopping stops strangers strictly such suggest suggestion sum sure take takes taking tell term
    terms than thank thanks that the their them then there these they thing things think this those though three
    through time times to together too total tour touring tours toward towards town towns transport transportation
    travel traveler travelers traveling traveller travellers travelling travels trip trips try trying two under
    unique until up upon us use using vacation variety various venture venturing very via visit visited visiting
    visits vital walk wanna want wanted wants was way we week weekend weekends weeks welcome welcomes well were what
    whatever when where which while who whole whom will willing wish wishes with within work would year years yes
    yet you your yours
"""
_FILLER = frozenset(_FILLER_WORDS.split())
_CLAUSE = re.compile(r"[^.;!?,:\n()]+(?:\.(?=\S)[^.;!?,:\n()]*)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+", re.UNICODE)


class Passage:
    """A text with the parts of it that have been understood.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._understood = bytearray(len(text))

    def mark_spans(self, *spans: tuple[int, int]) -> None:
        """Mark spans of the text as understood."""
        for begin, end in spans:
            self._understood[begin:end] = b"\1" * (end - begin)

    def is_free(self, begin: int, end: int) -> bool:
        """Return whether no part of a span has been understood yet."""
        return not any(self._understood[begin:end])

    def left_over(self) -> Iterator[str]:
        """Iterate over what was not understood: whole clauses, and single words and numbers in the others."""
        for begin, end in self.clauses:
            words = [(one.start() + begin, one.end() + begin) for one in _WORD.finditer(self.text[begin:end])]
            remaining = [span for span in words if self.is_free(*span) and self._is_meaningful(*span)]
            if remaining and self.is_free(begin, end):
                yield self.text[begin:end].strip(" -–—…\"'")
            else:
                yield from (self.text[a:b] for a, b in self._join_words(remaining))

    def _join_words(self, words: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Join adjacent words without understood text between them to spans."""
        run: list[tuple[int, int]] = []
        for word in words:
            if run and not self.is_free(run[0][0], word[1]):
                yield run[0][0], run[-1][1]
                run = []
            run.append(word)
        if run:
            yield run[0][0], run[-1][1]

    def _is_meaningful(self, begin: int, end: int) -> bool:
        """Return whether a word describes a trip by itself; contractions such as "I'd" and "we're" do not."""
        word = self.text[begin:end].casefold()
        return word not in _FILLER and not re.search(r"['’]", word) and (len(word) > 1 or word.isdigit())

    @cached_property
    def clauses(self) -> tuple[tuple[int, int], ...]:
        """The spans of the clauses, the parts between commas, full stops and the like."""
        return tuple(found.span() for found in _CLAUSE.finditer(self._plain) if found.group().strip())

    def clause_span(self, place: int) -> tuple[int, int]:
        """Return the span of the clause around a position."""
        index = bisect_right(self.clauses, (place, len(self.text))) - 1
        return self.clauses[index] if index >= 0 and place < self.clauses[index][1] else (place, place)

    def sentence_span(self, place: int) -> tuple[int, int]:
        """Return the span of the sentence around a position."""
        begin = max(self._plain.rfind(sign, 0, place) for sign in ".;!?\n") + 1
        ends = [at for sign in ".;!?\n" if (at := self._plain.find(sign, place)) >= 0]
        return begin, min(ends, default=len(self._plain))

    @cached_property
    def _plain(self) -> str:
        return protect_signs(self.text)


def protect_signs(text: str) -> str:
    """Return a text of the same length without the punctuation in numbers and abbreviations, which ends no clause."""
    text = re.sub(r"(?<=\d)[.,](?=\d)", "_", text)
    text = re.sub(r"\b(St|Mt|Ft|Mr|Mrs|Dr|max|approx|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.", r"\1_", text)
    return re.sub(r"(?<=\d)\.(?=\s*[-–]|\s+[A-Z][a-z]+\s+\d{4})", "_", text)
