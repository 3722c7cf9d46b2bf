import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import (
    CFG,
    PDA,
    Behaviour,
    EditWeights,
    Limits,
    Lookahead,
    Planner,
    RandomLLM,
    TaskPack,
    Verification,
    Verifier,
    constraint,
    read_plan_text,
    verify,
)
from tests.oracles import keeps, language
from tests.planning.rules import DAY, under
from tests.strategies import LETTERS, examples, limited_grammars, tool_grammars

UP_TO = 6
words = st.lists(st.sampled_from((*LETTERS, "z")), max_size=4).map(tuple)
FORMULAS = (
    "(until any a)", "(not (eventually (next a b)))", "(next any (until any empty))", "(eventually (or a c))",
    "(not (eventually b))", "(until (or a b) (until c empty))", "(and (eventually a) (not (eventually (next a a))))",
)  # fmt: skip


def lines_of(cfg):
    """The bounds of a grammar, by line."""
    return {bound.line: bound for bound in Lookahead(cfg).automaton.counters.bounds} if cfg.limits else {}


def forbids(source, word, position):
    """Whether no word begins with ``word`` up to and with ``position``; at its end, whether it is none."""
    found = verify(word, source)
    if found.valid:
        return False
    return position == len(word) or found.position <= position


@pytest.fixture(scope="module")
def pack():
    return TaskPack.load("openagi")


class TestAgainstAllShortWords:
    @given(limited_grammars() | tool_grammars(), words)
    @examples(80)
    def test_verdicts(self, cfg, word):
        within = {w for w in language(cfg, UP_TO) if keeps(w, cfg.limits, cfg.terminals, cfg.symbols)}
        found = verify(word, cfg)
        assert found.valid == bool(found) == (word in within)
        assert found.decided
        if found.valid:
            assert (found.position, found.nearest, found.edits, found.distance) == (None, word, (), 0)
            return
        # Whatever a short word shares with this one comes before the place, and goes on in an allowed way.
        for other in within:
            shared = next((n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), None)
            shared = min(len(word), len(other)) if shared is None else shared
            assert shared <= found.position
            if shared == found.position:
                assert other[shared] in found.allowed if len(other) > shared else found.may_stop
        if found.position < len(word):
            assert word[found.position] not in found.allowed
        else:
            assert not found.may_stop
        if found.nearest is not None:
            assert Lookahead(cfg).automaton.accepts(found.nearest)
            assert found.distance == len(found.edits) > 0
        else:
            assert not within
        # The limits to blame are the grammar's, and without them nothing else is different.
        every = Lookahead(cfg).automaton.counters.bounds if cfg.limits else ()
        assert set(found.limits) <= {bound.line for bound in every}

    def test_a_beginning_may_still_lack_what_a_whole_plan_needs(self):
        verifier = Verifier(CFG.from_string("%limit 1 a\n%require 1 b\nS -> a S | b S | c"))
        assert verifier.broken(("a", "a"), ends=False) == [0]
        assert verifier.broken(("a", "a"), ends=True) == [0, 1]
        assert verifier.broken(("a",), ends=False) == []
        assert verifier.verify(("a", "a", "b", "c")).limits == ("%limit 1 a",)

    @given(limited_grammars(), words)
    @examples(30)
    def test_the_limits_to_blame_forbid_the_place_by_themselves_and_none_is_too_many(self, cfg, word):
        found = verify(word, cfg)
        assume(found.limits and found.position is not None and not found.reason.startswith("no plan"))
        bounds = {bound.line: bound for bound in Lookahead(cfg).automaton.counters.bounds}
        only = cfg.limits
        for line in bounds:
            if line not in found.limits:
                only = only.without(line)
        assert forbids(cfg.with_limits(only), word, found.position)
        prefix = word[: found.position + 1]
        for line in found.limits:
            # Without it the place is allowed; or the word breaks it there, so that it forbids the place by itself.
            total = sum(bounds[line].weights.get(name, 0) for name in prefix)
            broken = total > (total if bounds[line].most is None else bounds[line].most) or total < bounds[line].least
            assert broken or not forbids(cfg.with_limits(only.without(line)), word, found.position)

    @given(limited_grammars(), st.lists(st.sampled_from(FORMULAS), min_size=1, max_size=3, unique=True), words)
    @examples(100)
    def test_the_constraints_to_blame(self, cfg, formulas, word):
        constraints = {formula: constraint(formula, LETTERS) for formula in formulas}
        found = verify(word, under(cfg, constraints.values()))
        accepted = Lookahead(cfg).automaton.accepts(word) and all(one.accepts(word) for one in constraints.values())
        assert found.valid == accepted
        if found.valid:
            return
        if found.nearest is not None:
            assert Lookahead(cfg).automaton.accepts(found.nearest)
            assert all(one.accepts(found.nearest) for one in constraints.values())
        if found.position is None or found.reason.startswith("no plan"):
            return
        assert set(found.constraints) <= set(formulas)
        only = {line: bound for line, bound in lines_of(cfg).items() if line in found.limits}
        blamed = [constraints[name] for name in found.constraints]
        limits = cfg.limits
        for line in lines_of(cfg):
            limits = limits if line in only else limits.without(line)
        alone = cfg.with_limits(limits)
        if not (found.constraints or found.limits):
            assert forbids(cfg.with_limits(Limits()), word, found.position)
            return
        assert not forbids(cfg.with_limits(Limits()), word, found.position)
        assert forbids(under(alone, blamed), word, found.position)
        for one in blamed:
            others = [other for other in blamed if other is not one]
            assert forbids(one, word, found.position) or not forbids(under(alone, others), word, found.position)

    def test_constraints_by_name_by_place_and_in_json(self):
        cfg = CFG.from_string("S -> a S | b S | c")
        named = constraint("(not (eventually (next a a)))", cfg, name="no a after an a")
        found = verify(["a", "a", "c"], cfg & named)
        assert (found.position, found.constraints, found.limits) == (1, ("no a after an a",), ())
        assert found.reason == (
            "a cannot stand at place 2 because of constraint 'no a after an a'; b or c could stand there"
        )
        assert found.nearest == ("a", "c")
        assert json.loads(json.dumps(found.to_dict()))["constraints"] == ["no a after an a"]
        unnamed = PDA(named.transitions, start=named.start_state, accepting=named.accepting_states)
        found = verify(["a", "a", "c"], (cfg & constraint("(until any c)", cfg)) & unnamed)
        assert found.constraints == ("constraint 2",)
        assert "because of constraint 2;" in found.reason

    def test_constraints_and_limits_that_leave_no_way_on_together(self):
        cfg = CFG.from_string("S -> a S | b S | c | d")
        last = constraint("(until any c)", cfg, name="c comes last")
        twice = constraint("(not (eventually (next b b)))", cfg, name="no two b")
        found = verify(["b", "d"], cfg & last & twice, limits=Limits({"c": 0, "a": 3}))
        assert (found.constraints, found.limits, found.allowed) == (("c comes last",), ("%limit 0 c",), ())
        assert found.reason == (
            "no plan is valid: these rules clash: constraint 'c comes last'; %limit 0 c; "
            "there is a plan without constraint 'c comes last'"
        )
        found = verify(["a", "d", "b"], cfg & last & twice)
        assert (found.position, found.constraints) == (1, ("c comes last",))
        assert verify(["b"], cfg & last & twice).constraints == ()
        found = verify(
            ["a", "b"], CFG.from_string("S -> a S | b S | ε") & constraint("(until any a)", LETTERS, name="a is last")
        )
        assert found.reason == "it ends too early because of constraint 'a is last'; a or b could come next"


