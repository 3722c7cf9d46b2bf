"""What the world can force: the game against two oracles on random rules, and small rules by hand."""

import pickle

import pytest

from formal_llm import CFG, PDA, Flowchart, Limits
from formal_llm.automata.lookahead.limited import list_outcomes, name_decision
from formal_llm.control.world import (
    LOST,
    GamePosition,
    GameSearch,
    WhateverLookahead,
    describe_outcome,
    find_dead_ends,
)
from formal_llm.errors import AutomatonError
from tests.world_oracles import controllable, places_of, plain_of, random_rules, wins_by_plays

RETRY = "%start S\n%world W\nS -> probe W\nW -> ok | sick fix S\n"


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_verdicts_are_those_of_two_oracles(first: int) -> None:
    for seed in range(first, first + 30):
        rules = random_rules(seed)
        plain, lookahead = plain_of(rules), WhateverLookahead(rules)
        for number, (configuration, node) in enumerate(places_of(lookahead, plain)):
            expected = wins_by_plays(plain, node)
            assert lookahead.completable(configuration).value == ("yes" if expected else "no"), (seed, node)
            assert number or controllable(plain, node) == expected, seed


@pytest.mark.parametrize("seed", range(60))
def test_the_most_moves_fall_along_every_play(seed: int) -> None:
    """From a configuration of the agent's some move lowers the bound, from one of the world's every move does."""
    lookahead = WhateverLookahead(random_rules(seed))
    automaton = lookahead.automaton
    for configuration, _ in places_of(lookahead, plain_of(random_rules(seed))):
        verdict = lookahead.completable(configuration)
        if verdict.value != "yes" or not verdict.steps:
            continue
        if automaton.is_world_decision(configuration):
            after = [one.after for one in list_outcomes(automaton, configuration) if one.move is not None]
        else:
            after = [automaton.step(configuration, move) for move in automaton.moves(configuration)]
        fewer = [
            (after_verdict := lookahead.completable(one)).value == "yes" and after_verdict.steps < verdict.steps
            for one in after
        ]
        assert (all if automaton.is_world_decision(configuration) else any)(fewer)
        assert lookahead.completable(configuration, steps=verdict.steps).value == "yes"
        assert lookahead.completable(configuration, steps=verdict.steps - 1).how == "step budget"


def test_without_marks_both_guarantees_are_one() -> None:
    cfg = CFG.from_string("%limit 2 a\nS -> a S b | c")
    assert WhateverLookahead(cfg).completable().value == "yes"
    assert WhateverLookahead(cfg, Limits(at_least={"a": 3})).completable().value == "no"


def test_the_world_can_keep_a_plan_going_round() -> None:
    lookahead = WhateverLookahead(CFG.from_string(RETRY))
    assert lookahead.completable().value == "no"
    assert lookahead.completable_for_some().value == "yes"
    [end] = find_dead_ends(lookahead)
    assert end.is_circle
    assert str(end) == "W sick fix S: the world can keep it going round, after probe"


def test_limits_do_not_bind_the_world() -> None:
    lookahead = WhateverLookahead(CFG.from_string(RETRY), Limits({"probe": 2}))
    [end] = find_dead_ends(lookahead)
    assert (end.decision, end.outcome, end.word) == ("W", "sick fix S", ("probe", "sick", "fix", "probe"))
    assert not end.is_circle
    giving_up = CFG.from_string(RETRY.replace("probe W", "probe W | stop"))
    assert WhateverLookahead(giving_up, Limits({"probe": 2})).completable().value == "yes"


def test_an_answer_that_limits_forbid_is_one_all_the_same() -> None:
    pda = PDA([("q", "a", None, "w"), ("w", "b", None, "e"), ("w", "c", None, "e")], start="q", accepting="e",
              world=["w"], limits=Limits({"c": 0}))  # fmt: skip
    lookahead = WhateverLookahead(pda)
    now = lookahead.automaton.step(lookahead.automaton.start(), pda.transitions[0])
    assert [(one.move.read, one.after is None) for one in list_outcomes(lookahead.automaton, now)] == [
        ("b", False), ("c", True),
    ]  # fmt: skip
    assert lookahead.completable().value == "no"
    assert name_decision(lookahead.automaton, now) == "w"


