from __future__ import annotations

from formal_llm.procedures import Procedure
from formal_llm.procedures.procedure import walk_need, walk_terms

TEXT = """
constant most = 3
check look(x)
action do(x, secret)
goal action act(x, other)
    any of
        done(x)
        look(other) < most
fact done(x): do(x, secret) is ok
"""


def test_goals_names_and_actions() -> None:
    procedure = Procedure.from_string(TEXT)
    assert [tool.name for tool in procedure.goals] == ["act"]
    assert procedure.names == {"x", "other", "secret"}
    action = procedure.find_action(procedure.facts["done"])
    assert action is not None
    assert str(action) == "do(x, secret)"
    assert not procedure.tools["do"].may_repeat()
    assert procedure.tools["look"].may_repeat()
    assert procedure.tools["do"].makes_obsolete("look")


def test_a_need_is_walked() -> None:
    need = Procedure.from_string(TEXT).tools["act"].need
    assert len(list(walk_need(need))) == 3
    assert "look(other)" in {str(term) for term in walk_terms(need)}
