"""Where sentences end: ``Dr. Smith met J. R. R. Tolkien in the U.S. in 1950. They talked.`` has two.

Told by rules, not by a model: a point behind an abbreviation or an initial ends no sentence, unless a word follows that
begins one. A line always ends one.
"""

from __future__ import annotations

import re

from formal_llm.authored.files import lines_of

_TITLE_WORDS = """
    mr mrs ms messrs dr prof st mt ft gen col lt sgt capt cmdr adm maj rev hon pres gov sen rep fr e.g i.e cf vs viz no
    nos vol fig figs eq ch sec p pp ed eds trans c ca approx est b d r jan feb mar apr jun jul aug sep sept oct nov dec
"""
_ENDING_WORDS = "etc inc ltd co corp jr sr bros al a.m p.m"
_STARTING_WORDS = """
    The A An It Its He She They His Her Their This These Those That There In On At By From After Before During When
    While Since Although However Many Most Some As For With Under Today Later Both Each Between Among Until
"""
#: Behind these a name or number follows.
_TITLES = frozenset(_TITLE_WORDS.split())
#: These may end a sentence as well: they do where a capital follows.
_ENDINGS = frozenset(_ENDING_WORDS.split())
#: Words that begin sentences and hardly ever stand inside of a name.
_STARTERS = frozenset(_STARTING_WORDS.split())
# Nothing is tried twice (``++``), nor from the middle of a run of points: a text of points alone takes linear time.
_END = re.compile(r"(?<![.!?…])(?P<end>[.!?…]++)(?P<close>[\"'”’»)\]]*+)(?=\s++[\"'“‘«(\[]*+[^\W_a-z])")
_WORD = re.compile(r"\S*\Z")
_NEXT = re.compile(r"\s+[\"'“‘«(\[]*(\w*)")
_REACH = 40


def sentences(text: str) -> list[str]:
    """The sentences of a text, in their order, without blanks around them. Takes time in proportion to its length."""
    found = []
    for line in lines_of(text):
        begin = 0
        for end in _END.finditer(line):
            if _is_sentence_end(line, end):
                found.append(line[begin : end.end()].strip())
                begin = end.end()
        found.append(line[begin:].strip())
    return [sentence for sentence in found if sentence]


def _is_sentence_end(line: str, end: re.Match[str]) -> bool:
    """Whether a sentence ends at these signs."""
    if end["end"] != "." or end["close"]:
        return True
    before = line[max(0, end.start() - _REACH) : end.start()]
    last = _WORD.search(before)
    word = (last[0] if last else "").lstrip("\"'“‘«([")
    following = _NEXT.match(line[end.end() : end.end() + _REACH])
    starter = following is not None and following[1] in _STARTERS
    if word.lower() in _ENDINGS:
        return True
    if word.lower() in _TITLES and not (word.isupper() and starter):
        return False
    initial = len(word) == 1 and word.isalpha() and word.isupper()
    if initial or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", word):  # J. and U.S.
        return starter
    return True
