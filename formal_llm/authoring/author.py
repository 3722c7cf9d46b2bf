"""From plain words to rules: drafts until the checker is satisfied, then examples until the author is.

A model drafts. The findings of the checker are returned to it: errors with their positions, an empty language, parts
that no plan uses, violated examples. Without a model, :mod:`formal_llm.authoring.english` reads the sentences. Then
plans are shown, and the author decides whether they should be allowed; the answers become examples, which are kept
beside the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias, TypedDict, TypeVar, Unpack

from formal_llm.authoring.drafts import KINDS, Draft, check_draft, draft_of
from formal_llm.authoring.english import read_english
from formal_llm.authoring.examples import Example
from formal_llm.authoring.questions import Shown, find_differences, sample_plans
from formal_llm.automata import CFG, PDA
from formal_llm.automata.models.rules import Rules
from formal_llm.errors import LLMError, NotAuthored, NotUnderstood, ResourceNotFound
from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import LLMLike, aanswered, answered, resolve
from formal_llm.llms.question import Answer, Message
from formal_llm.llms.usage import TokenUsage

#: A short description of each notation, with an example.
NOTATIONS: dict[str, str] = {
    ".cfg": """A grammar (cfg): what is made of what. A symbol with a rule is a nonterminal, every other one is a step.
```cfg
%order forward
%limit 2 rinse
Plan -> fill Wash drain
Wash -> soap rinse | rinse Wash | ε
```
`|` separates alternatives; repetition is recursion; no * + ? and no quotes around symbols. `%limit N name` and
`%require N name` bound how often a step happens.""",
    ".mmd": """A flowchart (mermaid): questions with labelled answers, and steps. `{ }` is a question, `[ ]` a step.
```mermaid
flowchart TD
  start([Start]) --> paid{"Is it paid?"}
  paid -->|yes| ship[Ship it]
  paid -->|no| remind[Send a reminder]
  ship --> done([End])
  remind --> done
```""",
    ".pda": """An automaton (pda): states, and a line for each transition: state, step, popped -> state, pushed; ε is
nothing.
```pda
%start idle
%accept idle
idle, open, ε -> busy, ε
busy, work, ε -> busy, ε
busy, close, ε -> idle, ε
```""",
    ".agent": """A behaviour (agent): the steps, and a formula for the allowed sequences of them.
