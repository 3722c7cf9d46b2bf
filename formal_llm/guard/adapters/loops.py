"""A custom loop around a model: one answer of the model under a guard, whatever the provider.

The providers differ in how calls and outputs are written; :mod:`~formal_llm.guard.adapters.openai` and
:mod:`~formal_llm.guard.adapters.anthropic` implement that. This module handles a turn, the same for all of them.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Never, TypeVar

from formal_llm.errors import EarlyAnswer
from formal_llm.guard.adapters.plumbing import append_warning, format_refusal, to_json_value
from formal_llm.guard.events import Call, Decision, Result, Said
from formal_llm.guard.guard import Guard
from formal_llm.guard.live import GuardedRun

#: A call as the provider's client represents it.
Native = TypeVar("Native")
#: An answer as the provider's client represents it.
Response = TypeVar("Response", contravariant=True)
#: An entry of the next request: an item of input, or a message.
Item = dict[str, Any]
#: The functions behind the tools, by name; each takes the arguments of its call by keyword.
Functions = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class RequestedCall(Generic[Native]):
    """A call of an answer, in the provider's form and in that of the rules (None if its arguments are not JSON)."""

    native: Native
    id: str
    tool: str
    call: Call | None


class ModelAnswer(NamedTuple, Generic[Native]):
    """An answer of a model: its calls and its text; a paused answer is not final, and is continued unchanged."""

    asked: Sequence[RequestedCall[Native]]
    text: str
    paused: bool = False


class Turn(Generic[Native]):
    """One answer of a model: the calls that may be made, and the messages for the next request.

    Attributes:
        calls: the calls that may be made, as the provider's client represents them.
        decisions: the decision on each call of the answer, by its id.
        done: whether the answer ends the run.
    """

    def __init__(
        self, loop: GuardedLoop[Never, Native], asked: Sequence[RequestedCall[Native]], decisions: Sequence[Decision],
        *, text: str = "", back: str | None = None, done: bool = False,
    ) -> None:  # fmt: skip
        self._loop = loop
        self._asked = list(zip(asked, decisions, strict=True))
        self._back = back
        self.text = text
        self.done = done
        self.decisions = {one.id: decision for one, decision in self._asked}
        self.calls = tuple(one.native for one, decision in self._asked if decision.runs)
        self._outputs = {
            place: loop.write_output(one, format_refusal(decision), error=True)
            for place, (one, decision) in enumerate(self._asked)
            if not decision.runs
        }

    def result(self, call: Native, value: object, *, error: bool = False) -> None:
        """Record what one of ``calls`` returned, as soon as it does.

        Args:
            call: the call.
            value: the returned value; a text is shown unchanged, anything else as JSON.
            error: whether the call failed.

        Raises:
            ValueError: the call is none of ``calls``, or its result was recorded before.
        """
        place = next(
            (place for place, (one, _) in enumerate(self._asked) if one.native is call and place not in self._outputs),
            None,
        )
        if place is None:
            raise ValueError("this is no call of the turn that waits for a result; take one of turn.calls, and once")
        one, decision = self._asked[place]
        assert one.call is not None
        self._loop.run.result(Result(one.tool, one.call.arguments, to_json_value(value), one.id, error))
        self._outputs[place] = self._loop.write_output(
            one, append_warning(_format_result(value), decision), error=error
        )

    @property
    def messages(self) -> list[Item]:
        """The entries for the next request after the model's answer: outputs and refusals in the order of the calls.

        Raises:
            ValueError: a call has no result yet.
        """
        if missing := [one.tool for place, (one, _) in enumerate(self._asked) if place not in self._outputs]:
            raise ValueError(
                f"no result was reported for {', '.join(missing)}; report it with turn.result(call, value)"
            )
        return self._loop.write_items([self._outputs[place] for place in range(len(self._asked))], self._back)

    def run(self, functions: Functions) -> list[Item]:
        """Make the calls in sequence and return ``messages``. An exception of a function is an error of its call."""
        for one, decision in self._asked:
            if decision.runs:
                try:
                    value = _find_function(functions, one)(**_get_arguments(one))
                except Exception as error:
                    self.result(one.native, str(error), error=True)
                else:
                    self.result(one.native, value)
        return self.messages

    async def arun(self, functions: Functions) -> list[Item]:
        """Make all calls concurrently and return ``messages``; functions that are not coroutines run in threads."""

        async def make_call(one: RequestedCall[Native]) -> None:
            try:
                function = _find_function(functions, one)
                if inspect.iscoroutinefunction(function):
                    value = await function(**_get_arguments(one))
                else:
                    value = await asyncio.to_thread(function, **_get_arguments(one))
                    value = await value if inspect.isawaitable(value) else value
            except Exception as error:
                self.result(one.native, str(error), error=True)
            else:
                self.result(one.native, value)

        await asyncio.gather(*(make_call(one) for one, decision in self._asked if decision.runs))
        return self.messages


