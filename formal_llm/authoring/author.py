"""From plain words to rules: drafts, until the checker is content; then examples, until the author is.

A model drafts. What the checker finds goes back to it: errors with their place, an empty language, parts that no plan
uses, examples that are not kept. Without a model the sentences are read by :mod:`formal_llm.authoring.english`. Then
plans are shown, and the author says whether they should be allowed; the answers are examples, which stay beside the
rules.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias, TypedDict, TypeVar, Unpack

from formal_llm.authoring.drafts import KINDS, Draft, check_draft, draft_of
from formal_llm.authoring.english import read_english
from formal_llm.authoring.examples import Example
from formal_llm.authoring.prompts import first_messages, retry_messages
from formal_llm.authoring.questions import Shown, find_differences, sample_plans
from formal_llm.automata import CFG, PDA
from formal_llm.automata.models.rules import Rules
from formal_llm.errors import LLMError, NotAuthored, NotUnderstood, ResourceNotFound
from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import LLMLike, aanswered, answered, resolve
from formal_llm.llms.question import Answer, Message
from formal_llm.llms.usage import TokenUsage

#: Says of a plan that is shown whether it should be allowed; None to say nothing. Raise :class:`Enough` to see no more.
Judge = Callable[[Shown], bool | None]
T = TypeVar("T")
#: What is to be written goes out, answers come in (or an ``LLMError`` is thrown in); the value is what comes of it.
Asking: TypeAlias = Generator[Writing, Answer, T]


class Enough(Exception):
    """The author has seen enough."""


@dataclass(frozen=True)
class Authored:
    """Rules, and how they came about.

    Attributes:
        text: the rules as they are written.
        ending: that of a file in their notation, such as ``".cfg"``.
        rules: what they are.
        doubts: what may not be meant, and was left so: warnings, steps that no plan uses.
        examples: the plans that were judged, those that were given included.
        broken: those of them that the rules do not keep.
        drafts: every draft of the model, in order; the last one that is clean is not always the last.
        usage: what the model cost.
    """

    text: str
    ending: str
    rules: Rules
    doubts: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    broken: tuple[Example, ...] = ()
    drafts: tuple[Draft, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)


class AuthorSettings(TypedDict, total=False):
    """The settings of :func:`author`.

    Attributes:
        notation: ``"cfg"``, ``"mmd"``, ``"pda"`` or ``"agent"``; the model picks where left out.
        tries: how often the model may write, all drafts and corrections together; 5 where left out.
        drafts: how many drafts of the model are compared; 1 where left out. Where they differ, the author says who is
            right.
        examples: plans that must be allowed, and such that must not.
        before: the old version of the rules. Plans on which the new one differs are shown.
        judge: says of plans whether they should be allowed; nobody is asked where left out.
        shown: how many plans of a draft are shown at most, beside those on which rules differ; 6 where left out.
        max_tokens: the most tokens of one answer of the model; 2048 where left out.
        on_draft: called with each draft of the model as it comes, whatever is wrong with it.
    """

    notation: str | None
    tries: int
    drafts: int
    examples: Sequence[Example]
    before: CFG | PDA | None
    judge: Judge | None
    shown: int
    max_tokens: int
    on_draft: Callable[[Draft], None] | None


def author(words: str, llm: LLMLike | None = None, **settings: Unpack[AuthorSettings]) -> Authored:
    """Rules from plain words.

    Args:
        words: the rules in words.
        llm: who drafts: anything that writes text. Without one, the words are read as controlled English.
        settings: ``notation``, ``tries`` and more: see :class:`~formal_llm.authoring.author.AuthorSettings`.

    Raises:
        NotUnderstood: without a model, sentences that fit no pattern; with the nearest ones.
        NotationError: without a model, sentences that cannot hold together; which ones.
        NotAuthored: no draft was clean within the tries; what was tried, what was wrong.
        LLMError: the model could not be asked.
        ValueError: no such notation, or no try.
    """
    who = None if llm is None else resolve(llm)

    def write_answer(asked: Writing) -> Answer:
        assert who is not None, "without a model nothing is asked"
        return answered(who, asked)

    return driven(author_steps(words, by_model=who is not None, **settings), write_answer)


async def aauthor(words: str, llm: LLMLike, **settings: Unpack[AuthorSettings]) -> Authored:
    """As :func:`author` with a model, letting others go on while it writes: many texts at once wait together.

    What is checked between two drafts is not given up for others; ``judge`` and ``on_draft`` are called in the event
    loop.
    """
    return await adriven(author_steps(words, by_model=True, **settings), partial(aanswered, resolve(llm)))


def author_steps(
    words: str,
    *,
    by_model: bool,
    notation: str | None = None,
    tries: int = 5,
    drafts: int = 1,
    examples: Sequence[Example] = (),
    before: CFG | PDA | None = None,
    judge: Judge | None = None,
    shown: int = 6,
    max_tokens: int = 2_048,
    on_draft: Callable[[Draft], None] | None = None,
) -> Asking[Authored]:
    """As :func:`author`, of nobody: what is to be written goes out, answers come in; without a model, nothing does."""
    ending = None if notation is None else f".{notation.removeprefix('.')}"
    if ending is not None and ending not in KINDS:
        raise ResourceNotFound("notation", str(notation), [kind[1:] for kind in KINDS])
    if min(tries, drafts) < 1:
        raise ValueError("tries and drafts count from 1")
    if not by_model:
        if ending not in (None, ".agent"):
            raise ValueError(f"without a model, rules are written as a behaviour: notation agent, not {notation}")
        read = read_english(words)
        draft = check_draft(read.text, ".agent")
        candidates = [replace(draft, doubts=(*read.doubts, *draft.doubts))]
        made: _Drafting | None = None
    else:
        made = _Drafting(words, ending, tries, max_tokens, tuple(examples), on_draft)
        candidates = []
        for _ in range(drafts):
            candidates.append((yield from made.draft_cleanly()))
    session = _PlanJudge(judge, list(examples), shown)
    while True:
        draft = session.choose_candidate(candidates, before)
        broken = tuple(one for one in session.examples if not one.kept(draft.source))
        if not broken or made is None:
            break
        candidates = [(yield from made.draft_cleanly(session.examples, draft))]
    tried, usage = (tuple(made.drafts), made.usage) if made is not None else ((), TokenUsage())
    assert draft.rules is not None
    return Authored(
        draft.text, draft.ending, draft.rules, draft.doubts, tuple(session.examples), broken, tried, usage
    )  # fmt: skip


class _Drafting:
    """A model that drafts, and what it wrote so far."""

    def __init__(
        self,
        words: str,
        ending: str | None,
        tries: int,
        max_tokens: int,
        examples: tuple[Example, ...],
        on_draft: Callable[[Draft], None] | None,
    ) -> None:
        self._words, self._ending, self._left, self._max_tokens = words, ending, tries, max_tokens
        self._examples = examples
        self._on_draft = on_draft
        self.drafts: list[Draft] = []
        self.usage = TokenUsage()
        #: The chat about the latest clean draft, which goes on where an example is not kept.
        self._chat: list[Message] = []

    def draft_cleanly(self, examples: Sequence[Example] = (), mended: Draft | None = None) -> Asking[Draft]:
        """The next clean draft: one of its own, or another one mended.

        Doubts are told the model once; those that come again, and those of the last try, may be meant.

        Raises:
            NotAuthored: there was none in the tries that were left.
            LLMError: the model could not be asked; what it drafted before is told by ``on_draft``.
        """
        known = tuple(dict.fromkeys((*self._examples, *examples)))
        if mended is not None:
            self._chat += retry_messages(mended, _describe_violations(mended, known))
        else:
            self._chat = first_messages(self._words, self._ending, self._collect_steps(), known)
        told: set[str] = set()
        usable: Draft | None = None
        while self._left:
            self._left -= 1
            draft = yield from self._write_draft()
            problems = [*draft.problems, *_describe_violations(draft, known)]
            new = [doubt for doubt in draft.doubts if doubt not in told]
            if not problems and not new:
                return draft
            if problems:
                # What is to be found in the log of drafts is all that was wrong with each.
                self.drafts[-1] = replace(draft, problems=tuple(problems))
            else:
                usable = draft
            told.update(draft.doubts)
            self._chat += retry_messages(draft, [*problems, *draft.doubts])
        if usable is not None:
            return usable
        raise NotAuthored([(one.text, one.problems or one.doubts) for one in self.drafts], self.usage)

    def _write_draft(self) -> Asking[Draft]:
        # A second draft of one's own is worth something only if it may come out differently.
        warm = 0.7 if any(not one.problems for one in self.drafts) else 0.0
        asked = Writing(self._chat, max_tokens=self._max_tokens, temperature=warm, task=self._words)
        try:
            answer = yield asked
        except LLMError as error:
            error.usage = self.usage + (error.usage or TokenUsage())
            raise
        self.usage = self.usage + answer.usage
        draft = draft_of(answer.text, self._ending)
        self.drafts.append(draft)
        if self._on_draft is not None:
            self._on_draft(draft)
        return draft

    def _collect_steps(self) -> tuple[str, ...]:
        """What the steps are called: as in an earlier draft, or the examples and the reader of English call them."""
        for draft in self.drafts:
            if not draft.problems:
                return tuple(draft.source.terminals)
        named = dict.fromkeys(name for one in self._examples for name in one.plan)
        try:
            named |= dict.fromkeys(read_english(self._words).steps)
        except (NotUnderstood, ValueError):
            return ()
        return tuple(named)


def _describe_violations(draft: Draft, examples: Sequence[Example]) -> list[str]:
    """The examples that a draft does not keep, in words."""
    if draft.problems or draft.rules is None:
        return []
    return [
        (
            f"this plan should be allowed, and the rules refuse it: {one}"
            if one.allowed
            else f"this plan should not be allowed, and the rules allow it: {one}"
        )
        for one in examples
        if not one.kept(draft.source)
    ]


class _PlanJudge:
    """The author, who says of plans whether they should be allowed."""

    def __init__(self, judge: Judge | None, examples: list[Example], most: int) -> None:
        self._judge = judge
        self._most = most
        self.examples = examples

    def choose_candidate(self, candidates: Sequence[Draft], before: CFG | PDA | None) -> Draft:
        """The candidate that keeps what the author said; the nearest one where none does."""
        left = list(candidates)
        try:
            while len(left) > 1:
                one, other = left[0], left[1]
                answer = self._first_answer(one.source, other.source, "the rules of the other draft")
                # Where nothing is said of any difference, or there is none, the first stays.
                left.remove(other if answer is None or answer.kept(one.source) else one)
            draft = left[0]
            if before is not None and self._judge is not None:
                for one_shown in find_differences(draft.source, before, "the old rules"):
                    self._ask_judge(one_shown)
            if self._judge is not None:
                known = [one.plan for one in self.examples]
                for one_shown in sample_plans(draft.source, self._most, known):
                    self._ask_judge(one_shown)
        except Enough:
            self._judge = None
        return min(left, key=lambda one: sum(not example.kept(one.source) for example in self.examples))

    def _first_answer(self, one: CFG | PDA, other: CFG | PDA, whose: str) -> Example | None:
        for shown in find_differences(one, other, whose):
            answer = self._ask_judge(shown)
            if answer is not None:
                return answer
        return None

    def _ask_judge(self, shown: Shown) -> Example | None:
        """What the author says of a plan; asked once."""
        for one in self.examples:
            if one.plan == shown.plan:
                return one
        said = None if self._judge is None else self._judge(shown)
        if said is None:
            return None
        self.examples.append(
            Example(shown.plan, said, "" if said == shown.allowed else f"{shown.why}; a draft said otherwise")
        )
        return self.examples[-1]
