"""Rules about order as sentences: a file of them, and the line ``%rule`` of the other notations.

A file lists its steps, then a sentence a line. The forms are in ``sentences.lark``; what they mean is defined in
:mod:`formal_llm.automata.models.declare`::

    steps: find order, ask manager, pay back, close
    find order before pay back
    at most 1 pay back
    last close

Nothing is guessed: each word is a keyword or belongs to the name of a step. Capital letters make no difference, and
neither do blanks or underscores between the words of a name. A name that holds a keyword or a special sign stands in
quotes. In other notations a step is named by its terminal or by its label.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from formal_llm.automata.languages.emptiness import why_no_plan
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.declare import KEYWORD, KEYWORDS, WORD, Group, Sentence, quote_step
from formal_llm.automata.models.formula import EVERYTHING
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.symbols import unquote_text
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import NotationError, Undecided, did_you_mean, unknown

if TYPE_CHECKING:
    from lark import Lark, Token, Tree
    from lark.exceptions import UnexpectedInput

#: The tokens of ``sentences.lark`` in words for messages; keywords are their own.
_TOKEN_NAMES = {
    "WORDS": "a step", "STRING": "a step", "INT": "a number", "AMOUNT": "'at most', 'at least', 'exactly'",
    "COLON": "':'", "_COMMA": "','", "_END": "the end of the sentence", "$END": "the end of the sentence",
}  # fmt: skip
#: How many steps a message lists.
_LISTED = 12


@cache
def _get_parser() -> Lark:
    from lark import Lark

    text = resources.files("formal_llm.automata.notation").joinpath("sentences.lark").read_text(encoding="utf-8")
    text = text.replace("@KEYWORD@", KEYWORD).replace("@WORD@", WORD)
    return Lark(text, parser="lalr", start=["start", "rule"], propagate_positions=True, maybe_placeholders=False)


# -- reading ----------------------------------------------------------------------------------------------------------


def read_sentences(text: str, file: str | None = None) -> Behaviour:
    """Read a file of sentences: the behaviour of which each state is a step.

    Its formula allows everything; the sentences are its limits. A blank in the name of a step becomes an underscore.

    Raises:
        NotationError: a sentence has none of the forms, names what is no step, or no plan keeps them all; with the
            place, what was expected there, and the nearest name.
    """
    source = SourceText.from_text(text, file, NotationError)
    listed, *sentences = _parse(source, "start", {}).children
    steps = _read_steps(cast("Tree[Token]", listed), source)
    limits, places = Limits(), dict[str, Place]()
    for tree in sentences:
        sentence = _read_tree(cast("Tree[Token]", tree), steps, source)
        places.setdefault(sentence.text, Place(tree.meta.line, tree.meta.column))
        limits &= Limits.from_sentence(sentence)
    behaviour = Behaviour(Path(file or "rules").stem, steps, EVERYTHING, limits)
    why = why_no_plan(behaviour) if limits else None
    if why is not None:
        named = [*why.constraints, *why.limits]
        source.fail_at(f"no plan keeps these rules: {why.reason}", next(places[one] for one in named if one in places))
    for warning in behaviour.warnings if limits.rules else ():
        if warning.kind != "empty":
            source.warn_at(warning.message, source.places.get(warning.symbol), stacklevel=3)
    return behaviour


def read_sentence(text: str, labels: Mapping[str, str], file: str | None = None) -> Sentence:
    """Read one sentence.

    Args:
        text: the sentence; before it may stand blanks and empty lines.
        labels: the steps, each with its label; empty where it has none.
        file: what messages call the place it is from.

    Raises:
        NotationError: it has none of the forms, or names what is no step; with the place.
    """
    source = SourceText(text, file, error=NotationError)
    return _read_tree(cast("Tree[Token]", _parse(source, "rule", labels).children[0]), labels, source)


def _read_steps(tree: Tree[Token], source: SourceText) -> dict[str, str]:
    """Read the list of steps: each name with what was written."""
    steps: dict[str, str] = {}
    for name in tree.children[0].children:
        token = cast("Token", cast("Tree[Token]", name).children[0])
        written = _unquote(token)
        same = next((one for one in steps.values() if _fold(one) == _fold(written)), None)
        if same is not None:
            source.fail_at(f"the step {written} is listed twice", _place_of(token))
        step = "_".join(written.split())
        source.places[step] = _place_of(token)
        steps[step] = written
    return steps


def _read_tree(tree: Tree[Token], labels: Mapping[str, str], source: SourceText) -> Sentence:
    groups: list[Group] = []
    least, most = 0, None
    for child in tree.children:
        if not isinstance(child, str):
            parts = child.children if child.data == "groups" else [child]
            groups += [tuple(_find_step(part, labels, source) for part in group.children) for group in parts]
        elif child.type == "AMOUNT":
            least, most = (0 if child.lower().endswith("most") else 1), (None if child.lower().endswith("least") else 1)
        else:
            least, most = least and int(child), most and int(child)
    written = " ".join(source.text[tree.meta.start_pos : tree.meta.end_pos].split())
    return Sentence(str(tree.data), tuple(groups), least, most, text=written)


def _find_step(tree: Tree[Token], labels: Mapping[str, str], source: SourceText) -> str:
    """The step of a name: its terminal, or the one with this label; capitals and underscores aside."""
    token = cast("Token", tree.children[0])
    written = _unquote(token)
    exact = [written] if written in labels else [name for name, label in labels.items() if label == written]
    folded = _fold(written)
    found = exact or [name for name, label in labels.items() if folded in (_fold(name), _fold(label))]
    if len(found) > 1:
        source.fail_at(f"{written} may be {' or '.join(found[:3])}", _place_of(token), suggestion="write which one")
    if not found:
        known = [*labels, *(label for label in labels.values() if label)]
        there = f"steps are: {', '.join(list(labels)[:_LISTED])}{', ...' if len(labels) > _LISTED else ''}"
        source.fail_at(unknown("step", written, known), _place_of(token),
                       suggestion=None if did_you_mean(written, known) else there)  # fmt: skip
    return found[0]


def _fold(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).casefold().replace("_", " ").split())


def _unquote(token: Token) -> str:
    return unquote_text(token) if token.type == "STRING" else " ".join(token.split())


def _place_of(token: Token) -> Place:
    return Place(token.line or 1, token.column or 1)


# -- what is wrong ----------------------------------------------------------------------------------------------------


def _parse(source: SourceText, start: str, labels: Mapping[str, str]) -> Tree[Token]:
    from lark.exceptions import UnexpectedInput

    try:
        return _get_parser().parse(source.text + "\n", start=start)
    except UnexpectedInput as error:
        _refuse(source, error, start, labels)


def _refuse(source: SourceText, error: UnexpectedInput, start: str, labels: Mapping[str, str]) -> NoReturn:
    """Raise what is wrong about a text that has none of the forms."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    lines = source.text.split("\n")
    place = Place(max(error.line, 1), max(error.column, 1))
    names: set[str] = set()
    if isinstance(error, UnexpectedToken):
        names, token = error.accepts or error.expected, error.token
        early = token.type in ("_END", "$END")
        problem = "the sentence ends too early" if early else f"unexpected {str(token)!r}"
        if token.type == "$END":
            place = Place(len(lines), len(lines[-1]) + 1)
    else:
        names = cast("UnexpectedCharacters", error).allowed or set()
        char = cast("UnexpectedCharacters", error).char
        problem = f"unexpected character {char!r}"
        if char == '"':
            problem = 'a name that does not end on its line (closing " is missing)'
    expected = dict.fromkeys(_TOKEN_NAMES.get(name, f"'{name.lower()}'") for name in sorted(names))
    line = lines[min(place.line, len(lines)) - 1]
    suggestion = next(_guess_mistakes(line, names, labels), None)
    if start == "start" and "STEPS" in names and "INT" not in names:
        suggestion = "a file of rules begins with its steps, such as: steps: pack, pay, ship"
    source.fail_at(problem, place, expected=list(expected), suggestion=suggestion)


