"""Without left recursion there are the same words, and fronts stay small."""

from __future__ import annotations

from hypothesis import given

from formal_llm import CFG, PDA, Limits, Lookahead, constraint
from formal_llm.automata.languages.fronts import ConfigurationSets
from formal_llm.automata.languages.left_recursion import without_left_recursion
from tests.oracles import language
from tests.strategies import examples, grammars, limited_grammars


@given(grammars())
@examples(60)
def test_the_same_words(cfg):
    pda = PDA.from_cfg(cfg)
    made = without_left_recursion(pda)
    if made is not pda:
        assert made.cfg is not None
        assert language(made.cfg, 3) == language(cfg, 3)


@given(limited_grammars())
@examples(40)
def test_under_the_same_limits(cfg):
    pda = PDA.from_cfg(cfg).with_limits(cfg.limits)
    made = without_left_recursion(pda)
    if made is not pda:
        assert made.cfg is not None
        assert {bound.line for bound in made.bounds} == {bound.line for bound in pda.bounds}
        words = language(cfg, 3)
        assert {word for word in words if made.accepts(word)} == {word for word in words if pda.accepts(word)}
        assert Lookahead(made).completable().value == Lookahead(pda).completable().value


def test_steps_one_after_the_other_take_few_configurations() -> None:
    cfg = CFG.from_string(
        "%order forward\n%limit 40 a\nSteps -> Steps Step | Step\nStep -> a | Block\nBlock -> Block end | begin"
    )
    fronts = ConfigurationSets(Lookahead(cfg), max_configurations=30)
    front = fronts.after_word(("begin", "end", "a") * 40)
    assert front.word is None
    assert list(front.allowed_terminals) == ["end", "begin"] or list(front.allowed_terminals) == ["begin"]
    assert front.after_terminal("a").is_viable is False


def test_mutual_recursion_and_a_constraint_on_top() -> None:
    cfg = CFG.from_string("%order forward\nS -> T a | b\nT -> S c | T d | a")
    both = cfg & constraint("(until_0_9 any empty)", cfg)
    made = without_left_recursion(both)
    assert made is not both
    assert made.bounds == both.bounds
    for word in language(cfg, 6):
        assert made.accepts(word)
    fronts = ConfigurationSets(Lookahead(both), max_configurations=50)
    assert fronts.after_word("bcaca").may_stop
    assert fronts.after_word("bcaca").word is None
    assert fronts.after_word("bb").is_viable is False


def test_what_stays_as_it_is() -> None:
    for text in ("S -> a S | b", "S -> E S a | b\nE -> ε"):
        pda = PDA.from_cfg(CFG.from_string(f"%order forward\n{text}"))
        assert without_left_recursion(pda) is pda
    finite = constraint("(until a b)", ["a", "b"]).with_limits(Limits(at_most={"a": 1}))
    assert without_left_recursion(finite) is finite


def test_what_recurses_again_further_on_is_turned_round_and_what_hides_behind_nothing_is_not() -> None:
    again = PDA.from_cfg(CFG.from_string("%order forward\nS -> S a S | b"))
    assert without_left_recursion(again) is not again
    hidden = PDA.from_cfg(CFG.from_string("%order forward\nS -> N S a | S c | b\nN -> n | ε"))
    assert without_left_recursion(hidden) is hidden
