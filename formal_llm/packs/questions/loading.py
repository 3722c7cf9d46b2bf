"""The reader of question files in their published formats: HotpotQA, GSM8K, TriviaQA, FEVER; and in our own.

Nothing is downloaded: the files are those that the authors publish. An error in a file is reported with the number of
the question and, in a file of JSON lines, the line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from formal_llm import authored
from formal_llm.agents.tools.articles import Article
from formal_llm.agents.tools.corpus import Corpus
from formal_llm.agents.tools.corpus_file import build_corpus
from formal_llm.authored.files import open_file, parse_json, read_text
from formal_llm.errors import NotationError, ResourceNotFound

#: How an answer is scored; see :mod:`formal_llm.packs.questions.scoring`.
Measure: TypeAlias = Literal["text", "aliases", "number", "label"]
#: The maximum number of bytes in a file that is read at once, and in a line of a file that is read by lines.
MOST_BYTES, MOST_LINE = 1_000_000_000, 10_000_000
LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")


@dataclass(frozen=True)
class QuizQuestion:
    """A question with its correct answers.

    Attributes:
        id: its name in its file.
        text: the question; of FEVER, the claim.
        answers: the right answers, any of which is sufficient; none in test sets.
        measure: how an answer is scored.
        kind: the kind of question, in the words of its file: ``bridge``, ``two-hop``.
        titles: the titles of the articles that contain the answer.
        context: the paragraphs of the question (title and sentences): ten in HotpotQA.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    measure: Measure
    kind: str = ""
    titles: tuple[str, ...] = ()
    context: tuple[tuple[str, tuple[str, ...]], ...] = ()


class _Wrong(Exception):
    """A problem of a question."""


def read_questions(path: str | Path, form: str, most: int | None = None) -> list[QuizQuestion]:
    """Read the questions of a file.

    Args:
        path: the file.
        form: ``"hotpotqa"``, ``"gsm8k"``, ``"triviaqa"``, ``"fever"`` or ``"own"``.
        most: the maximum number of questions to read, from the first.

    Raises:
        ResourceNotFound: there is no such form.
        NotationError: the file cannot be read; the error names the line or the number of the question.
    """
    if form not in FORMATS:
        raise ResourceNotFound("format of questions", form, FORMATS)
    by_lines, parse = FORMATS[form]
    found: list[QuizQuestion] = []
    for number, (line, data) in enumerate(islice(_read_lines(path) if by_lines else _read_list(path), most), 1):
        try:
            found.append(parse(data))
        except _Wrong as wrong:
            raise NotationError(
                f"question {number} {wrong}", file=str(path), line=line, suggestion=f"is this a file of {form}?"
            ) from None
    if not found and most != 0:
        raise NotationError("there are no questions in the file", file=str(path))
    return found


def shipped_questions(name: str = "all") -> list[QuizQuestion]:
    """Return our own questions on the shipped corpus: ``"lookup"``, ``"two-hop"``, ``"arithmetic"``, or all.

    Raises:
        ResourceNotFound: there is no such set.
    """
    folder = authored.find("tasks", "questions")
    files = {path.stem: path for path in sorted(folder.glob("*.jsonl"))}
    if name != "all" and name not in files:
        raise ResourceNotFound("set of questions", name, ["all", *files])
    return [
        question for stem, path in files.items() if name in ("all", stem) for question in read_questions(path, "own")
    ]


def _read_lines(path: str | Path) -> Iterator[tuple[int, object]]:
    """Read the values of a file of JSON lines, each with the number of its line."""
    try:
        with open_file(path) as file:
            number = 0
            while line := file.readline(MOST_LINE + 1):
                number += 1
                if len(line) > MOST_LINE:
                    raise NotationError(f"the line has more than {MOST_LINE:,} bytes", file=str(path), line=number)
                if line.strip():
                    try:
                        yield number, parse_json(line)
                    except ValueError as error:
                        raise NotationError(f"this is no JSON: {error}", file=str(path), line=number) from None
    except OSError as error:
        raise NotationError(f"the file cannot be read: {error.strerror}", file=str(path)) from None


def _read_list(path: str | Path) -> Iterator[tuple[None, object]]:
    """Read the questions of a file that is one JSON value."""
    try:
        data = parse_json(read_text(path, most=MOST_BYTES))
    except json.JSONDecodeError as error:
        raise NotationError(
            f"this is no JSON: {error.msg}", file=str(path), line=error.lineno, column=error.colno
        ) from None
    except NotationError:
        raise
    except ValueError as error:
        raise NotationError(f"this is no JSON: {error}", file=str(path)) from None
    found = data.get("Data") if isinstance(data, dict) else data
    if not isinstance(found, list):
        raise NotationError("the file holds no list of questions", file=str(path))
    for one in found:
        yield None, one


# -- questions ---------------------------------------------------------------------------------------------------------


def _get_text(data: object, key: str, needed: bool = True) -> str:
    found = data.get(key) if isinstance(data, dict) else None
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if isinstance(found, str):
        return found
    if needed or found is not None:
        problem = "is no object" if not isinstance(data, dict) else f"has no text {key!r}"
        raise _Wrong(problem)
    return ""


def _get_texts(data: object, key: str) -> tuple[str, ...]:
    found = data.get(key, []) if isinstance(data, dict) else []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise _Wrong(f"has {key!r} that is no list of texts")
    return tuple(found)


