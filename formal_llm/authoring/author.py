"""From plain words to rules: drafts until the checker is satisfied, then examples until the author is.

A model drafts. The findings of the checker are returned to it: errors with their positions, an empty language, steps
that no plan uses, violated examples. Without a model, the words have to be sentences of the notation
(:mod:`formal_llm.automata.notation.sentences`), which are rules already. Then plans are shown, and the author decides
whether they should be allowed; the answers become examples, which are kept beside the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypedDict, TypeVar, Unpack

from formal_llm.authoring.drafts import ENDINGS, Draft, check_draft, read_draft
from formal_llm.authoring.examples import Example
from formal_llm.authoring.prompts import write_first_messages, write_retry_messages
from formal_llm.authoring.questions import Candidate, find_differences, sample_plans
from formal_llm.automata import CFG, PDA
from formal_llm.automata.models.rules import Rules
from formal_llm.automata.notation.files import read_rules_text
from formal_llm.errors import LLMError, NotationError, NotAuthored, ResourceNotFound
from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.providers import LLMLike, resolve
from formal_llm.llms.question import Answer, Message
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage

#: Decides whether a shown plan should be allowed; None for no decision. Raise :class:`StopReview` to see no more plans.
Reviewer = Callable[[Candidate], bool | None]
T = TypeVar("T")
#: Yields texts to write, receives answers (or an ``LLMError`` is thrown in), and returns its result.
Asking: TypeAlias = Generator[TextRequest, Answer, T]


class StopReview(Exception):
    """Raised by a reviewer to see no more plans."""


@dataclass(frozen=True)
class AuthoredRules:
    """Rules, and the record of their creation.

    Attributes:
        ending: the file extension of their notation, such as ``".rules"``.
        warnings: possible mistakes that were left in, such as steps that no plan uses.
        examples: the judged plans, including those given.
        violated: the examples that the rules do not satisfy.
        drafts: every draft of the model, in order; the last one without problems is not always the last.
    """

    text: str
    ending: str
    rules: Rules
    warnings: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    violated: tuple[Example, ...] = ()
    drafts: tuple[Draft, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)


class AuthorSettings(TypedDict, total=False):
    """The settings of :func:`author`.

    Attributes:
        notation: ``"rules"``, ``"cfg"``, ``"mmd"``, ``"pda"`` or ``"agent"``; default: the model chooses.
        attempts: the maximum number of times the model may write, including corrections; default 5.
        drafts: the number of drafts of the model to compare; default 1. If they differ, the author decides which is
            right.
        examples: plans that must be allowed, and plans that must not.
        previous: the old version of the rules. Plans on which the new version differs are shown.
        reviewer: decides whether plans should be allowed; by default no plan is shown.
        max_plans: the maximum number of plans of a draft to show, besides those on which rules differ; default 6.
        max_tokens: the maximum number of tokens of one answer of the model; default 2048.
        on_draft: called with each new draft of the model, including its problems.
    """

    notation: str | None
    attempts: int
    drafts: int
    examples: Sequence[Example]
    previous: CFG | PDA | None
    reviewer: Reviewer | None
    max_plans: int
    max_tokens: int
    on_draft: Callable[[Draft], None] | None


def author(words: str, llm: LLMLike | None = None, **settings: Unpack[AuthorSettings]) -> AuthoredRules:
    """Turn plain words into rules.

    Args:
        words: the rules in words.
        llm: the model that drafts, one that writes text. Without it, the words are read as sentences of the notation
            ``.rules``, and anything else in them is an error.
        settings: ``notation``, ``attempts`` and more: see :class:`~formal_llm.authoring.author.AuthorSettings`.

    Raises:
        NotationError: without a model, the words are no such sentences, or no plan keeps all of them; with the place.
        NotAuthored: no draft was free of problems within the attempts; includes the drafts and their problems.
        LLMError: the model could not be asked.
        ValueError: the notation is unknown, or ``attempts`` or ``drafts`` is below 1.
    """
    model = None if llm is None else resolve(llm)

    def write_answer(asked: TextRequest) -> Answer:
        assert model is not None, "without a model nothing is asked"
        return model.ask(asked)

    return driven(draft_rules(words, by_model=model is not None, **settings), write_answer)


async def aauthor(words: str, llm: LLMLike, **settings: Unpack[AuthorSettings]) -> AuthoredRules:
    """Like :func:`author` with a model, without blocking the event loop while it writes, so many texts can be awaited.

    The checks between two drafts do block it; ``reviewer`` and ``on_draft`` are called in the event loop.
    """
    return await adriven(draft_rules(words, by_model=True, **settings), resolve(llm).aask)


def draft_rules(
    words: str,
    *,
    by_model: bool,
    notation: str | None = None,
    attempts: int = 5,
    drafts: int = 1,
    examples: Sequence[Example] = (),
    previous: CFG | PDA | None = None,
    reviewer: Reviewer | None = None,
    max_plans: int = 6,
    max_tokens: int = 2_048,
    on_draft: Callable[[Draft], None] | None = None,
) -> Asking[AuthoredRules]:
    """Like :func:`author`, as a generator that yields texts to write and receives answers; without a model, none."""
    ending = None if notation is None else f".{notation.removeprefix('.')}"
    if ending is not None and ending not in ENDINGS:
        raise ResourceNotFound("notation", str(notation), [kind[1:] for kind in ENDINGS])
    if min(attempts, drafts) < 1:
        raise ValueError("attempts and drafts count from 1")
    drafting: _Drafting | None = None
    if by_model:
        drafting = _Drafting(words, ending, attempts, max_tokens, tuple(examples), on_draft)
        candidates = [(yield from drafting.draft_cleanly())]
        while len(candidates) < drafts:
            candidates += [(yield from drafting.draft_cleanly())]
    else:
        candidates = [_read_sentences(words, ending)]
    review = _Review(reviewer, list(examples), max_plans)
    while True:
        draft = review.choose_candidate(candidates, previous)
        violated = tuple(one for one in review.examples if not one.satisfied_by(draft.source))
        if not violated or drafting is None:
            break
        candidates = [(yield from drafting.draft_cleanly(review.examples, draft))]
    made, usage = (tuple(drafting.drafts), drafting.usage) if drafting is not None else ((), TokenUsage())
    assert draft.rules is not None
    return AuthoredRules(
        draft.text, draft.ending, draft.rules, draft.warnings, tuple(review.examples), violated, made, usage
    )  # fmt: skip


def _read_sentences(words: str, ending: str | None) -> Draft:
    """The rules in words that are sentences already.

    Raises:
        NotationError: they are none, or no plan keeps all of them.
    """
    if ending not in (None, ".rules"):
        raise ValueError(f"without a model, rules are sentences: notation rules, not {str(ending)[1:]}")
    text = words.strip("\n") + "\n"
    draft = check_draft(text, ".rules")
    if draft.problems:
        read_rules_text(text, "<words>.rules")  # raises what is wrong, with its line
        raise NotationError(draft.problems[0], file="<words>")
    return draft


class _Drafting:
    """A model that drafts, and its drafts so far."""

    def __init__(
        self,
        words: str,
        ending: str | None,
        attempts: int,
        max_tokens: int,
        examples: tuple[Example, ...],
        on_draft: Callable[[Draft], None] | None,
    ) -> None:
        self._words, self._ending, self._left, self._max_tokens = words, ending, attempts, max_tokens
        self._examples = examples
        self._on_draft = on_draft
        self.drafts: list[Draft] = []
        self.usage = TokenUsage()
        #: The chat about the latest draft without problems, which continues if it violates an example.
        self._chat: list[Message] = []

    def draft_cleanly(self, examples: Sequence[Example] = (), mended: Draft | None = None) -> Asking[Draft]:
        """Return the next draft without problems: a new one, or a corrected one.

        Each warning is reported to the model once; one that recurs, or is in the last attempt, may be intended.

        Raises:
            NotAuthored: there was none within the remaining attempts.
            LLMError: the model could not be asked; ``on_draft`` has received its earlier drafts.
        """
        all_examples = tuple(dict.fromkeys((*self._examples, *examples)))
        if mended is not None:
            self._chat += write_retry_messages(mended, _describe_violations(mended, all_examples))
        else:
            self._chat = write_first_messages(self._words, self._ending, self._list_steps(), all_examples)
        reported: set[str] = set()
        usable: Draft | None = None
        while self._left:
            self._left -= 1
            draft = yield from self._write_draft()
            problems = [*draft.problems, *_describe_violations(draft, all_examples)]
            new = [warning for warning in draft.warnings if warning not in reported]
            if not problems and not new:
                return draft
            if problems:
                # The log of drafts records all problems of each draft.
                self.drafts[-1] = replace(draft, problems=tuple(problems))
            else:
                usable = draft
            reported.update(draft.warnings)
            self._chat += write_retry_messages(draft, [*problems, *draft.warnings])
        if usable is not None:
            return usable
        raise NotAuthored([(one.text, one.problems or one.warnings) for one in self.drafts], self.usage)

    def _write_draft(self) -> Asking[Draft]:
        # A further draft of the same model is only useful if it may differ.
        warm = 0.7 if any(not one.problems for one in self.drafts) else 0.0
        request = TextRequest(self._chat, max_tokens=self._max_tokens, temperature=warm, task=self._words)
        try:
            answer = yield request
        except LLMError as error:
            error.usage = self.usage + (error.usage or TokenUsage())
            raise
        self.usage = self.usage + answer.usage
        draft = read_draft(answer.text, self._ending)
        self.drafts.append(draft)
        if self._on_draft is not None:
            self._on_draft(draft)
        return draft

    def _list_steps(self) -> tuple[str, ...]:
        """Return the names of the steps: those of an earlier draft, or of the examples."""
        for draft in self.drafts:
            if not draft.problems:
                return tuple(draft.source.terminals)
        return tuple(dict.fromkeys(name for one in self._examples for name in one.plan))


def _describe_violations(draft: Draft, examples: Sequence[Example]) -> list[str]:
    if draft.problems or draft.rules is None:
        return []
    return [
        (
            f"this plan should be allowed, and the rules refuse it: {one}"
            if one.allowed
            else f"this plan should not be allowed, and the rules allow it: {one}"
        )
        for one in examples
        if not one.satisfied_by(draft.source)
    ]


class _Review:
    """What the author says of plans that are shown."""

    def __init__(self, reviewer: Reviewer | None, examples: list[Example], most: int) -> None:
        self._reviewer = reviewer
        self._most = most
        self.examples = examples

    def choose_candidate(self, candidates: Sequence[Draft], previous: CFG | PDA | None) -> Draft:
        """Return the first candidate that satisfies all answers of the author, or the one that violates the fewest."""
        remaining = list(candidates)
        try:
            while len(remaining) > 1:
                one, other = remaining[0], remaining[1]
                answer = self._find_first_answer(one.source, other.source, "the rules of the other draft")
                # If no difference is judged, or there is none, the first stays.
                remaining.remove(other if answer is None or answer.satisfied_by(one.source) else one)
            draft = remaining[0]
            if previous is not None and self._reviewer is not None:
                for question in find_differences(draft.source, previous, "the old rules"):
                    self._ask_reviewer(question)
            if self._reviewer is not None:
                plans = [one.plan for one in self.examples]
                for question in sample_plans(draft.source, self._most, plans):
                    self._ask_reviewer(question)
        except StopReview:
            self._reviewer = None
        return min(remaining, key=lambda one: sum(not x.satisfied_by(one.source) for x in self.examples))

    def _find_first_answer(self, one: CFG | PDA, other: CFG | PDA, whose: str) -> Example | None:
        for question in find_differences(one, other, whose):
            answer = self._ask_reviewer(question)
            if answer is not None:
                return answer
        return None

    def _ask_reviewer(self, shown: Candidate) -> Example | None:
        """Return the author's decision on a plan, which is requested once."""
        for one in self.examples:
            if (one.plan, one.order) == (shown.plan, shown.order):
                return one
        verdict = None if self._reviewer is None else self._reviewer(shown)
        if verdict is None:
            return None
        why = "" if verdict == shown.allowed else f"{shown.why}; a draft said otherwise"
        self.examples.append(Example(shown.plan, verdict, why, order=shown.order))
        return self.examples[-1]
