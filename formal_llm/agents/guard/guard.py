"""The guard: which tool calls may be made now, so that the rules can still be kept.

A guard stands above an agent that exists already. It is asked before each call, and told what happened. It looks ahead:
a call after which the rules cannot be kept any more is not allowed, however harmless it looks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from formal_llm.agents.guard.core import GuardCore
from formal_llm.agents.guard.labels import LetterHistory
from formal_llm.agents.guard.states import FORMAT, GuardState
from formal_llm.errors import SnapshotError
from formal_llm.planning.json_data import JSON


class Guard(GuardCore):
    """Decides about tool calls.

    Args:
        rules: the rules.
        tools: the names of the tools that the agent has. Where they are told, no way on goes over another one.
        guarantee: ``"some"``: after what is allowed, some continuation keeps the rules (nonblocking supervision).
            ``"whatever"``: the agent can go on so that there always is one, whatever tools return and users say
            (controllable and nonblocking supervision, Ramadge and Wonham 1987).
        clock: what says the time of an event that does not.
        max_states: how many places one look ahead may visit before the answer is that it is not known.
    """

    def start(self) -> GuardState:
        """Where a run begins."""
        return GuardState(self, self.positions.start, LetterHistory(), None, frozenset())

    def resume(self, snapshot: Mapping[str, JSON] | str) -> GuardState:
        """The state that a snapshot was taken of.

        Raises:
            SnapshotError: it is damaged, or was taken under other rules, tools or another guarantee.
        """
        try:
            read = json.loads(snapshot) if isinstance(snapshot, str) else snapshot
        except ValueError as error:
            raise SnapshotError(f"the snapshot is damaged: {error}") from error
        if not isinstance(read, Mapping) or read.get("format") != FORMAT or not isinstance(read.get("events"), list):
            raise SnapshotError("the snapshot is damaged: it is none of a guard")
        if read.get("fingerprint") != self.fingerprint:
            raise SnapshotError("the snapshot was taken under other rules, tools or another guarantee")
        return self.start().replayed(cast("Sequence[Mapping[str, JSON]]", read["events"]))
