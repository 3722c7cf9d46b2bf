"""A text with the parts of it that have been understood, and whether it asks for what it mentions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property

#: Stems of words that do not describe a trip by themselves, or only express that one is wanted.
_FILLER_STEMS = """
    a abl about absolute acces accommod accommodat acros additional adher adult adventur afford after afternoon
    again ahead aim all alloc allocat allott allow alon along also alternativ altogether alway am amid an and any
    anyth appreciat approximate are around arrang arriv arrival as asid ask assembl assist assistanc at authentic
    availabl avoid back be becaus been befor begin beginn being below beneficial best between beyond bit blend book
    both break brief bring budget but by can cap capp carri carry choos city clarify colleagu com commenc company
    compos concern conclud consider constraint construct cook cost cost-effectiv could coupl cover craft creat
    crucial cuisin culinary curiou current dat day dear delight depart departur design desir destin detail develop
    devis different din dinner distinct divers do doe dollar don down draft draw dur each eat either els embark
    encompas encompass end engag enjoy enough ensur entir entire establishment etc even ever every everyon everyth
    exact exce exceed excit expect expens experienc explor extend fancy far fin find first flexibl fly follow fond
    food for formulat forward friend from ful full further generat get getaway gett giv glad go goal going good
    grateful great ground group guest guid had happy has hav he head hello help helpful henc her hey hi him his
    holiday hom hop host hotel hous how however i idea ideal if imperativ importanc important in includ individual
    indulg initiat insist intend intent interest into involv is it itinerary its itself journey just keen keep kick
    kind kindest know last lat later least leav leisur les let lie lik limit littl loc local lodg long look lot lov
    love lover mad main mak many map march max maximum may me meal mean meet mention might mind mod money month mor
    morn most mov much must my myself necessary necessity need new next nic night no nor normal not notab notabl
    noth now number of off offer ok okay old on onc one only onward open option or order organis organiz origin
    other our ourselv out outlin over overall own palat palett particular party pay peopl per perhap permissibl
    permit person pick plac plan plann planner pleas pleasur plu pocket possibl prefer preferab preferabl preferenc
    preferr prepar propos proposal provid put question quick rang rat rather ready real reason refus regard reliant
    rely rent request requir requirement resid responsibl restaurant return revis roam room rough round rout rul sam
    sampl schedul search see seek seri serv set sett settl several shall she short should show simp sinc singl
    sketch so som someon someth soon span spann special specific specifical spend stag start stat stay step still
    stop stopp stranger strict subject such suggest suggestion suitabl sum sur tak tell term than thank that the
    their them then ther thes they thi thing think thos though thre through till tim to together too total tour
    toward town transport travel traveler travell traveller trip try two under uniqu until up upon us use using vac
    variety variou ventur very via visit vital walk wanna want was way we week welcom well wer what whatever when
    wher which whil who whol whom will wish with within work would year yes yet you your
