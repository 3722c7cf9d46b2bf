"""Single sentences by writers who had not seen the patterns: how many are read, and do the writers' examples agree.

Each line of a set (``benchmarks/sentences/*.jsonl``, or a file named on the command line of ``plain_rules.py``) has a
sentence, and sequences of steps that the writer calls valid or invalid, in other words than the sentence uses. A
phrase is the step of which the words are related to its words; one that fits none is a step of which the sentence
does not speak. An example that fits in this way and is judged otherwise than its writer did *disagrees*.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from formal_llm.authoring import EnglishRules, read_english
from formal_llm.authoring.events import EventReader
from formal_llm.authoring.names import NoName
from formal_llm.automata.languages.spelling import are_related_words, spelling_key, stem_name
from formal_llm.errors import FormalLLMError, NotationError

FOLDER = Path(__file__).parent / "sentences"
#: A step of which no sentence speaks.
_OTHER = "some other step"
_SMALL = frozenset(
    [
        "the",
        "a",
        "an",
        "of",
        "to",
        "for",
        "from",
        "in",
        "on",
        "at",
        "by",
        "with",
        "and",
        "or",
        "is",
        "are",
        "has",
        "been",
        "it",
        "its",
        "be",
    ]
)


class Verdict(NamedTuple):
    """What became of a sentence: ``read`` and the examples that disagree, or why it was refused."""

    row: dict[str, object]
    read: EnglishRules | None
    refused: str
    disagree: tuple[str, ...]


def sets() -> dict[str, tuple[Path, bool]]:
    """The sets by name, each with whether it is held out."""
    listed = tomllib.loads((FOLDER / "sets.toml").read_text(encoding="utf-8"))["set"]
    return {Path(one["file"]).stem: (FOLDER / one["file"], one["held_out"]) for one in listed}


def judged(path: Path) -> Iterator[Verdict]:
    """Each sentence of a set, read."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        try:
            read = read_english(f'{row["sentence"].rstrip(".!")}. "{_OTHER}" is allowed.')
        except NotationError as error:
            yield Verdict(row, None, str(error), ())
            continue
        wrong = [
            f"{'refused' if valid else 'accepted'}: {'; '.join(example)}"
            for valid in (True, False)
            for example in row["valid" if valid else "invalid"]
            if _accepts(read, example) != valid
        ]
        yield Verdict(row, read, "", tuple(wrong))


def _accepts(read: EnglishRules, example: Sequence[str]) -> bool:
    """Whether rules accept an example, of which a step that they do not name is one that does not matter to them."""
    other = _OTHER.replace(" ", "_")
    names = [name for name in read.steps if name != other]
    steps = [step_of(phrase, names) or other for phrase in example]
    for name in (one for one in read.steps if one.endswith("=no")):  # a fact of which nothing is given does not hold
        if not {name, f"{name[:-3]}=yes"} & set(steps):
            steps.insert(0, name)
    try:
        return read.behaviour.accepts(steps)
    except FormalLLMError:
        return False


def step_of(phrase: str, names: Sequence[str]) -> str | None:
    """The one of some names that a phrase means; None for none."""
    given = re.fullmatch(r"\(given: (.+)\)", phrase)
    if given is not None:
        facts = [name[:-4] for name in names if name.endswith("=yes")]
        if not facts:
            return None
        same = set(_words(given[1])) == set(_words(facts[0]))
        return f"{facts[0]}={'yes' if same else 'no'}"
    text = re.sub(r" @ .*| \[[^\]]*\]", "", phrase.lower())
    try:
        key = spelling_key(EventReader().read(text).name)
    except NoName:
        key = spelling_key(text.replace(" ", "_"))
    same_key = [name for name in names if spelling_key(name) == key]
    return same_key[0] if same_key else _nearest(text, [name for name in names if "=" not in name])


def _nearest(phrase: str, names: Sequence[str]) -> str | None:
    """The one name that shares the verb of a phrase and most of its words, or of which the phrase has all words."""
    words = _words(phrase)
    scores = {}
    for name in names:
        own = _words(name)
        shared = sum(any(are_related_words(word, one) for one in own) for word in words)
        covered = all(any(are_related_words(word, one) for word in words) for one in own)
        if covered or any(are_related_words(words[0], one) for one in own):
            scores[name] = shared
    best = [name for name, score in scores.items() if score == max(scores.values())]
    return best[0] if len(best) == 1 else None


def _words(text: str) -> list[str]:
    found = [stem_name(word) for word in re.findall(r"[\w'-]+", text.replace("_", " ").lower())]
    return [word for word in found if word not in _SMALL] or found


def report(path: Path, verbose: bool) -> Iterator[str]:
    """The lines of a table of one set: a row for each domain."""
    verdicts = list(judged(path))
    for domain in dict.fromkeys(str(one.row["domain"]) for one in verdicts):
        rows = [one for one in verdicts if one.row["domain"] == domain]
        read = sum(one.read is not None for one in rows)
        wrong = sum(bool(one.disagree) for one in rows)
        yield f"  {domain[:40]:<42}{len(rows):>10}{read:>6}{len(rows) - read:>9}{wrong:>19}"
    read = sum(one.read is not None for one in verdicts)
    wrong = sum(bool(one.disagree) for one in verdicts)
    yield f"  {'together':<42}{len(verdicts):>10}{read:>6}{len(verdicts) - read:>9}{wrong:>19}"
    for one in verdicts if verbose else ():
        if one.read is None:
            yield f"  refused   {one.row['sentence']}\n      " + one.refused.replace("\n", "\n      ")
        else:
            yield f"  read      {one.row['sentence']}"
            yield from (f"      {clause.pattern}: {', '.join(clause.steps)}" for clause in one.read.clauses)
            yield from (f"      in doubt: {doubt}" for doubt in one.read.doubts)
            yield from (f"      DISAGREES, {wrong_one}" for wrong_one in one.disagree)