class GuardedLoop(ABC, Generic[Response, Native]):
    """The base of the loops of all providers: the run, and how often a premature answer is sent back."""

    def __init__(self, run: Guard | GuardedRun, *, most_early: int = 3) -> None:
        self.run = run if isinstance(run, GuardedRun) else GuardedRun(run)
        self.most_early = most_early
        self._early = 0

    @abstractmethod
    def read_answer(self, response: Response) -> ModelAnswer[Native]:
        """Read an answer in the form of the provider's client."""

    @abstractmethod
    def write_output(self, asked: RequestedCall[Native], text: str, *, error: bool) -> Item:
        """Write the output of a call."""

    @abstractmethod
    def write_items(self, outputs: Sequence[Item], back: str | None) -> list[Item]:
        """Write the entries of the next request: the outputs of a turn, or a message to the model."""

    def user(self, text: str) -> Item:
        """Record a text of the user, and return it as a message for the next request."""
        self.run.said(Said("user", text))
        return {"role": "user", "content": text}

    def turn(self, response: Response) -> Turn[Native]:
        """Check the calls of an answer as a sequence.

        Raises:
            EarlyAnswer: the answer is premature, and the maximum number was sent back before.
        """
        answer = self._record_answer(response)
        decisions = [_refuse_unreadable(one) if one.call is None else self.run.begin(one.call) for one in answer.asked]
        return self._build_turn(answer, decisions)

    async def aturn(self, response: Response) -> Turn[Native]:
        """Do the same as ``turn`` in asynchronous runs, and await the approval of a person."""
        answer = self._record_answer(response)
        decisions = [
            _refuse_unreadable(one) if one.call is None else await self.run.abegin(one.call) for one in answer.asked
        ]
        return self._build_turn(answer, decisions)

    def _record_answer(self, response: Response) -> ModelAnswer[Native]:
        answer = self.read_answer(response)
        self.run.new_turn()
        if answer.text:
            self.run.said(Said("assistant", answer.text))
        return answer._replace(asked=_separate_shared_ids(answer.asked))

    def _build_turn(self, answer: ModelAnswer[Native], decisions: Sequence[Decision]) -> Turn[Native]:
        if answer.asked:
            self._early = 0
            return Turn(self, answer.asked, decisions, text=answer.text)
        if answer.paused:
            return Turn(self, (), (), text=answer.text)
        decision = self.run.stop()
        if decision.runs:
            self._early = 0
            return Turn(self, (), (), text=answer.text, done=True)
        self._early += 1
        if self._early > self.most_early:
            raise EarlyAnswer(decision, self.most_early)
        return Turn(self, (), (), text=answer.text, back=decision.message)


def _find_function(functions: Functions, one: RequestedCall[Any]) -> Callable[..., Any]:
    if one.tool not in functions:
        raise LookupError(f"there is no tool {one.tool}; there are {', '.join(functions)}")
    return functions[one.tool]


def _get_arguments(one: RequestedCall[Any]) -> Mapping[str, Any]:
    assert one.call is not None
    return one.call.arguments


def _separate_shared_ids(asked: Sequence[RequestedCall[Native]]) -> list[RequestedCall[Native]]:
    """Clear the repeated ids of calls in one answer: these are separate calls, not retries of one."""
    seen: set[str] = set()
    separated: list[RequestedCall[Native]] = []
    for one in asked:
        repeated = one.id in seen and one.call is not None
        separated.append(replace(one, call=replace(one.call, id="")) if repeated and one.call is not None else one)
        seen.add(one.id)
    return separated


def _refuse_unreadable(one: RequestedCall[Any]) -> Decision:
    return Decision("block", reason=f"The arguments of {one.tool} are no JSON object.")


def _format_result(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(to_json_value(value), ensure_ascii=False)