def _parse_hotpotqa(data: object) -> QuizQuestion:
    """Parse a question of HotpotQA (Yang et al. 2018): one JSON list, ten paragraphs each (distractor, fullwiki)."""
    name, answer = _get_text(data, "_id"), _get_text(data, "answer", needed=False)
    try:
        pairs = data.get("context", []), data.get("supporting_facts", [])  # type: ignore[attr-defined]
        context = tuple((str(title), tuple(map(str, sentences))) for title, sentences in pairs[0])
        titles = tuple(dict.fromkeys(str(title) for title, _ in pairs[1]))
    except (AttributeError, TypeError, ValueError):
        raise _Wrong("has a context or supporting_facts that are no pairs") from None
    return QuizQuestion(
        name, _get_text(data, "question"), (answer,) if answer else (), "text", _get_text(data, "type", needed=False),
        titles, context,
    )  # fmt: skip


def _parse_gsm8k(data: object) -> QuizQuestion:
    """Parse a question of GSM8K (Cobbe et al. 2021): JSON lines; the number of the answer is after ``####``."""
    text, answer = _get_text(data, "question"), _get_text(data, "answer")
    _, sign, number = answer.rpartition("####")
    if not sign or not number.strip():
        raise _Wrong("has an answer without #### and a number")
    return QuizQuestion(
        _get_text(data, "id", needed=False) or text[:60], text, (number.strip().replace(",", ""),), "number"
    )


def _parse_triviaqa(data: object) -> QuizQuestion:
    """Parse a question of TriviaQA (Joshi et al. 2017): one JSON object with ``Data``; an answer has many names."""
    answer = data.get("Answer") if isinstance(data, dict) else None
    names: tuple[str, ...] = ()
    if answer is not None:
        aliases = (
            *_get_texts(answer, "Aliases"),
            *_get_texts(answer, "NormalizedAliases"),
            *_get_texts(answer, "HumanAnswers"),
        )
        names = tuple(dict.fromkeys((_get_text(answer, "Value"), *aliases)))
    pages = data.get("EntityPages", []) if isinstance(data, dict) else []
    titles = tuple(_get_text(page, "Title") for page in pages) if isinstance(pages, list) else ()
    return QuizQuestion(_get_text(data, "QuestionId"), _get_text(data, "Question"), names, "aliases", titles=titles)


def _parse_fever(data: object) -> QuizQuestion:
    """Parse a question of FEVER (Thorne et al. 2018): JSON lines with a claim and one of three labels."""
    label = _get_text(data, "label", needed=False)
    if label and label not in LABELS:
        raise _Wrong(f"has the label {label!r}; there are {', '.join(LABELS)}")
    try:
        evidence = data.get("evidence", [])  # type: ignore[attr-defined]
        titles = dict.fromkeys(str(part[2]) for group in evidence for part in group if part[2] is not None)
    except (AttributeError, TypeError, IndexError):
        raise _Wrong("has evidence that is no list of lists") from None
    return QuizQuestion(
        _get_text(data, "id"), _get_text(data, "claim"), (label,) if label else (), "label",
        _get_text(data, "verifiable", needed=False), tuple(titles),
    )  # fmt: skip


def _parse_own(data: object) -> QuizQuestion:
    """Parse a question of our own: ``id``, ``question``, ``answers``; optional ``measure``, ``kind``, ``titles``."""
    measure = _get_text(data, "measure", needed=False) or "text"
    answers = _get_texts(data, "answers")
    if measure not in ("text", "aliases", "number", "label") or not answers:
        raise _Wrong("has no answers, or a measure that there is not")
    return QuizQuestion(
        _get_text(data, "id"), _get_text(data, "question"), answers, measure,  # type: ignore[arg-type]
        _get_text(data, "kind", needed=False), _get_texts(data, "titles"),
    )  # fmt: skip


#: The forms of files: whether each line is a question, and the function that parses one.
FORMATS: dict[str, tuple[bool, Callable[[object], QuizQuestion]]] = {
    "hotpotqa": (False, _parse_hotpotqa),
    "gsm8k": (True, _parse_gsm8k),
    "triviaqa": (False, _parse_triviaqa),
    "fever": (True, _parse_fever),
    "own": (True, _parse_own),
}


class ContextArticles:
    """The paragraphs of questions as articles, each title once, for :func:`~formal_llm.agents.tools.build_corpus`.

    Args:
        questions: questions with paragraphs, such as those of HotpotQA.

    Raises:
        ValueError: no question has paragraphs.
    """

    def __init__(self, questions: Iterable[QuizQuestion]) -> None:
        found: dict[str, Article] = {}
        for question in questions:
            for title, sentences in question.context:
                found.setdefault(title, Article(title, "\n".join(sentence.strip() for sentence in sentences)))
        if not found:
            raise ValueError("the questions come without paragraphs; those of HotpotQA have them")
        self._articles = list(found.values())

    @property
    def fingerprint(self) -> str:
        """A hash of the paragraphs."""
        digest = hashlib.sha256()
        for article in self._articles:
            digest.update(repr((article.title, article.text)).encode(errors="replace"))
        return digest.hexdigest()

    def read(self) -> Iterator[Article]:
        """Yield the articles in the order of the first occurrence of their titles."""
        yield from self._articles

    def corpus(self, folder: Path) -> Corpus:
        """Open the corpus of these articles, in a file of a folder that is built if missing.

        Raises:
            InputError: the file cannot be written.
        """
        place = folder / f"corpus-{self.fingerprint[:16]}.sqlite"
        if not place.exists():
            build_corpus(self, place)
        return Corpus(place)