```agent
(define name
  (:states wash dry iron)
  (:limits "%limit 2 iron" "%require 1 wash")
  (:behavior (and
    (not (next (until (and any (not wash)) dry) (until any empty)))
    (not (eventually (next iron iron))))))
```
`(next a b)` is a, then b; `(or a b)`; `(and f g)` both hold of the whole sequence; `(not f)`; `any` is one step;
`empty` nothing; `(until a b)` a any number of times, then b; `(until_2_5 a b)` 2 to 5 times; `(eventually f)` somewhere
in the sequence.""",
}
_BEST = {
    ".cfg": "parts made of parts, recipes, typed steps",
    ".mmd": "questions and answers",
    ".pda": "clocks and counters",
    ".agent": "sentences about order and number",
}


def first_messages(words: str, ending: str | None, steps: Sequence[str], examples: Sequence[Example]) -> list[Message]:
    """Return the chat that requests a first draft.

    Args:
        words: the rules in plain words.
        ending: the notation; the model chooses if omitted.
        steps: the known names of steps; empty if the model may choose them.
        examples: plans that must be allowed, and plans that must not.
    """
    if ending is not None:
        instruction = NOTATIONS[ending]
    else:
        choices = "; ".join(f"{kind[1:]}: {best}" for kind, best in _BEST.items())
        instruction = "Pick the notation that fits best (" + choices + ").\n\n" + "\n\n".join(NOTATIONS.values())
    system = (
        "You write down which plans are valid, as formal rules. A plan is a sequence of steps. Every plan that the "
        "words allow must follow the rules, and no other plan. Name steps in small letters with underscores. Answer "
        f"with the rules alone, in one code block.\n\n{instruction}"
    )
    parts = [f"The rules in words:\n\n{words.strip()}"]
    if steps:
        parts.append(f"The steps are called: {', '.join(steps)}.")
    if examples:
        parts.append("Known plans:\n" + "\n".join(map(_describe_example, examples)))
    return [Message("system", system), Message("user", "\n\n".join(parts))]


def retry_messages(draft: Draft, problems: Sequence[str]) -> list[Message]:
    """Return the messages that continue the chat after a draft with problems."""
    listed = "\n".join(f"- {problem}" for problem in problems)
    draft_text = f"```{draft.ending[1:]}\n{draft.text.rstrip()}\n```" if draft.ending else draft.text
    instruction = "Write the whole rules again, mended, in one code block. What is meant so may stay."
    request = f"This was found in it:\n\n{listed}\n\n{instruction}"
    return [Message("assistant", draft_text or "(nothing)"), Message("user", request)]


def _describe_example(example: Example) -> str:
    return f"- {'must be allowed' if example.allowed else 'must not be allowed'}: {example}"


#: Decides whether a shown plan should be allowed; None for no decision. Raise :class:`Enough` to see no more plans.
Judge = Callable[[Shown], bool | None]
T = TypeVar("T")
#: Yields texts to write, receives answers (or an ``LLMError`` is thrown in), and returns its result.
Asking: TypeAlias = Generator[Writing, Answer, T]


class Enough(Exception):
    """Raised by a judge to see no more plans."""


@dataclass(frozen=True)
class Authored:
    """Rules, and the record of their creation.

    Attributes:
        ending: the file extension of their notation, such as ``".cfg"``.
        doubts: possible mistakes that were left in: warnings, steps that no plan uses.
        examples: the judged plans, including those given.
        broken: the examples that the rules violate.
        drafts: every draft of the model, in order; the last one without problems is not always the last.
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
        notation: ``"cfg"``, ``"mmd"``, ``"pda"`` or ``"agent"``; default: the model chooses.
        tries: the maximum number of times the model may write, including corrections; default 5.
        drafts: the number of drafts of the model to compare; default 1. If they differ, the author decides which is
            right.
        examples: plans that must be allowed, and plans that must not.
        before: the old version of the rules. Plans on which the new version differs are shown.
        judge: decides whether plans should be allowed; by default no plan is shown.
        shown: the maximum number of plans of a draft to show, besides those on which rules differ; default 6.
        max_tokens: the maximum number of tokens of one answer of the model; default 2048.
        on_draft: called with each new draft of the model, including its problems.
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
    """Turn plain words into rules.

    Args:
        words: the rules in words.
        llm: the model that drafts, one that writes text. Without it, the words are read as controlled English.
        settings: ``notation``, ``tries`` and more: see :class:`~formal_llm.authoring.author.AuthorSettings`.

    Raises:
        NotUnderstood: without a model, sentences match no pattern; includes the nearest ones.
        NotationError: without a model, sentences contradict each other; specifies which.
        NotAuthored: no draft was free of problems within the tries; includes the drafts and their problems.
        LLMError: the model could not be asked.
        ValueError: the notation is unknown, or ``tries`` or ``drafts`` is below 1.
    """
    model = None if llm is None else resolve(llm)

    def write_answer(asked: Writing) -> Answer:
        assert model is not None, "without a model nothing is asked"
        return answered(model, asked)

    return driven(author_steps(words, by_model=model is not None, **settings), write_answer)


