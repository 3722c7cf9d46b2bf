"""What the states of an agent are for: which one names a tool, which holds its input, who answers for the world.

Most agents need not declare it: their markers do. ``[Action]`` names a tool, ``[Action Input]`` is its input, ``[Action
Label]`` its label, and what the environment writes is found by its marker in a table (:mod:`formal_llm.agents.worlds`).
Brackets, colons, hyphens and case make no difference: ``Action Input:`` is the same marker. A state without a marker is
known by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from formal_llm.agents.acting import AgentRules
from formal_llm.agents.decoding.steps import Asks
from formal_llm.agents.decoding.writer import ContentOf
from formal_llm.automata import Behaviour
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.errors import ResourceNotFound
from formal_llm.llms.usage import Prices
from formal_llm.planning.walks.budget import Budget
from formal_llm.tools.calling import CallLimits

#: What the environment writes in a state; called with the :class:`~formal_llm.agents.running.Run` so far. One that asks
#: the model, or calls tools, is a generator: ``text = yield from run.write(...)``.
World = Callable[..., str | Asks[str]]
#: The markers of what a model writes. Where a run begins with one of them, no state is there for the question.
_OF_MODELS = frozenset({
    "thought", "final thought", "plan", "action", "answer", "final response", "chat bot", "chatbot", "assistant"
})  # fmt: skip


def normalise_marker(marker: str) -> str:
    """A marker as it is compared with others: its words in small letters."""
    return " ".join(re.findall(r"[^\W_]+", marker.casefold()))


@dataclass(frozen=True, slots=True)
class Roles:
    """What the states of an agent are for.

    Attributes:
        action: the state that names a tool; None where no tools are called.
        input: the state with what the tool is given.
        label: the state with the label of a call, by which later ones refer to its result.
        worlds: for states of the environment, what writes them.
        calls: the state in whose text tools are called (``[Action] search [Action Input] Danube``), where no states
            are there for it. The rules do not know of such calls.
        asks: whether the first state holds the question. Otherwise the question is shown before the run.
    """

    action: str | None = None
    input: str | None = None
    label: str | None = None
    worlds: Mapping[str, World] = FrozenDict()
    calls: str | None = None
    asks: bool = True

    @classmethod
    def from_markers(cls, behaviour: Behaviour, worlds: Mapping[str, World]) -> Roles:
        """The roles that markers determine.

        ``worlds`` are, for states of the environment, what writes them, by the name of the state or its marker.

        Raises:
            ResourceNotFound: a state of the environment that nothing writes.
        """
        by_marker = {
            normalise_marker(state.text or name): name for name, state in reversed([*behaviour.states.items()])
        }
        known = {normalise_marker(marker): world for marker, world in worlds.items()}
        found: dict[str, World] = {}
        for name, state in behaviour.states.items():
            if state.from_environment:
                world = worlds.get(name) or worlds.get(state.text) or known.get(normalise_marker(state.text or name))
                if world is None:
                    raise ResourceNotFound(
                        f"world for the state {name} ({state.text}) of {behaviour.name}", name, worlds
                    )
                found[name] = world
        action, first = by_marker.get("action"), behaviour.next_states()
        by_model = all(normalise_marker(behaviour.states[name].text or name) in _OF_MODELS for name in first)
        return cls(
            action, by_marker.get("action input"), by_marker.get("action label"), FrozenDict(found),
            calls=by_marker.get("thought") if action is None and "observation" in by_marker else None,
            asks=not by_model and not all(name in found for name in first),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings that all runs of an agent share.

    Attributes:
        rules: the rules, including the tools.
        roles: the purposes of the states.
        contents: the texts that states may have.
        budget: how much a run may use.
        calls: limits on each tool call.
        max_tokens: the maximum number of tokens of a text that the environment requests from the model.
        approve: the tools whose calls a person has to approve.
        native: whether inputs are arguments by the strict schemas of tools, as a native turn writes them.
        read_output: reads the answer as the type that was asked for; None if it is a text.
    """

    rules: AgentRules
    roles: Roles
    contents: Mapping[str, ContentOf] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    prices: Prices | None = None
    calls: CallLimits = field(default_factory=lambda: CallLimits(timeout=60.0))
    max_tokens: int = 512
    approve: frozenset[str] = frozenset()
    native: bool = False
    read_output: Callable[[str], object] | None = None