class TestWhatItSays:
    def test_valid(self):
        found = verify(["eat", "wash_up", "sleep"], DAY)
        assert found == Verification(
            ("eat", "wash_up", "sleep"), True, "it follows all the rules", may_stop=True, distance=0,
            nearest=("eat", "wash_up", "sleep"),
        )  # fmt: skip
        assert str(found) == "valid: it follows all the rules"

    @pytest.mark.parametrize(
        ("word", "position", "allowed", "limits", "reason"),
        [
            ("eat sleep", 1, "eat wash_up", [], "sleep cannot stand at place 2; Eat or Wash up could stand there"),
            ("eat wash_up", 2, "sleep", [], "it ends too early; sleep could come next"),
            ("", 0, "eat wash_up", [], "it is empty; Eat or Wash up could come next"),
            ("wash_up sleep eat", 2, "", [], "Eat cannot stand at place 3; the plan must end there"),
            ("wash_up slep", 1, "sleep", [],
             "'slep' at place 2 is no terminal (did you mean sleep?); sleep could stand there"),
            ("eat eat eat", 2, "wash_up", ["%limit 2 eat"],
             "Eat cannot stand at place 3 because of %limit 2 eat; Wash up could stand there"),
        ],
    )  # fmt: skip
    def test_not_valid(self, word, position, allowed, limits, reason):
        found = verify(word.split(), DAY)
        assert not found.valid
        assert (found.position, found.allowed, list(found.limits)) == (position, tuple(allowed.split()), limits)
        assert found.reason == reason

    def test_the_nearest_plan_and_its_edits(self):
        found = verify(["eat", "eat", "eat", "sleep"], DAY)
        assert found.nearest == ("eat", "eat", "wash_up", "sleep")
        assert str(found).splitlines()[1:] == [
            "nearest valid plan: eat eat wash_up sleep",
            "  replace eat at place 3 by wash_up",
        ]
        dear = verify(["eat", "eat", "eat", "sleep"], DAY, weights=EditWeights(substitute=3))
        assert (dear.distance, sorted(edit.kind for edit in dear.edits)) == (2, ["delete", "insert"])

    def test_lower_bounds(self):
        found = verify(["wash_up", "sleep"], DAY, limits=Limits(at_least={"eat": 1}))
        # The required terminal has no place after the first symbol, so that is where the plan goes wrong.
        assert (found.position, found.limits) == (0, ("%require 1 eat",))
        free = CFG.from_string("S -> a S | b S | ε")
        found = verify(["b"], free, limits=Limits(at_least={"a": 1}))
        assert found.reason == "it ends too early because of %require 1 a; a or b could come next"

    def test_limits_that_clash_further_on(self):
        cfg = CFG.from_string("S -> a T T | b T\nT -> c | d")
        found = verify(["a", "c", "d"], cfg, limits=Limits({"c": 1, "d": 0}))
        assert (found.position, found.allowed, found.limits) == (0, ("b",), ("%limit 1 c", "%limit 0 d"))

    def test_an_empty_language(self):
        found = verify(["a"], CFG.from_string("S -> a b"), limits=Limits({"b": 0}))
        assert (found.position, found.allowed, found.nearest, found.distance) == (0, (), None, float("inf"))
        assert found.reason == "no plan is valid: no plan keeps %limit 0 b"
        assert json.loads(json.dumps(found.to_dict()))["distance"] is None

    def test_a_budget_that_is_too_small_is_said(self):
        names = [f"t{number}" for number in range(8)]
        cfg = CFG([("S", ("T", "S", "S")), ("S", ())] + [("T", (name, other)) for name in names for other in names])
        limits = Limits(default=2, at_least=dict.fromkeys(names, 1))
        found = Verifier(cfg, limits, max_states=1).verify(["t0", "t0", "t0"])
        assert not found.valid
        assert not (found.decided and found.nearest_decided)
        assert found.position is None or found.position <= 2