"""
_FILLER = frozenset(_FILLER_STEMS.split())
_ENDING = re.compile(r"(?<=\w{3})(?:ations?|ings?|ed|es|s|e|ly)$")
_CLAUSE = re.compile(r"[^.;!?,:\n()]+(?:\.(?=\S)[^.;!?,:\n()]*)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+", re.UNICODE)

#: Words that begin another wish in the same clause.
_JOINS = re.compile(r"\b(?:and|but|so|while|because|although|though|yet|whereas)\b|(?=\bnor\b)", re.IGNORECASE)
_NEGATIONS = re.compile(
    r"n['’]t\b|^[- ]free\b|\b(?:no|not|never|without|cannot|non|avoid\w*|exclud\w*|rul(?:e|es|ing) out|neither|nor|nobody|none|"
    r"nothing|unable|afraid|fear\w*|scare[sd]?|hate\w*|dislik\w*|refus\w*|skip\w*|miss\w*|allergic|impossible|forbid\w*|"
    r"prohibit\w*|restrict\w*|ban(?:s|ned)?|against|opposed|free of|(?:sick|tired|enough) of|fed up with|instead of|"
    r"out of the question|excluded|ruled out|(?:is|are) out|no-go|except|(?:rather|sooner|better)\b[^.;]*?\bthan)\b",
    re.IGNORECASE,
)
_NEED = r"(?:necessary|needed|required|essential|important|mandatory|a must)"
#: Before a mention: it is neither asked for nor excluded. Each has its own negation, which is no refusal.
_OPEN_BEFORE = re.compile(
    rf"(?:\bnot|n['’]t)\s+(?:\w+ly\s+)?(?:be\s+)?(?:mind|object|bother|care|need|require|have to|has to|insist|matter|{_NEED})\b|"
    r"\bneed not\b|\bno (?:real )?(?:need|reason|objections?|problem|trouble|issues?)\b|"
    r"(?:\b(?:not|no|none|nobody)\b|n['’]t\b|\bno one\b)[^.;]*?\b(?:against|averse|opposed|afraid|scared|only|just)\b|"
    r"\b(?:fine|ok|okay|comfortable|willing|open|no problem)(?: also| even)? (?:with|to)\b",
    re.IGNORECASE,
)
#: Behind a mention.
_OPEN_BEHIND = re.compile(
    rf"^(?:\s+[\w-]+){{0,2}}?\s+(?:(?:is|are|would be)(?: also| all| quite| totally)?\s+(?:fine|ok|okay|all right|acceptable|"
    rf"optional|no problem|not a problem)\b|(?:is|are|be)(?: not|n['’]t)\s+(?:\w+ly\s+)?{_NEED}|need(?: not|n['’]t)\b|"
    r"do(?:es)?(?: not|n['’]t)\s+(?:have to|need|matter)\b|stays? (?:at )?home\b|"
    r"(?:is|are)(?: not|n['’]t) (?:that|so|very|too)\b)",
    re.IGNORECASE,
)
_ALL_BUT = re.compile(
    r"\b(?P<all>anything|everything|any \w+|all(?: \w+)?|nothing|no \w+|none)\s+(?:but|except(?: for)?|besides|other than|"
    r"apart from)\s+(?:(?:by|to|in|a|an|the|eat|take|have)\s+)*$",
    re.IGNORECASE,
)
_BEGINS = re.compile(r"(?=\b(?:we|I|please)\b)", re.IGNORECASE)
_IF = re.compile(
    r"(?<!nice )(?<!great )(?<!good )(?<!wonder )(?<!better )(?<!see )\b(?:if|unless|in case)\b(?! (?:at all )?possible)",
    re.IGNORECASE,
)
_SUPPOSES = re.compile(r"\b(?:think|believe|suppose|imagine|say|feel)(?: that)?\s*$", re.IGNORECASE)
_RELATIVE = re.compile(r"\b(?:(?<!not )that|which|who|where|with|without|if|when)\b", re.IGNORECASE)
_ONLY = re.compile(r"\b(?:only|solely|exclusively|nothing but)\b", re.IGNORECASE)
#: A refusal that ends before its object: "avoid, if possible, flights".
_DANGLING = re.compile(
    r"\b(?:avoid|not|no|never|without|skip|exclude|(?:not|never|n['’]t) (?:want|take|book|use|like|include))\s*$",
    re.IGNORECASE,
)


class Stance(StrEnum):
    """What a text says about something that it mentions."""

    wanted = "wanted"
    only = "only"
    excluded = "excluded"
    open = "open"  # neither asked for nor excluded: "we would not mind flying"
    unclear = "unclear"


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

    def is_plain(self, begin: int, end: int) -> bool:
        """Return whether a span has no word that describes a trip by itself and has not been understood."""
        words = [(one.start() + begin, one.end() + begin) for one in _WORD.finditer(self.text[begin:end])]
        return not any(self.is_free(*span) and self._is_meaningful(*span) for span in words)

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
        return (
            _ENDING.sub("", word) not in _FILLER and not re.search(r"['’]", word) and (len(word) > 1 or word.isdigit())
        )

    def find_stance(self, begin: int, end: int) -> Stance:
        """Return what the clause around a mention says about it.

        Negations are counted within the part of the clause that no "and" or "but" separates from the mention; phrases
        such as "not necessary", and "anything but", come first. What is understood of the clause is marked.
        """
        left_begin, right_end = self.clause_span(begin)
        before, behind = self.text[left_begin:begin], self.text[end:right_end]
        if all_but := _ALL_BUT.search(before):
            self.mark_spans((left_begin + all_but.start(), begin))
            denied = bool(_NEGATIONS.search(before[: all_but.start()])) != all_but["all"].casefold().startswith("no")
            return Stance.only if denied else Stance.excluded
        behind = _RELATIVE.split(_JOINS.split(behind)[0])[0]
        *begun, before = _BEGINS.split(_JOINS.split(before)[-1])
        if begun and _SUPPOSES.search(begun[-1]):
            before = begun[-1] + before
        # "such flights, if possible, avoid": a clause without a verb of its own continues the one before.
        earlier = [span for span in self.clauses if span[1] <= left_begin][-2:]
        for one in earlier if before.strip() in ("", "any", "the", "all") else ():
            if _DANGLING.search(self.text[slice(*one)]):
                self.mark_spans(one)
                return Stance.excluded
        parts = ((begin - len(before), before), (end, behind))
        is_open = (_OPEN_BEFORE.search(before), _OPEN_BEHIND.search(behind))
        for (start, _), found in zip(parts, is_open, strict=True):
            if found:
                self.mark_spans((start + found.start(), start + found.end()))
        if any(is_open):
            return Stance.open
        negations = [
            (start + one.start(), start + one.end()) for start, part in parts for one in _NEGATIONS.finditer(part)
        ]
        self.mark_spans(*negations)
        only = [(start + one.start(), start + one.end()) for start, part in parts for one in _ONLY.finditer(part)]
        self.mark_spans(*only)
        if len(negations) > 2 or _IF.search(self.text[left_begin:right_end]):
            return Stance.unclear
        # "We do not miss shared rooms": of an unknown word between them nobody knows what it does to the negation.
        near = negations if len(negations) == 1 else [] if negations else only[:1]
        if not all(self.is_plain(min(one[1], end), max(begin, one[0])) for one in near):
            return Stance.unclear
        return Stance.excluded if len(negations) == 1 else Stance.only if near else Stance.wanted

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