async def aauthor(words: str, llm: LLMLike, **settings: Unpack[AuthorSettings]) -> Authored:
    """Like :func:`author` with a model, without blocking the event loop while it writes, so many texts can be awaited.

    The checks between two drafts do block it; ``judge`` and ``on_draft`` are called in the event loop.
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
    """Like :func:`author`, as a generator that yields texts to write and receives answers; without a model, none."""
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
        drafting: _Drafting | None = None
    else:
        drafting = _Drafting(words, ending, tries, max_tokens, tuple(examples), on_draft)
        candidates = []
        for _ in range(drafts):
            candidates.append((yield from drafting.draft_cleanly()))
    session = _PlanJudge(judge, list(examples), shown)
    while True:
        draft = session.choose_candidate(candidates, before)
        broken = tuple(one for one in session.examples if not one.kept(draft.source))
        if not broken or drafting is None:
            break
        candidates = [(yield from drafting.draft_cleanly(session.examples, draft))]
    tried, usage = (tuple(drafting.drafts), drafting.usage) if drafting is not None else ((), TokenUsage())
    assert draft.rules is not None
    return Authored(
        draft.text, draft.ending, draft.rules, draft.doubts, tuple(session.examples), broken, tried, usage
    )  # fmt: skip


class _Drafting:
    """A model that drafts, and its drafts so far."""

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
        #: The chat about the latest draft without problems, which continues if it violates an example.
        self._chat: list[Message] = []

    def draft_cleanly(self, examples: Sequence[Example] = (), mended: Draft | None = None) -> Asking[Draft]:
        """Return the next draft without problems: a new one, or a corrected one.

        Each doubt is reported to the model once; a doubt that recurs, or is in the last try, may be intended.

        Raises:
            NotAuthored: there was none within the remaining tries.
            LLMError: the model could not be asked; ``on_draft`` has received its earlier drafts.
        """
        all_examples = tuple(dict.fromkeys((*self._examples, *examples)))
        if mended is not None:
            self._chat += retry_messages(mended, _describe_violations(mended, all_examples))
        else:
            self._chat = first_messages(self._words, self._ending, self._collect_steps(), all_examples)
        reported: set[str] = set()
        usable: Draft | None = None
        while self._left:
            self._left -= 1
            draft = yield from self._write_draft()
            problems = [*draft.problems, *_describe_violations(draft, all_examples)]
            new = [doubt for doubt in draft.doubts if doubt not in reported]
            if not problems and not new:
                return draft
            if problems:
                # The log of drafts records all problems of each draft.
                self.drafts[-1] = replace(draft, problems=tuple(problems))
            else:
                usable = draft
            reported.update(draft.doubts)
            self._chat += retry_messages(draft, [*problems, *draft.doubts])
        if usable is not None:
            return usable
        raise NotAuthored([(one.text, one.problems or one.doubts) for one in self.drafts], self.usage)

    def _write_draft(self) -> Asking[Draft]:
        # A further draft of the same model is only useful if it may differ.
        warm = 0.7 if any(not one.problems for one in self.drafts) else 0.0
        request = Writing(self._chat, max_tokens=self._max_tokens, temperature=warm, task=self._words)
        try:
            answer = yield request
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
        """Return the names of the steps: those of an earlier draft, or of the examples and the reader of English."""
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
    """The author, who decides whether plans should be allowed."""

    def __init__(self, judge: Judge | None, examples: list[Example], most: int) -> None:
        self._judge = judge
        self._most = most
        self.examples = examples

    def choose_candidate(self, candidates: Sequence[Draft], before: CFG | PDA | None) -> Draft:
        """Return the first candidate that keeps all answers of the author, or the one that violates the fewest."""
        remaining = list(candidates)
        try:
            while len(remaining) > 1:
                one, other = remaining[0], remaining[1]
                answer = self._first_answer(one.source, other.source, "the rules of the other draft")
                # If no difference is judged, or there is none, the first stays.
                remaining.remove(other if answer is None or answer.kept(one.source) else one)
            draft = remaining[0]
            if before is not None and self._judge is not None:
                for question in find_differences(draft.source, before, "the old rules"):
                    self._ask_judge(question)
            if self._judge is not None:
                plans = [one.plan for one in self.examples]
                for question in sample_plans(draft.source, self._most, plans):
                    self._ask_judge(question)
        except Enough:
            self._judge = None
        return min(remaining, key=lambda one: sum(not example.kept(one.source) for example in self.examples))

    def _first_answer(self, one: CFG | PDA, other: CFG | PDA, whose: str) -> Example | None:
        for question in find_differences(one, other, whose):
            answer = self._ask_judge(question)
            if answer is not None:
                return answer
        return None

    def _ask_judge(self, shown: Shown) -> Example | None:
        """Return the author's decision on a plan, which is requested once."""
        for one in self.examples:
            if one.plan == shown.plan:
                return one
        verdict = None if self._judge is None else self._judge(shown)
        if verdict is None:
            return None
        self.examples.append(
            Example(shown.plan, verdict, "" if verdict == shown.allowed else f"{shown.why}; a draft said otherwise")
        )
        return self.examples[-1]
