"""What is known of the choices of a fork."""

from formal_llm import CFG
from formal_llm.automata.lookahead.branches import Branch, Branches, Judged
from formal_llm.automata.lookahead.verdicts import FILTER, SEARCH, TALLY
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.forks import Choice, Fork, Template, candidates, indices


def template():
    lookahead = ChoiceTable.of(CFG.from_string("S -> a | b | c")).lookahead
    top = lookahead.top(lookahead.automaton.start())
    found = list(candidates(lookahead.pda, lookahead.automaton.start(), lookahead.pda.at_class))
    branches = lookahead.branches(top, [Branch(len(choice.moves), choice.reads, after) for choice, after in found])
    assert isinstance(branches, Branches)
    return Template(tuple(choice for choice, _ in found), branches)


def test_the_same_verdicts_give_the_same_fork():
    made = template()
    fork = made.fork(Judged(0b101, 2.0, 0b100, 0b100, 3 * TALLY[SEARCH]))
    assert [choice.reads for choice in fork.choices] == [("a",), ("c",)]
    assert (fork.total, fork.unknown, fork.open) == (3, frozenset({2}), frozenset({2}))
    assert made.fork(Judged(0b101, 9.0, 0b100, 0b100, 3 * TALLY[SEARCH])) is fork
    assert made.fork(Judged(0b101, 2.0, tally=3 * TALLY[SEARCH])).unknown == frozenset()


def test_sure_is_what_filters_tell():
    assert Fork((), 3, tally=3 * TALLY[FILTER]).sure
    assert not Fork((), 3, tally=2 * TALLY[FILTER] + TALLY[SEARCH]).sure


def test_indices():
    assert indices([Choice(3, ()), Choice(1, ())]) == {1, 3}
