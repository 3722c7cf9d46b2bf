"""The state of a run inside the state of a graph: what stands there decides, whoever reads it."""

from __future__ import annotations

import json

import pytest

from formal_llm.agents.guard import Call, Result
from formal_llm.agents.guard.adapters import graph_state
from formal_llm.agents.guard.adapters.graph_state import GraphTurns, Kept
from tests.agents.guard.adapters.shop import Record, guard

APPROVE, DRAFT, PAY = (Call(name, {"order": 7}, name) for name in ("approve", "draft", "pay"))


def kept_after(turns: GraphTurns, kept: Kept | None, *calls: Call) -> Kept:
    """What stands in the graph after a node that took these calls."""
    node = turns.start_node(kept)
    return turns.save_node(kept, node, [(call, node.run.begin(call)) for call in calls], last="message")


def test_what_is_kept_is_plain_data_that_another_process_goes_on_from() -> None:
    kept = kept_after(GraphTurns(guard(), None, None), None, DRAFT, APPROVE)
    read = json.loads(json.dumps(kept))
    assert read == kept
    assert read["last"] == "message"
    turn = GraphTurns(guard(), None, None).restore_turn(read)
    assert [decision.action for _, decision in turn.decided] == ["block", "allow"]
    assert turn.run.begin(DRAFT).action == "block"  # as it was decided in this turn, though it is legal by now
    assert turn.run.begin(PAY).action == "allow"


def test_the_calls_of_a_turn_share_one_run_and_the_next_node_sees_their_results() -> None:
    turns = GraphTurns(guard(), None, None)
    kept = kept_after(turns, None, APPROVE)
    assert turns.restore_turn(kept) is turns.restore_turn(kept)
    turns.restore_turn(kept).run.result(Result("approve", {"order": 7}, "approved", "approve"))
    turns.restore_turn(kept).told.add("approve")
    node = turns.start_node(kept)
    assert len(node.run.state) == 2
    assert node.told == {"approve"}
    again = kept_after(turns, kept)
    assert len(turns.restore_turn(again).run.state) == 2


def test_a_node_that_fails_leaves_no_trace() -> None:
    record = Record()
    turns = GraphTurns(guard(), None, record)
    kept = kept_after(turns, None, APPROVE)
    told = list(record)
    turns.start_node(kept).run.begin(PAY)
    assert record == told
    assert len(turns.restore_turn(kept).run.state) == 1


def test_going_back_starts_from_what_was_kept() -> None:
    turns = GraphTurns(guard(), None, None)
    first = kept_after(turns, None, APPROVE)
    turns.restore_turn(first).run.result(Result("approve", {"order": 7}, "approved", "approve"))
    kept_after(turns, first, PAY)
    assert len(turns.restore_turn(first).run.state) == 1


def test_many_runs_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_state, "_ALIVE", 2)
    turns = GraphTurns(guard(), None, None)
    kept = [kept_after(turns, None, APPROVE) for _ in range(5)]
    assert len(turns._alive) == 2
    assert all(turns.restore_turn(one).run.begin(PAY).runs for one in kept)
    assert len(turns._alive) == 2