def test_ending_is_an_answer_where_the_world_decides_in_a_final_state() -> None:
    pda = PDA([("w", "a", None, "w")], start="w", accepting=["w"], world=["w"])
    lookahead = WhateverLookahead(pda)
    assert [one.move is None for one in list_outcomes(lookahead.automaton, pda.start())] == [True, False]
    assert lookahead.completable().value == "no"
    limited = WhateverLookahead(pda.with_limits(Limits(at_least={"a": 1})))
    assert next(list_outcomes(limited.automaton, limited.automaton.start())).after is None
    assert describe_outcome(lookahead.automaton, None) == "the plan ends"


def test_what_grows_without_end_is_not_decided() -> None:
    lookahead = WhateverLookahead(CFG.from_string("%world W\nS -> W\nW -> a W b | c"), max_states=50)
    assert lookahead.completable().value == "unknown"


def test_constraints_do_not_bind_the_world() -> None:
    chart = Flowchart.from_string(
        "flowchart TD\n %% %world H\n A[Probe] --> H{Healthy?}\n H -->|yes| B[Ship]\n H -->|no| C[Mend]\n"
    )
    never = PDA([("q", "A", None, "q"), ("q", "H=yes", None, "q"), ("q", "B", None, "q")], start="q", accepting="q")
    both = chart.pda() & never
    assert both.has_world_moves
    assert WhateverLookahead(both).completable().value == "no"
    assert WhateverLookahead(both).completable_for_some().value == "yes"
    [end] = find_dead_ends(WhateverLookahead(both))
    assert str(end) == "Healthy? no: nothing leads to an end, after A"
    with pytest.raises(AutomatonError, match="has the world's moves, and is a constraint here"):
        _ = never & chart.pda()


def test_a_constraint_with_several_ways_is_refused() -> None:
    cfg = CFG.from_string("%world W\nS -> a W\nW -> b | c")
    either = PDA([("q", "a", None, "p"), ("q", "a", None, "r"), ("p", "b", None, "e"), ("r", "c", None, "e")],
                 start="q", accepting="e", name="either")  # fmt: skip
    with pytest.raises(AutomatonError, match="either has several transitions for one step"):
        WhateverLookahead(cfg & either)


def test_it_is_pickled_by_its_rules() -> None:
    again = pickle.loads(pickle.dumps(WhateverLookahead(CFG.from_string(RETRY))))
    assert isinstance(again, WhateverLookahead)
    assert again.completable().value == "no"


# -- the game -----------------------------------------------------------------------------------------------------


def search(graph: dict[str, str], ends: str = "e", world: str = "", most: int = 100) -> GameSearch[str]:
    return GameSearch(lambda node: GamePosition(node in world, tuple(graph.get(node, "")), node in ends), most)


def test_a_game_is_won_at_an_end_and_lost_in_a_circle() -> None:
    game = search({"a": "bc", "b": "a", "c": "e"})
    assert game.most_moves("a") == 2
    assert search({"a": "b", "b": "a"}).most_moves("a") == LOST
    assert search({"a": "be", "b": "a"}, world="a").can_reach_end("a") is False
    assert search({"a": "be", "b": "e"}, world="a").most_moves("a") == 2


def test_the_world_without_an_answer_is_a_dead_end() -> None:
    assert search({}, world="a").can_reach_end("a") is False
    assert search({}, ends="a", world="a").most_moves("a") == 0
    assert search({"a": "b"}, ends="ab", world="a").most_moves("a") == 1


def test_a_bound_leaves_it_undecided_and_a_larger_one_decides() -> None:
    chain = {chr(number): chr(number + 1) for number in range(300, 340)}
    game = search(chain, ends=chr(340), most=10)
    assert game.can_reach_end(chr(300)) is None
    assert game.can_reach_end(chr(335)) is True
    game.max_nodes = 100
    assert game.most_moves(chr(300)) == 40
