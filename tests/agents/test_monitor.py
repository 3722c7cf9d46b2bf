"""The monitor allows exactly what some whole trace that keeps the rules goes on with."""

from __future__ import annotations

import gc
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, Limits, SumLimit, Symbol, constraint
from formal_llm.agents import Allowed, Event, Monitor
from formal_llm.automata.languages.prefixes import ConfigurationSet
from formal_llm.automata.notation.formula import read_formula
from formal_llm.errors import AutomatonError, NotAllowed
from tests.agents.brute import Words, accepted
from tests.automata.lookahead.judging import Plain
from tests.strategies import automata, examples, limited_automata, limited_grammars

LETTERS = ("approve", "draft", "pay", "log")
NOT_BEFORE = "(or (always (not {1})) (next (until (and any (not {1})) {0}) (until any empty)))"
NO_LATER = "(not (next (until any empty) {0} (until any empty) {1} (until any empty)))"
TRAP = [
    constraint(NOT_BEFORE.format("approve", "pay"), LETTERS, name="pay needs an earlier approve"),
    constraint(NO_LATER.format("draft", "approve"), LETTERS, name="no approve after draft"),
    constraint("(next (until any empty) pay)", LETTERS, name="pay in the end"),
]


def check_against(words: Words, monitor: Monitor, trace: tuple[str, ...]) -> None:
    """Along a trace: what is allowed, how far the end is, whether it may end; and what is refused, is refused."""
    for at in range(len(trace) + 1):
        past = trace[:at]
        assert monitor.may_stop() == (past in words)
        allowed = monitor.allowed()
        for name in monitor.names:
            shortest = words.shortest((*past, name))
            assert (name in allowed) == (shortest is not None), (past, name)
            if shortest is not None:
                assert allowed[name] == Allowed(shortest, True), (past, name)
                assert monitor.why(name) is None
            else:
                refused = monitor.why(name)
                assert refused is not None
                assert refused.name == name
                with pytest.raises(NotAllowed):
                    monitor.after(name)
        if at < len(trace):
            if trace[at] not in allowed:
                return
            monitor = monitor.after(trace[at])


class TestAgainstBruteForce:
    @given(limited_grammars(), st.lists(st.sampled_from("abc"), max_size=4).map(tuple), st.sampled_from([0, 3, 1_000]))
    @examples(40)
    def test_grammars(self, cfg, trace, most):
        words = Words(PDA.from_cfg(cfg).with_limits(cfg.limits))
        check_against(words, Monitor(cfg, max_configurations=most), trace)

    @given(limited_automata(), st.lists(st.sampled_from("abc"), max_size=4).map(tuple), st.sampled_from([0, 3, 1_000]))
    @examples(40)
    def test_automata(self, source, trace, most):
        pda, limits = source
        words = Words(pda.with_limits(pda.limits & limits))
        check_against(words, Monitor(pda, limits=limits, max_configurations=most), trace)

    @given(st.data())
    @examples(60)
    def test_several_rules(self, data):
        """However rules fall into groups, they allow what their intersection allows."""
        letters = ("a", "b", "c", "d")
        rules = data.draw(st.lists(automata(finite=True, letters=letters) | over_two(letters), min_size=2, max_size=4))
        limits = data.draw(few_limits(letters))
        known = {name for rule in rules for name in rule.terminals}
        limits = Limits(
            {name: most for name, most in limits.at_most.items() if name in known},
            {name: least for name, least in limits.at_least.items() if name in known},
        )
        trace = data.draw(st.lists(st.sampled_from(letters), max_size=3).map(tuple))
        everything = PDA([(0, name, None, 0) for name in sorted(known)] or [(0, None, None, 0)], start=0, accepting=[0])
        whole = everything
        for rule in rules:
            whole = whole & rule
        monitor = Monitor(rules, limits=limits)
        check_against(Words(whole.with_limits(limits, alphabet=known)), monitor, trace)
        found = monitor.verify(trace)
        assert found.valid == accepted(whole, limits, trace)

    @given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.integers(0, 6), st.integers(0, 3), st.data())
    @examples(30)
    def test_budgets_across_groups(self, costs, most, least, data):
        """A sum of what several rules' events cost puts those rules together."""
        letters = ("a", "b", "c", "d")
        symbols = {name: Symbol(numbers={"cost": cost}) for name, cost in zip(letters, costs, strict=True)}
        rules = [over(letters, pair, symbols) for pair in (("a", "b"), ("c", "d"))]
        limits = Limits(sums=(SumLimit("cost", most, min(least, most)),))
        trace = data.draw(st.lists(st.sampled_from(letters), max_size=3).map(tuple))
        whole = (rules[0] & rules[1]).with_limits(limits)
        monitor = Monitor(rules, limits=limits)
        check_against(Words(whole), monitor, trace)


