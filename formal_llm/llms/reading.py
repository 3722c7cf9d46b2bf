"""Strict reading of an answer that came as text.

Accepted are a number with little around it (``2``, ``2.``, ``(2)``, ``**2**``, ``Option 2``) and a number with the text
of its option (``2: the output of ...``). Anything else is an error: the first digit of a longer text is no answer. A
number with the text of another option is a contradiction, and therefore also an error.

Texts are compared exactly, including punctuation: ``C``, ``C++`` and ``C#`` are three texts, ``x > 5`` and ``x < 5``
are two. Only if no option matches exactly, white space, the shape of quotation marks and case are ignored, and finally
also quotation marks around the text and a full stop after it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

_FRAME = re.compile(
    r"^(?:(?:the\s+)?(?:answer|choice|option)s?(?:\s+is)?\s*:?\s*)?(?P<rest>.*)$", re.IGNORECASE | re.DOTALL
)
#: A number, optionally followed by a text after a colon, a dash or a space.
_NUMBER = re.compile(
    r"[(\[]?(?P<number>[+-]?\d+)[)\]]?[.)]?(?:(?P<text>\s*(?::\s*|[–—-]\s+)(?P<after>\S.*)|\s+\S.*)|\s*:)?", re.DOTALL
)
#: The number and the words before it, in bold or as code in Markdown.
_MARKED = re.compile(r"(?P<mark>\*{1,3}|_{1,2}|`)(?P<inner>[^*_`\d]*\d{1,9}[)\].:]*)(?P=mark)(?P<rest>.*)", re.DOTALL)
_SEVERAL = re.compile(r"\s*(?:,|;|\band\b|\s)\s*(?:and\s+)?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+")
_STRAIGHT = str.maketrans("“”„«»‘’‚", '"""""\'\'\'')
#: The marks that may enclose a whole text.
_AROUND = ("***", "**", "*", "__", "`", '"', "'")


def read_numbers(text: str, options: Sequence[str], *, several: bool = False) -> tuple[int, ...]:
    """Return the option numbers, counted from 1, that ``text`` names.

    Args:
        text: the answer.
        options: the texts of the options.
        several: whether more than one number may be given.

    Raises:
        ValueError: the text names no option; the message explains why to the answerer.
    """
    bare = _strip_marks(text.strip())
    if not bare:
        raise ValueError("it was empty")
    rest = _strip_marks(_FRAME.fullmatch(bare)["rest"].strip())  # type: ignore[index]  # the pattern matches every text
    parts = [part for part in _SEVERAL.split(rest.rstrip(".").strip("[]()")) if part] if several else []
    if parts and all(_WHOLE.fullmatch(part) for part in parts):
        return tuple(_in_range(part, options) for part in parts)
    match = _NUMBER.fullmatch(rest)
    if match is None:
        raise ValueError(f"{_shorten_text(text)} is not a number")
    number = _in_range(match["number"], options)
    # A dash or a colon may separate the number from the text, or belong to the text.
    texts = [each for each in dict.fromkeys((match["text"], match["after"])) if each is not None]
    matches = [named_options(each, options) for each in texts]
    if texts and match["after"] is None and _WHOLE.fullmatch(texts[0].strip()):
        raise ValueError(f"{_shorten_text(text)} is more than one number")
    if any(found and number not in found for found in matches):
        raise ValueError(f"{_shorten_text(text)} is the number of one option with the text of another")
    if texts and not any(matches):
        raise ValueError(
            f"{_shorten_text(text)} is more than a number, and not the number with the text of that option"
        )
    return (number,)


def named_options(text: str, options: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers, counted from 1, of the options that match ``text``; several if they read alike.

    Texts are compared exactly first, then less strictly, as described in the module's docstring.
    """
    for form in _FORMS:
        wanted = form(text)
        found = tuple(number for number, option in enumerate(options, 1) if form(option) == wanted)
        if found:
            return found
    return ()


def _normalise_spaces(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).translate(_STRAIGHT).split())


def _fold_case(text: str) -> str:
    return _normalise_spaces(text).casefold()


def _strip_punctuation(text: str) -> str:
    return _strip_enclosing(_strip_enclosing(_fold_case(text)).removesuffix(".").rstrip())


#: How texts are compared, the most exact way first.
_FORMS: tuple[Callable[[str], str], ...] = (str.strip, _normalise_spaces, _fold_case, _strip_punctuation)


def _strip_enclosing(text: str) -> str:
    for mark in _AROUND:
        inner = text[len(mark) : -len(mark)]
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and mark not in inner:
            return _strip_enclosing(inner.strip())
    return text


def _strip_marks(text: str) -> str:
    """Strip the marks around a text, or around the number at its beginning."""
    text = _strip_enclosing(text)
    match = _MARKED.fullmatch(text)
    return text if match is None else match["inner"] + match["rest"]


def _in_range(digits: str, options: Sequence[object]) -> int:
    # A number with more digits than any option number is not converted: it may be millions of digits long.
    number = int(digits) if len(digits) <= 9 else 0
    if not 1 <= number <= len(options):
        raise ValueError(f"{_shorten_text(digits)} is not one of the numbers from 1 to {len(options)}")
    return number


def _shorten_text(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 60 else text[:57] + "...")
