"""Reading an answer that came as text, strictly.

Understood are a number with little around it (``2``, ``2.``, ``(2)``, ``**2**``, ``Option 2``) and a number with the
text of its option (``2: the output of ...``). Anything else is an error: the first digit of a longer text is no answer.
A number beside the text of another option is a contradiction, and so an error, too.

Texts are compared as they stand, signs included: ``C``, ``C++`` and ``C#`` are three texts, ``x > 5`` and ``x < 5`` are
two. Only where no option reads just so, blanks, the shape of quotation marks, capitals, and then quotation marks around
the text and a full stop after it make no difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

_FRAME = re.compile(
    r"^(?:(?:the\s+)?(?:answer|choice|option)s?(?:\s+is)?\s*:?\s*)?(?P<rest>.*)$", re.IGNORECASE | re.DOTALL
)
#: A number and what follows it: a colon, a dash or a blank parts it from a text.
_NUMBER = re.compile(
    r"[(\[]?(?P<number>[+-]?\d+)[)\]]?[.)]?(?:(?P<text>\s*(?::\s*|[–—-]\s+)(?P<after>\S.*)|\s+\S.*)|\s*:)?", re.DOTALL
)
#: The number, with what stands before it, as Markdown has it in bold or as code.
_MARKED = re.compile(r"(?P<mark>\*{1,3}|_{1,2}|`)(?P<inner>[^*_`\d]*\d{1,9}[)\].:]*)(?P=mark)(?P<rest>.*)", re.DOTALL)
_SEVERAL = re.compile(r"\s*(?:,|;|\band\b|\s)\s*(?:and\s+)?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+")
_STRAIGHT = str.maketrans("“”„«»‘’‚", '"""""\'\'\'')
#: What may stand around a whole text, on both sides.
_AROUND = ("***", "**", "*", "__", "`", '"', "'")


def read_numbers(text: str, options: Sequence[str], *, several: bool = False) -> tuple[int, ...]:
    """The option numbers, counted from 1, that ``text`` names.

    Args:
        text: what was answered.
        options: the texts of the options.
        several: whether more than one number may be given.

    Raises:
        ValueError: the text names no option; the message explains why, for the one who answered.
    """
    shown = _unmarked(text.strip())
    if not shown:
        raise ValueError("it was empty")
    rest = _unmarked(_FRAME.fullmatch(shown)["rest"].strip())  # type: ignore[index]  # the pattern matches every text
    parts = [part for part in _SEVERAL.split(rest.rstrip(".").strip("[]()")) if part] if several else []
    if parts and all(_WHOLE.fullmatch(part) for part in parts):
        return tuple(_in_range(part, options) for part in parts)
    match = _NUMBER.fullmatch(rest)
    if match is None:
        raise ValueError(f"{_short(text)} is not a number")
    number = _in_range(match["number"], options)
    # A dash or a colon may part the number from the text, or belong to the text.
    said = [each for each in dict.fromkeys((match["text"], match["after"])) if each is not None]
    named = [named_options(each, options) for each in said]
    if said and match["after"] is None and _WHOLE.fullmatch(said[0].strip()):
        raise ValueError(f"{_short(text)} is more than one number")
    if any(found and number not in found for found in named):
        raise ValueError(f"{_short(text)} is the number of one option with the text of another")
    if said and not any(named):
        raise ValueError(f"{_short(text)} is more than a number, and not the number with the text of that option")
    return (number,)


def named_options(text: str, options: Sequence[str]) -> tuple[int, ...]:
    """The numbers, counted from 1, of the options that read like ``text``; more than one where several read alike.

    They are compared as they stand; where none reads just so, as the description of this module explains.
    """
    for form in _FORMS:
        wanted = form(text)
        found = tuple(number for number, option in enumerate(options, 1) if form(option) == wanted)
        if found:
            return found
    return ()


def _spaced(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).translate(_STRAIGHT).split())


def _folded(text: str) -> str:
    return _spaced(text).casefold()


def _loose(text: str) -> str:
    return _bare(_bare(_folded(text)).removesuffix(".").rstrip())


#: How texts are compared, the most exact way first.
_FORMS: tuple[Callable[[str], str], ...] = (str.strip, _spaced, _folded, _loose)


def _bare(text: str) -> str:
    """A text without the marks that stand around all of it."""
    for mark in _AROUND:
        inner = text[len(mark) : -len(mark)]
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and mark not in inner:
            return _bare(inner.strip())
    return text


def _unmarked(text: str) -> str:
    """A text without marks around it or around the number that it begins with."""
    text = _bare(text)
    match = _MARKED.fullmatch(text)
    return text if match is None else match["inner"] + match["rest"]


def _in_range(digits: str, options: Sequence[str]) -> int:
    # A number with more digits than any option has is not converted: it may be millions of digits long.
    number = int(digits) if len(digits) <= 9 else 0
    if not 1 <= number <= len(options):
        raise ValueError(f"{_short(digits)} is not one of the numbers from 1 to {len(options)}")
    return number


def _short(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 60 else text[:57] + "...")