def _guess_mistakes(line: str, expected: set[str], labels: Mapping[str, str]) -> Iterator[str]:
    """Yield advice on what the author of a line probably meant."""
    folded = f" {_fold(line)} "
    for name in (*labels, *labels.values()):
        if name and quote_step(name) != name and f" {_fold(name)} " in folded:
            yield f'the name holds a word or a sign of the notation; write it in quotes: "{name}"'
    keywords = [word for word in KEYWORDS if word.upper() in expected or (word in ("at", "exactly") and "AMOUNT" in expected)]
    steps = {word for name in (*labels, *labels.values()) for word in _fold(name).split()}
    for word in line.split():
        if word.casefold() not in steps and word.casefold() not in KEYWORDS and (near := did_you_mean(word, keywords)):
            yield f"did you mean {near}?"


# -- writing ----------------------------------------------------------------------------------------------------------


def write_sentences(behaviour: Behaviour) -> str:
    """Write a behaviour as sentences; :func:`read_sentences` reads an equal one, but for its name.

    Raises:
        ValueError: it has texts, sums, times or a formula, for which there is no sentence.
    """
    limits = behaviour.limits
    plain = behaviour.formula == EVERYTHING and all(rule.given is None for rule in limits.rules)
    if not plain or limits.sums or limits.times or limits.default is not None or any(behaviour.symbols):
        raise ValueError(f"{behaviour.name} has a formula, texts, sums or times, which no sentence says")
    lines = [f"steps: {', '.join(map(quote_step, behaviour.states))}", *map(str, _list_counts(limits))]
    return "\n".join([*lines, *map(str, limits.rules)]) + "\n"


def _list_counts(limits: Limits) -> Sequence[Sentence]:
    """The limits on uses, as sentences."""
    found = []
    for name in dict.fromkeys((*limits.at_most, *limits.at_least)):
        most, least = limits.at_most.get(name), limits.at_least.get(name, 0)
        if most == 0:
            found.append(Sentence("absence", ((name,),)))
        elif most == least:
            found.append(Sentence("existence", ((name,),), least, most))
        else:
            found += [Sentence("existence", ((name,),), 0, most)] if most is not None else []
            found += [Sentence("existence", ((name,),), least)] if least else []
    return found
