"""What is wrong with rules is told before any run, with the shortest trace that shows it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Limits, SumLimit, constraint
from formal_llm.agents import Monitor
from tests.agents.brute import Words
from tests.agents.test_monitor import TRAP
from tests.oracles import all_words, runs
from tests.strategies import automata, examples


def told(monitor, **options):
    return [(one.kind, one.name, one.trace) for one in monitor.check(**options)]


def test_a_trap_that_no_rule_forbids_by_itself() -> None:
    assert told(Monitor(TRAP)) == [("trap", "draft", ("draft",))]
    (found,) = Monitor(TRAP).check()
    assert found.constraints == tuple(rule.name for rule in TRAP)
    assert str(found).startswith("at the start draft can come, and there is no way to an end behind it (because of ")


def test_a_budget_that_a_required_tool_still_needs() -> None:
    rules = CFG.from_string("""
        %order forward
        S -> search S | buy S | end
        search cost=2
        buy cost=5
    """)
    limits = Limits(at_least={"buy": 1}, sums=(SumLimit("cost", 8),))
    found = Monitor(rules, limits=limits).check()
    assert [(one.name, one.trace) for one in found] == [("end", ("end",)), ("search", ("search", "search"))]
    assert set(found[1].limits) == {"%require 1 buy", "%limit cost <= 8"}


def test_what_can_never_come() -> None:
    letters = ("ask", "pay", "answer")
    rules = [constraint("(next (until any empty) answer)", letters), constraint("(always (not pay))", letters)]
    assert told(Monitor(rules)) == [("never", "pay", ())]
    rest = constraint("(next (until any (next ask ask)) answer)", letters)
    assert told(Monitor(rest, limits=Limits(at_most={"ask": 2}))) == [
        ("trap", "ask", ("ask", "pay", "ask")), ("trap", "answer", ("answer",)),
    ] or told(Monitor(rest, limits=Limits(at_most={"ask": 2})))[0][0] == "trap"  # fmt: skip


def test_a_required_tool_out_of_reach() -> None:
    letters = ("ask", "pay")
    monitor = Monitor(constraint("(always (not pay))", letters, name="never pay"), limits=Limits(at_most={"ask": 3}))
    assert told(monitor) == [("never", "pay", ())]
    rules = PDA([("q", "ask", None, "q"), ("q", "pay", None, "r")], start="q", accepting=["q"])
    out = Monitor(rules, limits=Limits(at_least={"pay": 1}))
    (found,) = out.check()
    assert (found.kind, found.limits) == ("empty", ("%require 1 pay",))


def test_traps_of_the_environment() -> None:
    text = """(define once
      (:states act (obs (:flags :env-input)) end)
      (:limits "%limit 2 obs" "%require 2 act")
      (:behavior (until (or (next act (until_0_2 obs empty)) act) end)))"""
    found = Monitor(Behaviour.from_string(text)).check()
    assert not [one for one in found if one.by_environment]
    steps = [(0, "act", None, 1), (1, "obs", None, 2), (1, "ok", None, 0), (2, "obs", None, 2), (0, "end", None, 3)]
    rules = PDA(steps, start=0, accepting=[3])
    by = [(one.kind, one.by_environment) for one in Monitor(rules).check(environment=["obs"])]
    assert by == [("trap", True), ("never", False)]


def test_more_places_than_are_looked_at() -> None:
    rules = CFG.from_string("%order forward\nS -> open S close | stop | Never\nNever -> never")
    kinds = told(Monitor(rules), max_places=20)
    assert kinds == [("not decided", "", ())]


@given(automata(finite=True), st.booleans())
@examples(60)
def test_against_all_short_words(pda, deterministic):
    """A trap is a trace that the automaton can read and no word begins with; the shortest one for its last letter."""
    if deterministic:
        steps = {(t.state, t.read): t for t in pda.transitions if t.read is not None}
        finals = pda.accepting_states & ({t.target for t in steps.values()} | {pda.start_state})
        pda = PDA(list(steps.values()), start=pda.start_state, accepting=finals, check=False)
    words = Words(pda)
    everywhere = PDA(pda.transitions, start=pda.start_state, accepting=pda.states, check=False)
    monitor = Monitor(pda)
    found = monitor.check()
    if words.shortest(()) is None:
        assert [one.kind for one in found] == ["empty"]
        return
    shortest: dict[str, int] = {}
    come = set()
    for word in all_words(pda.terminals, 4):
        if words.shortest(word) is not None:
            come |= set(word)
        elif word and words.shortest(word[:-1]) is not None and runs(everywhere, word):
            shortest.setdefault(word[-1], len(word))
    traps = {one.name: one.trace for one in found if one.kind == "trap"}
    if deterministic:
        assert {name: len(trace) for name, trace in traps.items() if len(trace) <= 4} == shortest
    assert all(runs(everywhere, trace) and words.shortest(trace) is None for trace in traps.values())
    assert not {one.name for one in found if one.kind == "never"} & come