def over(letters: tuple[str, ...], pair: tuple[str, str], symbols: dict[str, Symbol]) -> PDA:
    """The second of two letters comes once, after the first."""
    one, other = pair
    text = (
        f"(next (until (and any (not {other})) {one}) (until (and any (not {other})) {other}) (always (not {other})))"
    )
    made = constraint(text, letters)
    return PDA(made.transitions, start=made.start_state, accepting=made.accepting_states, symbols=symbols)


@st.composite
def over_two(draw, letters):
    """A rule about two of the letters, to which the others are neutral."""
    one, other = draw(st.permutations(letters))[:2]
    text = draw(st.sampled_from([NOT_BEFORE, NO_LATER, "(eventually {0})", "(-> (eventually {0}) (eventually {1}))"]))
    return constraint(text.format(one, other), letters)


def few_limits(letters):
    counts = st.dictionaries(st.sampled_from(letters), st.integers(0, 2), max_size=2)
    return st.builds(lambda most, least: Limits(at_most=most, at_least=least), counts, counts)


class TestWhatIsAllowed:
    def test_it_looks_past_the_next_step(self):
        monitor = Monitor(TRAP)
        assert dict(monitor.allowed()) == {"approve": Allowed(1), "log": Allowed(2)}
        with pytest.raises(NotAllowed, match="draft cannot come now because of"):
            monitor.after("draft")
        assert monitor.shortest_way() == ("approve", "pay")
        assert monitor.after("approve").after("draft").shortest_way() == ("pay",)

    def test_behaviour_flowchart_and_automaton(self):
        react = Monitor(Behaviour.load("react"))
        assert react.after_all(["Ques", "Tht", "Act"]).allowed() == {"Act-Inp": Allowed(3)}
        chart = Monitor(
            Flowchart.from_string(
                "flowchart TD\n Start([Start]) --> a\n a[Wash] --> b{Dry?}\n b -->|yes| c[Iron]\n b -->|no| a"
            )
        )
        assert list(chart.allowed())
        plain = Monitor(Plain())
        assert [name for name in plain.allowed() if plain.after(name)]

    def test_an_event_that_no_rule_looks_at(self):
        letters = ("a", "b", "idle")
        monitor = Monitor([constraint("(eventually a)", letters), constraint("(eventually b)", letters)])
        assert monitor.allowed()["idle"] == Allowed(2)
        assert monitor.after("idle").shortest_way() == ("a", "b")

    def test_fifty_rules_are_not_multiplied(self):
        letters = [f"t{number}" for number in range(100)]
        rules = [constraint(NOT_BEFORE.format(f"t{n}", f"t{n + 1}"), letters) for n in range(0, 100, 2)]
        monitor = Monitor(rules, limits=Limits(at_least={"t99": 1}))
        assert monitor.shortest_way() == ("t98", "t99")
        assert monitor.after("t98").after("t99").may_stop()
        assert "t1" not in monitor.allowed()

    def test_no_rules_can_be_kept(self):
        letters = ("a", "b")
        nothing = [constraint("(eventually a)", letters, name="some a"), constraint("(always (not a))", letters)]
        monitor = Monitor(nothing)
        assert not monitor.allowed()
        assert not monitor.may_stop()
        assert "nothing keeps the rules" in str(monitor.why())
        with pytest.raises(NotAllowed):
            monitor.after("b")

    @given(limited_automata(), st.integers(1, 3))
    @examples(30)
    def test_with_a_tiny_budget_of_states_nothing_wrong_is_said(self, source, max_states):
        pda, limits = source
        words = Words(pda.with_limits(pda.limits & limits))
        allowed = Monitor(pda, limits=limits, max_states=max_states).allowed()
        for name in pda.terminals:
            shortest = words.shortest((name,))
            assert shortest is None or name in allowed
            if name in allowed and allowed[name].certain:
                assert shortest is not None
                assert allowed[name].shortest in (shortest, None)

    def test_what_the_budget_of_states_does_not_decide_is_told(self):
        class Endless(Plain):
            def step(self, configuration, move):
                return configuration + 1

            def accepting(self, configuration):
                return False

        assert dict(Monitor(Endless(), max_states=20).allowed()) == dict.fromkeys("ab", Allowed(None, False))


class TestWhy:
    def test_the_rules_to_blame(self):
        monitor = Monitor(TRAP, limits=Limits(at_most={"log": 1}))
        refused = monitor.after("log").why("log")
        assert refused is not None
        assert (refused.limits, refused.constraints) == (("%limit 1 log",), ())
        assert str(refused) == "log cannot come now because of %limit 1 log; approve could come next"
        assert monitor.why("approve") is None
        pay = monitor.why("pay")
        assert pay is not None
        assert pay.constraints == ("pay needs an earlier approve",)

    def test_a_slip_of_the_name(self):
        assert "did you mean approve?" in str(Monitor(TRAP).why("aprove"))

    def test_why_it_may_not_end(self):
        found = Monitor(TRAP).after("approve").why()
        assert found is not None
        assert found.name is None
        assert str(found).startswith("it cannot end yet because of constraint 'pay in the end'; ")
        assert Monitor(TRAP).after("approve").after("pay").why() is None


