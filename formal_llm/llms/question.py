"""Questions and answers: all that passes between a planner and the LLM or person who answers.

A :class:`Question` is plain data. Its expensive parts, such as the prompt and the outlook, may be given as functions,
which are called on first access; so a test double that only uses the number of options pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.reading import read_numbers
from formal_llm.llms.usage import NO_TOKENS, TokenUsage

#: Returns what is wrong with a set of option numbers; an empty text if nothing is.
Objection: TypeAlias = Callable[[tuple[int, ...]], str]
#: Returns whether a set of option numbers without objection begins with the given ones, all others being higher.
Beginning: TypeAlias = Callable[[tuple[int, ...]], bool]


@dataclass(frozen=True, slots=True)
class Term:
    """A terminal as the answerer sees it."""

    name: str
    label: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Prospect:
    """The consequences of choosing an option for the rest of the plan.

    Attributes:
        uses: the terminals that the option adds to the plan at once.
        allows: the terminals that the plan may still use afterwards, each with the minimum number of terminals by which
            it lengthens the plan.
        length: the minimum number of terminals needed afterwards to finish the plan; infinite where none finishes it,
            which is offered only without lookahead.
    """

    uses: tuple[Term, ...] = ()
    allows: tuple[tuple[Term, int], ...] = ()
    length: float = 0


@dataclass(frozen=True, slots=True)
class Outlook:
    """What an answerer may know beyond the texts of the options.

    Attributes:
        so_far: the terminals that the plan has already.
        prospects: the consequences of each option.
        prefix: whether the plan is made from its last step to its first, as nested calls are.
    """

    so_far: tuple[Term, ...] = ()
    prospects: tuple[Prospect, ...] = ()
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """One numbered line of a question; numbers start at 1.

    Attributes:
        certain: False if the lookahead did not determine whether a plan can be finished after it.
    """

    number: int
    text: str
    certain: bool = field(default=True, repr=False)


class CallRequest(NamedTuple):
    """A call of a tool that a model requests.

    Attributes:
        id: distinguishes it from the other calls of a chat.
        name: the name of the tool, as the model wrote it.
        arguments: the arguments, as the model wrote them: JSON text, if it is well-formed.
    """

    id: str
    name: str
    arguments: str


class Message(NamedTuple):
    """A message of a chat.

    Attributes:
        role: ``system``, ``user`` or ``assistant``; ``tool`` for the result of a call.
        calls: the calls of tools that the assistant requests.
        answers: the ``id`` of the call whose result this is; empty if it is none.
    """

    role: str
    content: str
    calls: tuple[CallRequest, ...] = ()
    answers: str = ""

    def to_data(self) -> dict[str, object]:
        """Return the message as JSON data; ``calls`` and ``answers`` only if they are not empty."""
        data: dict[str, object] = {"role": self.role, "content": self.content}
        if self.calls:
            data["calls"] = [list(call) for call in self.calls]
        return {**data, "answers": self.answers} if self.answers else data


@dataclass(frozen=True, slots=True)
class Answer:
    """The chosen options, or a text.

    Attributes:
        numbers: the numbers of the chosen options; exactly one unless the question allows several.
        probabilities: the probability of each option by its number, if the answerer knows it.
        text: the answer as it was written, if it was given as text.
        usage: the tokens that it cost.
        ended: the stop that ended a text, or an empty text if the model itself ended it. None if it is not whole, or
            if it is not known whether the model or a stop ended it.
        stopped: why a text is not whole (:data:`~formal_llm.llms.text_request.CUT_OFF`, ``REFUSED`` or ``FILTERED``);
            empty if it is whole, or if nothing is known.
        calls: the calls of tools that a turn requests.
    """

    numbers: tuple[int, ...]
    probabilities: Mapping[int, float] | None = field(default=None, hash=False)
    text: str = ""
    usage: TokenUsage = NO_TOKENS
    ended: str | None = None
    stopped: str = ""
    calls: tuple[CallRequest, ...] = ()

    @property
    def number(self) -> int:
        """The number of the one chosen option."""
        if len(self.numbers) != 1:
            raise ValueError(f"{len(self.numbers)} numbers were chosen, not one")
        return self.numbers[0]


#: Whatever can be an answer: an :class:`Answer`, a number, several numbers, or a text (:meth:`Question.check`).
AnswerLike: TypeAlias = Answer | int | Sequence[int] | str


#: The fields of a question that may be given as functions.
_FUNCTIONS = ("_prompt", "_messages", "_outlook")


#: What an LLM may read of a question. An LLM whose answers depend on less says so by its attribute ``reads``.
READS = frozenset({"chat", "task", "outlook"})


class Question:
    """A numbered choice, as a value: it is compared, hashed, copied and pickled by what it asks and what it accepts.

    Functions are called for that. ``objection`` and ``begins`` are part of the question, so they must be values too if
    it is pickled or compared: module-level functions, or callable frozen dataclasses.

    Args:
        prompt: the self-contained text of the question, or a function that returns it.
        options: the options: texts, numbered from 1 in their order, or :class:`Option` values.
        several: whether any non-empty selection of options is an answer, instead of exactly one option.
        task: the task that the plan is for.
        messages: the messages before the prompt in a chat (system message, examples, earlier questions and answers), or
            a function that returns them.
        outlook: what the options mean for the rest of the plan, or a function that returns it; None if unknown.
        objection: excludes combinations of options that may be chosen alone; see :data:`Objection`.
        begins: belongs to ``objection``, see :data:`Beginning`; by default found by trying sets.
        walk: the name of the walk that asks, if there are several at once.
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
        #: The values that the functions returned, and the names of those that are kept.
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
    def kind(self) -> str:
        """The kind of the request, of :data:`~formal_llm.llms.llm.KINDS`."""
        return "choose"

    @property
    def wants(self) -> str:
        """What is asked for, for the error of a model that cannot."""
        return "choose"

    @property
    def prompt(self) -> str:
        """The text of the question; after a bad answer, with what was wrong."""
        prompt = self._get_slot("_prompt")
        return f"{prompt}\n\n{self.complaint}" if self.complaint else prompt

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat, ending with the prompt as the user's message."""
        return (*self._get_slot("_messages"), Message("user", self.prompt))

    @property
    def outlook(self) -> Outlook | None:
        """What the options mean for the rest of the plan; None if unknown."""
        outlook: Outlook | None = self._get_slot("_outlook")
        return outlook

    def _get_slot(self, name: str) -> Any:
        """Return a field, calling it if it was given as a function."""
        field = getattr(self, name)
        if not callable(field):
            return field
        value = self._made.get(name)
        if value is None:
            value = field()
            if name in self._kept:
                self._made[name] = value
        return value

    def let_go(self, *, prompt: bool = True) -> None:
        """Stop keeping the values of functions: from now on they are computed at each access.

        This is for answered questions: a long plan has many, and each prompt lists all earlier steps. The
        prompt is kept if ``prompt`` is False, and the whole chat if it is held (:meth:`hold`).
        """
        self._kept = _FUNCTIONS[:2] if self._held else () if prompt else _FUNCTIONS[:1]
        if self._made:
            self._made = {name: value for name, value in self._made.items() if name in self._kept}

    def hold(self) -> None:
        """Keep the chat from now on, answered or not, since it is read repeatedly, as in training."""
        self._held = True

    @property
    def content(self) -> dict[str, object]:
        """What the answerer sees, as JSON data; equal for questions that look the same to it."""
        return {
            "messages": [list(message.to_data().values()) for message in self.messages],
            "options": [[option.number, option.text] for option in self.options],
            "several": self.several,
        }

    def __repr__(self) -> str:
        return f"<Question: {' | '.join(f'{option.number}: {option.text}' for option in self.options)}>"

    # -- a value ------------------------------------------------------------------------------------------------

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """Return the state of the question in pickle's format for slots; functions are replaced by their values."""
        values = {name: self._get_slot(name) for name in _FUNCTIONS}
        reset = {"_made": {}, "_kept": _FUNCTIONS, "_held": False}
        return None, {**self._list_slots(), **values, "_messages": tuple(values["_messages"]), **reset}

    def _list_slots(self) -> dict[str, object]:
        names = [name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ())]
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Question) and self.__getstate__() == other.__getstate__())

    def __hash__(self) -> int:
        return hash((self.prompt, self.options, self.several, self.task, self.walk))

    # -- answers ------------------------------------------------------------------------------------------------

    def read(self, text: str, *, usage: TokenUsage | None = None) -> Answer:
        """Read the answer in ``text``: ``2``, ``2.``, ``Option 2``, ``2: its text``; strictly, without guessing.

        Raises:
            InvalidAnswer: the text is no such answer.
        """
        try:
            numbers = read_numbers(text, [option.text for option in self.options], several=self.several)
        except ValueError as error:
            raise InvalidAnswer(str(error), [(self.prompt, text)]) from None
        return Answer(numbers, text=text, usage=usage or NO_TOKENS)

    def check(self, given: object) -> Answer:
        """Return ``given``, one of :data:`AnswerLike`, as a legal answer to this question.

        Raises:
            InvalidAnswer: ``given`` does not answer the question.
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
            answer_text = answer.text or ", ".join(map(str, answer.numbers))
            raise InvalidAnswer(problem, [(self.prompt, answer_text)], answer.usage)
        return answer

    def problem(self, numbers: tuple[int, ...]) -> str:
        """Return what is wrong with ``numbers`` as an answer; empty if nothing is."""
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
        """Return whether ascending numbers are a selection without objection, or become one with higher numbers."""
        if self.begins is not None:
            return self.begins(numbers)
        higher = range(numbers[-1] + 1, len(self.options) + 1)
        return not self.problem(numbers) or any(self.leads_on((*numbers, number)) for number in higher)

    def nearest(self, wanted: Collection[int]) -> tuple[int, ...]:
        """Return a selection without objection, built upwards, with many of the wanted numbers and few others.

        The wanted numbers are returned unchanged if they are legal, or if no legal selection was found.
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
            elif not any(self.leads_on((*taken, later)) for later in self._list_later(number, wanted)):
                taken = with_it
        return taken if taken and not self.problem(taken) else numbers

    def select_likely(self, likely: Mapping[int, float], usage: TokenUsage = NO_TOKENS) -> Answer:
        """Return the selection of what belongs to it more likely than not, or of the likeliest option alone.

        If options may not be chosen together, the least likely ones are removed first.

        Args:
            likely: for each option's number the probability that it belongs to the selection.
            usage: the tokens that the probabilities cost.

        Raises:
            InvalidAnswer: the selection is not legal.
        """
        ranked = sorted(likely, key=lambda number: -likely[number])  # of equals the first, as everywhere
        chosen = [number for number in ranked if likely[number] >= 0.5] or ranked[:1]
        while len(chosen) > 1 and self.problem(tuple(sorted(chosen))):
            chosen.pop()
        numbers = tuple(sorted(chosen))
        return self.check(Answer(numbers, likely, ", ".join(map(str, numbers)), usage))

    def _list_later(self, number: int, wanted: Collection[int]) -> list[int]:
        """List the higher numbers, the wanted ones first."""
        return sorted(range(number + 1, len(self.options) + 1), key=lambda later: later not in wanted)

    def again(self, problem: str) -> Question:
        """Return the same question with a line that describes what was wrong with the last answer."""
        last = len(self.options)
        wanted = f"numbers from 1 to {last}, separated by commas" if self.several else f"one number from 1 to {last}"
        question = Question.__new__(Question)  # functions not called yet stay uncalled
        for name, value in self._list_slots().items():
            setattr(question, name, value)
        question.complaint = f"Your last answer could not be used: {problem}. Answer with {wanted}, and nothing else."
        return question


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
