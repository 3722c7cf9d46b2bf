"""Why options are left out, against the options that there are without any rules."""

from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Lookahead, Walk, constraint
from formal_llm.errors import NoValidPlan
from formal_llm.planning import ChoiceTable
from formal_llm.planning.checking.reasons import Reasons
from tests.strategies import LETTERS, examples, limited_grammars

FORMULAS = ("(until any a)", "(not (eventually (next a b)))", "(eventually (or a c))", "(not (eventually b))")


def walk_of(cfg, formulas, picks):
    """A walk after some answers, and its table; None where there is no plan."""
    table = ChoiceTable.of(cfg, constraints=[constraint(formula, LETTERS) for formula in formulas])
    try:
        walk = Walk(table)
    except NoValidPlan:
        return None
    for pick in picks:
        question = walk.question
        if question is None:
            break
        legal = [option.number for option in question.options if not question.problem((option.number,))]
        if not legal:
            break
        walk.answer(legal[pick % len(legal)])
    return None if walk.question is None else (walk, table)


@given(
    limited_grammars(),
    st.lists(st.sampled_from(FORMULAS), max_size=2, unique=True),
    st.lists(st.integers(0, 4), max_size=3),
)
@examples(80)
def test_what_is_left_out_and_what_is_offered_are_all_options(cfg, formulas, picks):
    made = walk_of(cfg, formulas, picks)
    assume(made is not None)
    walk, table = made
    left_out = Reasons(table).left_out(walk)
    assert len(left_out) == Reasons(table).count(walk)
    fork = table.at(walk.configuration, walk.left)
    if not formulas and not fork.several:
        # Without constraints the grammar stands where the walk stands, limits aside.
        free = ChoiceTable(Lookahead(cfg.with_limits(Limits())), look=False)
        here = walk.configuration.inner if cfg.limits else walk.configuration
        assert len(left_out) + len(fork.choices) == len(free.at(here, walk.left).choices)
    known = [bound.line for bound in Lookahead(cfg).automaton.counters.bounds] if cfg.limits else []
    known += [f"constraint {formula!r}" for formula in formulas]
    for option in left_out:
        if option.reason.startswith("because of "):
            assert set(option.reason.removeprefix("because of ").split("; ")) <= set(known)
        else:
            # Nothing but the grammar itself is to blame.
            assert option.reason == "no plan can be finished from there"


@given(limited_grammars(selections=False), st.lists(st.integers(0, 4), max_size=3), st.sampled_from(LETTERS))
@examples(60)
def test_what_is_said_of_a_terminal_is_so(cfg, picks, name):
    made = walk_of(cfg, [], picks)
    assume(made is not None and name in made[0].automaton.terminals)
    walk, table = made
    said = Reasons(table).about(walk, name)
    next_is, cut = {}, False
    for option in walk.question.options:
        fork = walk.fork()
        fork.answer(option.number)
        words, given_up = ([fork.word], False) if fork.done else first_words(fork)
        cut = cut or given_up
        next_is[option.number] = {word[len(walk.word)] for word in words if len(word) > len(walk.word)}
    can = [number for number, names in next_is.items() if name in names]
    if "is offered: " in said or "can come next, after option " in said:
        assume(can or not cut)  # else it may take more answers than are looked at
        assert can, said
    elif not said.startswith("it is offered"):
        assert not can, said


def first_words(walk):
    """The words of the walks that go on from a walk until they have read one terminal more, at most three answers on.

    And whether any was given up after three answers.
    """
    before, words, todo, cut = len(walk.word), [], [(walk, 0)], False
    while todo:
        now, depth = todo.pop()
        if now.done or len(now.word) > before:
            words.append(now.word)
            continue
        if depth == 3:
            cut = True
            continue
        for option in now.question.options:
            fork = now.fork()
            fork.answer(option.number)
            todo.append((fork, depth + 1))
    return words, cut


def test_a_walk_without_lookahead():
    cfg = CFG.from_string("S -> a T | b\nT -> d e | f\n%limit 0 e")
    table = ChoiceTable.of(cfg, lookahead="off")
    walk = Walk(table)
    walk.answer(1)
    assert Reasons(table).left_out(walk) == []
    assert Reasons(table).about(walk, "e").startswith("e cannot stand at place 2")