def seen(event: Event) -> str | None:
    """Payments over 100 need an approval; what is only read is not looked at."""
    if event.name == "read":
        return None
    amount = event.data.get("amount")
    return "large payment" if isinstance(amount, int) and amount > 100 else event.name


class TestEvents:
    rules = constraint(NOT_BEFORE.format("approve", '"large payment"'), ["approve", "pay", "large payment"])

    def test_a_trace_that_ends_too_early(self):
        found = Monitor(TRAP).verify(["approve", "log"])
        assert (found.position, found.nearest) == (2, ("approve", "log", "pay"))  # what is there stays
        many = [constraint("(eventually t1)", [f"t{n}" for n in range(40)])]
        many += [constraint(f"(eventually t{n})", [f"t{n}" for n in range(40)], name=f"t{n}") for n in range(2, 40)]
        wide = Monitor(many).verify([f"t{n}" for n in range(1, 39)])
        assert (wide.position, wide.constraints, wide.nearest_decided) == (38, ("t39",), False)

    def test_events_are_values(self):
        assert Event("a", {"x": [1]}) == Event("a", {"x": [1]}) != Event("a")
        assert len({Event("a", {"x": [1]}), Event("a", {"x": [1]})}) == 1


class TestValues:
    def test_forks_do_not_touch_each_other(self):
        begin = Monitor(TRAP).after("approve")
        left, right = begin.after("draft"), begin.after("log")
        assert (begin.word, left.word, right.word) == (("approve",), ("approve", "draft"), ("approve", "log"))

    def test_equal_and_hashable(self):
        one, other = Monitor(TRAP), Monitor(TRAP)
        assert one == other
        assert one.after("log") == other.after("log")
        assert len({one.after("log"), other.after("log"), one}) == 2
        assert one.after("log") != one.after("approve")
        assert one != Monitor(TRAP[:2])
        assert one.after(Event("log", {"a": 1})) != one.after("log")

    def test_pickled_with_its_past(self):
        monitor = Monitor(TestEvents.rules).after(Event("approve", {"amount": 20})).after("pay")
        read = pickle.loads(pickle.dumps(monitor))
        assert read == monitor
        assert read.allowed() == monitor.allowed()
        long = Monitor(constraint("(until a b)", ["a", "b"])).after_all(["a"] * 20_000)
        assert len(pickle.loads(pickle.dumps(long))) == 20_000

    def test_no_rules_at_all(self):
        with pytest.raises(ValueError, match="at least one rule"):
            Monitor([])
        with pytest.raises(TypeError, match="Monitor takes a grammar"):
            Monitor("react.agent")


class TestLongTraces:
    def test_what_is_kept_does_not_grow_with_the_trace(self, monkeypatch):
        rules = CFG.from_string("%limit work <= 200000\nS -> call S | stop\ncall work=1")
        monkeypatch.setattr("formal_llm.automata.languages.prefixes._KEPT", 300)
        gc.collect()
        before = sum(type(one) is ConfigurationSet for one in gc.get_objects())  # other tests may hold some
        monitor = Monitor(rules)
        for _ in range(2_000):
            monitor = monitor.after("call")
        gc.collect()
        assert sum(type(one) is ConfigurationSet for one in gc.get_objects()) < before + 1_500
        assert monitor.allowed()["stop"] == Allowed(0)

    def test_a_loop_comes_back_to_the_same_front(self):
        monitor = Monitor(Behaviour.load("react")).after("Ques")
        later = monitor.after_all(["Tht", "Act", "Act-Inp", "Obs"] * 50)
        assert later._fronts == monitor._fronts


def test_a_declared_name_is_known() -> None:
    only_b = constraint("(always b)", ["a", "b"])
    monitor = Monitor(only_b, limits=Limits({"a": 1}, default=2))
    assert set(monitor.names) == {"a", "b"}
    assert set(monitor.allowed()) == {"b"}
    assert not monitor.after("b").allows("a")
    assert not Monitor(only_b, limits=Limits(at_least={"a": 1})).allowed()
    behaviour = Behaviour("x", ["a", "b"], read_formula("(always b)", ["a", "b"]), Limits(at_least={"a": 1}))
    assert Monitor(behaviour).why() is not None
    with pytest.raises(AutomatonError, match="unknown terminal in a limit: c"):
        Monitor(only_b, limits=Limits({"c": 1}))


def test_data_of_an_event_does_not_change() -> None:
    event = Event("pay", {"amount": 20})
    with pytest.raises(TypeError):
        event.data["amount"] = 30  # type: ignore[index]
    assert pickle.loads(pickle.dumps(event)) == event
