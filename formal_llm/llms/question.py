"""A question and its answer: all that passes between a planner and the one who answers.

A :class:`Question` is plain data. Its parts that cost something to make, the prompt and the outlook, may be given as
functions and are made when they are first looked at, so a double that only looks at the number of options is free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.reading import read_numbers
from formal_llm.llms.usage import NO_TOKENS, TokenUsage

#: What is wrong with a set of option numbers, or an empty text.
Objection: TypeAlias = Callable[[tuple[int, ...]], str]
#: Whether a set of option numbers without objection begins with some numbers, all others being higher than theirs.
Beginning: TypeAlias = Callable[[tuple[int, ...]], bool]


@dataclass(frozen=True, slots=True)
class Term:
    """A terminal as an answerer reads it."""

    name: str
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Prospect:
    """What choosing an option means for the rest of the plan.

    Attributes:
        uses: the terminals that the option puts into the plan at once.
        allows: the terminals that the plan may still use after it, each with by how many terminals that makes the plan
            longer than it has to be, at least.
        length: how many terminals are needed at least to finish after it.
    """

    uses: tuple[Term, ...] = ()
    allows: tuple[tuple[Term, int], ...] = ()
    length: int = 0


@dataclass(frozen=True, slots=True)
class Outlook:
    """What an answerer may know beyond the texts of the options.

    Attributes:
        so_far: the terminals that the plan has already.
        prospects: for each option what it means.
        backward: whether the plan is written from its last step to its first.
    """

    so_far: tuple[Term, ...] = ()
    prospects: tuple[Prospect, ...] = ()
    backward: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """One numbered line of a question; numbers count from 1."""

    number: int
    text: str


class Message(NamedTuple):
    """A message of a chat: ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What was chosen.

    Attributes:
        numbers: the numbers of the chosen options; one, unless the question asks for several.
        probabilities: for each option number its probability, where the answerer knows it.
        text: the answer as it was given, where it was given as text.
        usage: what it cost.
        ended: of a text, what ended it, where that is known (:class:`~formal_llm.llms.generation.Generated`).
        label_mass: of a decision model, the probability that the options had together before they were scaled to 1:
            where it is low, the model would rather have written something else.
    """

    numbers: tuple[int, ...]
    probabilities: Mapping[int, float] | None = field(default=None, hash=False)
    text: str = ""
    usage: TokenUsage = NO_TOKENS
    ended: str | None = None
    label_mass: float | None = None

    @property
    def number(self) -> int:
        """The one number that was chosen."""
        if len(self.numbers) != 1:
            raise ValueError(f"{len(self.numbers)} numbers were chosen, not one")
        return self.numbers[0]


#: What stands for an answer: an :class:`Answer`, a number, several numbers, or text to read (:meth:`Question.check`).
AnswerLike: TypeAlias = Answer | int | Sequence[int] | str


#: What of a question may be given as a function.
_FUNCTIONS = ("_prompt", "_messages", "_outlook")


class Question:
    """A numbered choice, as a value: it is compared, hashed, copied and pickled by what it asks and what it accepts.

    What is given as a function is made for that. ``objection`` and ``begins`` are part of the question, so they have to
    be values too where it is pickled or compared: functions of a module, or frozen dataclasses that can be called.

    Args:
        prompt: the text of the question, standing alone; or a function that makes it.
        options: what can be chosen: texts, numbered from 1 in their order, or :class:`Option` values.
        several: whether any non-empty selection of options is an answer, or exactly one.
        task: the task that the plan is for.
        messages: what comes before the prompt in a chat (system message, examples, earlier questions and answers), or
            a function that makes it.
        outlook: what the options mean for the rest of the plan, or a function that returns it; None where that is
            unknown.
        objection: for options that may be chosen one by one but not all together; see :data:`Objection`.
        begins: with ``objection``: see :data:`Beginning`; where it is left out, this is found by trying sets.
        walk: the name of the walk that asks, where several are under way.
    """

    __slots__ = (
        "_held", "_kept", "_made", "_messages", "_outlook", "_prompt",
        "begins", "complaint", "objection", "options", "several", "task", "walk",
    )  # fmt: skip

    def __init__(
        self,
        prompt: str | Callable[[], str],
        options: Sequence[str | Option],
        *,
        several: bool = False,
        task: str = "",
        messages: Sequence[Message] | Callable[[], Sequence[Message]] = (),
        outlook: Outlook | Callable[[], Outlook] | None = None,
        objection: Objection | None = None,
        begins: Beginning | None = None,
        walk: str = "",
    ) -> None:
        self._prompt = prompt
        #: What the functions have made, and what of it is kept.
        self._made: dict[str, Any] = {}
        self._kept: tuple[str, ...] = _FUNCTIONS
        self._held = False
        if type(options) is tuple and options and type(options[0]) is Option:
            self.options: tuple[Option, ...] = options
        else:
            numbered = enumerate(options, 1)
            self.options = tuple(one if isinstance(one, Option) else Option(number, one) for number, one in numbered)
        self.several = several
        self.task = task
        self._messages = messages if callable(messages) else tuple(messages)
        self._outlook = outlook
        self.objection = objection
        self.begins = begins
        self.walk = walk
        self.complaint = ""

    @property
    def prompt(self) -> str:
        """The text of the question; after a bad answer, with what was wrong."""
        prompt = self._get("_prompt")
        return f"{prompt}\n\n{self.complaint}" if self.complaint else prompt

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat, ending with the prompt as the user's message."""
        return (*self._get("_messages"), Message("user", self.prompt))

    @property
    def outlook(self) -> Outlook | None:
        """What the options mean for the rest of the plan; None where that is not known."""
        outlook: Outlook | None = self._get("_outlook")
        return outlook

    def _get(self, name: str) -> Any:
        """What was given, or what was given as a function makes."""
        given = getattr(self, name)
        if not callable(given):
            return given
        made = self._made.get(name)
        if made is None:
            made = given()
            if name in self._kept:
                self._made[name] = made
        return made

    def let_go(self, *, prompt: bool = True) -> None:
        """Keep no longer what functions have made: from now on it is made each time that it is looked at.

        For questions that are answered: of a long plan there are many, and each prompt has all the steps before it.
        The prompt is kept where ``prompt`` is False, and the whole chat where it is held (:meth:`hold`).
        """
        self._kept = _FUNCTIONS[:2] if self._held else () if prompt else _FUNCTIONS[:1]
        if self._made:
            self._made = {name: made for name, made in self._made.items() if name in self._kept}

    def hold(self) -> None:
        """The chat is looked at again and again, as in training: it is kept from now on, answered or not."""
        self._held = True

    @property
    def content(self) -> dict[str, object]:
        """What the answerer is shown, as JSON data: equal for questions that are the same to it."""
        return {
            "messages": [list(message) for message in self.messages],
            "options": [[option.number, option.text] for option in self.options],
            "several": self.several,
        }

    def __repr__(self) -> str:
        return f"<Question: {' | '.join(f'{option.number}: {option.text}' for option in self.options)}>"

    # -- a value ------------------------------------------------------------------------------------------------

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """All that makes the question, as pickle has it for slots; what was given as a function is made."""
        made = {name: self._get(name) for name in _FUNCTIONS}
        kept = {"_made": {}, "_kept": _FUNCTIONS, "_held": False}
        return None, {**self._slots(), **made, "_messages": tuple(made["_messages"]), **kept}

    def _slots(self) -> dict[str, object]:
        names = [name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())]
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Question) and self.__getstate__() == other.__getstate__())

    def __hash__(self) -> int:
        return hash((self.prompt, self.options, self.several, self.task, self.walk))

    # -- answers ------------------------------------------------------------------------------------------------

    def read(self, text: str, *, usage: TokenUsage | None = None) -> Answer:
        """The answer that ``text`` gives: ``2``, ``2.``, ``Option 2``, ``2: its text``; strictly, never a guess.

        Raises:
            InvalidAnswer: it is no such answer.
        """
        try:
            numbers = read_numbers(text, [option.text for option in self.options], several=self.several)
        except ValueError as error:
            raise InvalidAnswer(str(error), [(self.prompt, text)]) from None
        return Answer(numbers, text=text, usage=usage or NO_TOKENS)

    def check(self, given: object) -> Answer:
        """``given`` as an answer to this question, if it is one of :data:`AnswerLike` and legal.

        Raises:
            InvalidAnswer: it does not answer the question.
        """
        if isinstance(given, str):
            given = self.read(given)
        if isinstance(given, Answer):
            answer = given
        elif _is_number(given):
            answer = Answer((given,))
        elif isinstance(given, Sequence) and all(map(_is_number, given)):
            answer = Answer(tuple(given))
        else:
            raise InvalidAnswer(
                f"{type(given).__name__} is no answer; return a number or an Answer", [(self.prompt, repr(given))]
            )
        problem = self.problem(answer.numbers)
        if problem:
            said = answer.text or ", ".join(map(str, answer.numbers))
            raise InvalidAnswer(problem, [(self.prompt, said)], answer.usage)
        return answer

    def problem(self, numbers: tuple[int, ...]) -> str:
        """What is wrong with ``numbers`` as an answer; empty when nothing is."""
        last = len(self.options)
        if len(numbers) == 1 and not self.several and _is_number(numbers[0]) and 1 <= numbers[0] <= last:
            return ""
        if not numbers:
            return "nothing was chosen"
        if len(numbers) > 1 and not self.several:
            return "several numbers were given, exactly one can be chosen"
        if len(set(numbers)) < len(numbers):
            return "a number was given twice"
        for number in numbers:
            if not (_is_number(number) and 1 <= number <= last):
                return f"{number} is not one of the numbers from 1 to {last}"
        return self.objection(numbers) if self.objection is not None else ""

    def leads_on(self, numbers: tuple[int, ...]) -> bool:
        """Whether some numbers, lowest first, are a selection without objection, or become one with higher numbers."""
        if self.begins is not None:
            return self.begins(numbers)
        higher = range(numbers[-1] + 1, len(self.options) + 1)
        return not self.problem(numbers) or any(self.leads_on((*numbers, number)) for number in higher)

    def nearest(self, wanted: Collection[int]) -> tuple[int, ...]:
        """A selection without objection that has much of what is wanted and little else, taken from the lowest up.

        What is wanted itself where nothing is wrong with it; also where no selection was found.
        """
        numbers = tuple(sorted(wanted))
        if not self.problem(numbers):
            return numbers
        taken: tuple[int, ...] = ()
        for number in range(1, len(self.options) + 1):
            with_it = (*taken, number)
            if number in wanted:
                if self.leads_on(with_it):
                    taken = with_it
            elif taken and not self.problem(taken):
                continue
            elif not any(self.leads_on((*taken, later)) for later in self._after(number, wanted)):
                taken = with_it
        return taken if taken and not self.problem(taken) else numbers

    def _after(self, number: int, wanted: Collection[int]) -> list[int]:
        """The higher numbers, those that are wanted first."""
        return sorted(range(number + 1, len(self.options) + 1), key=lambda later: later not in wanted)

    def again(self, problem: str) -> Question:
        """The same question with a line about what was wrong with the last answer."""
        last = len(self.options)
        wanted = f"numbers from 1 to {last}, separated by commas" if self.several else f"one number from 1 to {last}"
        question = Question.__new__(Question)  # what was not used yet is not made
        for name, value in self._slots().items():
            setattr(question, name, value)
        question.complaint = f"Your last answer could not be used: {problem}. Answer with {wanted}, and nothing else."
        return question


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