class TestVerifier:
    def test_plans_of_the_planner_are_valid(self, pack):
        verifier = Verifier(pack.cfg)
        for number in range(0, 185, 20):
            plan = Planner(pack.cfg, RandomLLM(number), wording=pack.wording).plan(pack.tasks[number])
            assert verifier.verify(plan).valid
            assert read_plan_text(str(plan), pack.cfg) == plan.word

    def test_without_a_nearest_plan(self):
        found = Verifier(DAY).verify(["eat"], repair=False)
        assert (found.nearest, found.distance, found.nearest_decided, found.decided) == (None, None, False, True)

    def test_automata_and_limits_on_top(self):
        pda = PDA([("p", "a", None, "p"), ("p", "b", None, "q")], start="p", accepting=["q"])
        assert verify(tuple("aab"), pda, limits=Limits({"a": 2})).valid
        assert verify(tuple("aaab"), pda, limits=Limits({"a": 2})).position == 2

    def test_a_text_is_no_word(self):
        with pytest.raises(TypeError, match="read_plan_text"):
            verify("eat sleep", DAY)


def test_the_part_of_a_behaviour_that_is_broken_is_named():
    """Each by itself where a word breaks it, by its formula."""
    rules = Behaviour.from_string(
        '(define rules (:states find ask pay close) (:limits "%limit 2 pay")\n  (:behavior\n    (and\n'
        "      (not (next (until (and any (not (or ask pay))) pay) (until any empty)))\n"
        "      (next (until any empty) close))))"
    )
    verifier = Verifier(rules)
    assert verifier.verify(["find", "pay", "close"]).constraints == (
        "(not (next (until (and any (not (or ask pay))) pay) (until any empty)))",
    )
    assert verifier.verify(["ask", "pay"]).constraints == ("(next (until any empty) close)",)
    found = verifier.verify(["ask", "pay", "pay", "pay", "close"])
    assert (found.constraints, found.limits) == ((), ("%limit 2 pay",))
    assert verifier.verify(["ask", "pay", "close"]).valid


def test_of_two_limits_of_a_behaviour_the_one_that_is_broken_is_to_blame():
    """A behaviour of several sentences is taken apart to name them; its limits stay those that they are."""
    rules = Behaviour.from_string(
        '(define rules (:states find_order pay_back apologise close) (:limits "%limit 1 apologise pay_back") (:behavior'
        " (and (not (next (until (and any (not (or find_order pay_back))) pay_back) (until any empty)))"
        " (next (until any empty) close))))"
    )
    for twice in ("pay_back", "apologise"):
        found = verify(("find_order", twice, twice, "close"), rules)
        assert found.limits == (f"%limit 1 {twice}",)
        assert f"because of %limit 1 {twice};" in found.reason
