"""Rules about order as sentences: a file of them, and the line ``%rule`` of the other notations.

A file lists its steps, then a sentence a line. The forms are in ``sentences.lark``; what they mean is defined in
:mod:`formal_llm.automata.models.declare`::

    steps: find order, ask manager, pay back, close
    find order before pay back
    at most 1 pay back
    last close

Nothing is guessed: each word is a keyword or belongs to the name of a step, and keywords may have capitals. A name that
holds a keyword or a special sign stands in quotes. In other notations a step is named by its terminal, in which blanks
may stand for underscores, or by its label, capitals aside. In a file, what lists a step is its label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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
from formal_llm.automata.notation.source import Place, SourceText, place_of
from formal_llm.errors import NotationError, Undecided, did_you_mean, unknown

if TYPE_CHECKING:
    from lark import Lark, Token, Tree
    from lark.exceptions import UnexpectedInput

#: The tokens of ``sentences.lark`` in words for messages; keywords are their own.
_TOKEN_NAMES = {
    "WORDS": "a step", "STRING": "a step", "INT": "a number", "AMOUNT": "'at most', 'at least', 'exactly'",
    "COLON": "':'", "_COMMA": "','", "_END": "the end of the sentence", "$END": "the end of the sentence",
}  # fmt: skip
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)+)"')
#: The digits that a number may have.
_DIGITS = 9
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
    listed, *sentences = _list_trees(_parse(source, "start", {}))
    labels = _read_steps(listed, source)
    limits, places = Limits(), dict[str, Place]()
    for tree in sentences:
        sentence = _read_tree(tree, labels, source)
        places.setdefault(sentence.text, Place(tree.meta.line, tree.meta.column))
        limits &= Limits.from_sentence(sentence)
    behaviour = Behaviour(Path(file or "rules").stem, labels, EVERYTHING, limits)
    why = why_no_plan(behaviour) if limits else None
    if why is not None:
        clash = [places[name] for name in (*why.constraints, *why.limits) if name in places]
        source.fail_at(f"no plan keeps these rules: {why.reason}", clash[0] if clash else None)
    with suppress(Undecided):  # reported by whoever plans with them
        for warning in behaviour.warnings:
            if warning.kind != "empty":
                message = f"no plan that keeps the rules has the step {labels[warning.symbol]}"
                source.warn_at(message, source.places.get(warning.symbol), stacklevel=3)
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
    return _read_tree(_list_trees(_parse(source, "rule", labels))[0], labels, source)


def _list_trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return cast("list[Tree[Token]]", tree.children)


def _read_steps(tree: Tree[Token], source: SourceText) -> dict[str, str]:
    """Read the list of steps: each name with what was written."""
    steps: dict[str, str] = {}
    folded: set[str] = set()
    for name in _list_trees(_list_trees(tree)[0]):
        token = cast("Token", name.children[0])
        written = _unquote(token)
        if _fold(written) in folded:
            source.fail_at(f"the step {written} is listed twice", place_of(token))
        folded.add(_fold(written))
        step = "_".join(written.split())
        source.places[step] = place_of(token)
        steps[step] = written
    return steps


def _read_tree(tree: Tree[Token], labels: Mapping[str, str], source: SourceText) -> Sentence:
    groups: list[Group] = []
    least, most = 0, None
    for child in tree.children:
        if not isinstance(child, str):
            groups += _read_groups(_list_trees(child) if child.data == "groups" else [child], labels, source)
        elif child.type == "AMOUNT":
            least, most = (0 if child.lower().endswith("most") else 1), (None if child.lower().endswith("least") else 1)
        else:
            if len(child) > _DIGITS:
                source.fail_at(f"a number of {len(child)} digits", place_of(child))
            least, most = least and int(child), most and int(child)
    written = " ".join(source.text[tree.meta.start_pos : tree.meta.end_pos].split())
    return Sentence(str(tree.data), tuple(groups), least, most, text=written)


def _read_groups(trees: Iterable[Tree[Token]], labels: Mapping[str, str], source: SourceText) -> Iterator[Group]:
    """Read alternatives, or a list of them, in which no step may be named twice."""
    seen: set[str] = set()
    for tree in trees:
        group = []
        for name in _list_trees(tree):
            step = _find_step(name, labels, source)
            if step in seen:
                source.fail_at(f"{step} is named twice", place_of(cast("Token", name.children[0])))
            seen.add(step)
            group.append(step)
        yield tuple(group)


def _find_step(tree: Tree[Token], labels: Mapping[str, str], source: SourceText) -> str:
    """The step that a name means: the terminal, or the one with this label."""
    token = cast("Token", tree.children[0])
    written = _unquote(token)
    found = [written] if written in labels else [name for name, label in labels.items() if label == written]
    if not found:  # the terminal ask_manager may be written "ask manager"; in a label capitals do not count
        spaced, folded = _space(written), _fold(written)
        found = [name for name, label in labels.items() if _space(name) == spaced or (label and _fold(label) == folded)]
    if len(found) > 1:
        source.fail_at(
            f"{written} may be {' or '.join(sorted(found)[:3])}", place_of(token), suggestion="write which one"
        )
    if not found:
        known = [*labels, *(label for label in labels.values() if label)]
        there = f"steps are: {', '.join(sorted(labels)[:_LISTED])}{', ...' if len(labels) > _LISTED else ''}"
        source.fail_at(unknown("step", written, known), place_of(token),
                       suggestion=None if did_you_mean(written, known) else there)  # fmt: skip
    return found[0]


def _space(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).replace("_", " ").split())


def _fold(name: str) -> str:
    return _space(name).casefold()


def _unquote(token: Token) -> str:
    return unquote_text(token) if token.type == "STRING" else " ".join(token.split())


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
    if isinstance(error, UnexpectedToken):
        names, token = error.accepts or error.expected, error.token
        early = token.type in ("_END", "$END")
        problem = "the sentence ends too early" if early else f"unexpected {str(token)!r}"
        if token.type == "$END":
            place = Place(len(lines), len(lines[-1]) + 1)
        listed = labels if start == "rule" else dict.fromkeys(_STRING.findall(source.text), "")
        line = lines[min(place.line, len(lines)) - 1]
        suggestion = next(_guess_mistakes(line, names, listed), None)
    else:
        assert isinstance(error, UnexpectedCharacters)
        names, problem = error.allowed or set(), f"unexpected character {error.char!r}"
        suggestion = "a name with such a sign stands in quotes"
        if error.char == '"':
            problem, suggestion = 'a name that does not end on its line (closing " is missing)', None
    if start == "start" and "STEPS" in names and "WORDS" not in names:
        suggestion = "a file of rules begins with its steps, such as: steps: pack, pay, ship"
    expected = dict.fromkeys(_TOKEN_NAMES.get(name, f"'{name.lower()}'") for name in sorted(names))
    shown = list(expected) if isinstance(error, UnexpectedToken) else []
    source.fail_at(problem, place, expected=shown, suggestion=suggestion)


def _guess_mistakes(line: str, expected: set[str], labels: Mapping[str, str]) -> Iterator[str]:
    """Yield advice on what the author of a line probably meant."""
    folded = f" {_fold(line)} "
    for name in (*labels, *labels.values()):
        if name and quote_step(name) != name and f" {_fold(name)} " in folded:
            yield f'the name holds a word or a sign of the notation; write it in quotes: "{name}"'
    keywords = [word for word in KEYWORDS if word.upper() in expected]
    steps = {word for name in (*labels, *labels.values()) for word in _fold(name).split()}
    for word in (word.strip(".,:") for word in line.split()):
        near = None if word.casefold() in (*steps, *KEYWORDS) else did_you_mean(word, keywords)
        if near is not None and abs(len(near) - len(word)) < 2:
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
