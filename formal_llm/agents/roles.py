"""What the states of an agent are for: which one names a tool, which holds its input, who answers for the world.

Most agents need not declare it: their markers do. ``[Action]`` names a tool, ``[Action Input]`` is its input, ``[Action
Label]`` its label, and what the environment writes is found by its marker in a table (:mod:`formal_llm.agents.agent`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from formal_llm.agents.decoding.steps import Asks
from formal_llm.automata import Behaviour
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.errors import ResourceNotFound

#: What the environment writes in a state; called with the :class:`~formal_llm.agents.running.Run` so far. One that asks
#: the model, or calls tools, is a generator: ``text = yield from run.write(...)``.
World = Callable[..., str | Asks[str]]


@dataclass(frozen=True, slots=True)
class Roles:
    """What the states of an agent are for.

    Attributes:
        action: the state that names a tool; None where no tools are called.
        input: the state with what the tool is given.
        label: the state with the label of a call, by which later ones refer to its result.
        worlds: for states of the environment, what writes them.
    """

    action: str | None = None
    input: str | None = None
    label: str | None = None
    worlds: Mapping[str, World] = FrozenDict()

    @classmethod
    def from_markers(cls, behaviour: Behaviour, worlds: Mapping[str, World]) -> Roles:
        """The roles that markers determine.

        Args:
            behaviour: the behaviour.
            worlds: for states of the environment what writes them, by the name of the state or its marker.

        Raises:
            ResourceNotFound: a state of the environment that nothing writes.
        """
        by_marker = {state.text: name for name, state in reversed([*behaviour.states.items()])}
        found: dict[str, World] = {}
        for name, state in behaviour.states.items():
            if state.from_environment:
                world = worlds.get(name) or worlds.get(state.text)
                if world is None:
                    raise ResourceNotFound(
                        f"world for the state {name} ({state.text}) of {behaviour.name}", name, worlds
                    )
                found[name] = world
        action, given = by_marker.get("[Action]"), by_marker.get("[Action Input]")
        return cls(action, given, by_marker.get("[Action Label]"), FrozenDict(found))
