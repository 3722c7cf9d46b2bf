"""What is known of the choices of a fork."""

from formal_llm.automata.lookahead.verdicts import FILTER, SEARCH, TALLY
from formal_llm.automata.models.transition import Transition
from formal_llm.planning.walks.choices import (
    Choice,
    ChoiceFork,
    ForkCache,
    RuledOut,
    SelectionPart,
    collect_indices,
)
from formal_llm.planning.walks.wording import with_questions


def test_sure_is_what_filters_tell():
    assert ChoiceFork((), 3, tally=3 * TALLY[FILTER]).is_certain
    assert not ChoiceFork((), 3, tally=2 * TALLY[FILTER] + TALLY[SEARCH]).is_certain


def test_indices():
    assert collect_indices([Choice(3, ()), Choice(1, ())]) == {1, 3}


def test_forks_are_dropped_where_they_have_too_many_options(monkeypatch):
    monkeypatch.setattr("formal_llm.planning.walks.choices._CACHE", 100)
    kept, choices = ForkCache(), tuple(Choice(number, ()) for number in range(20))
    for number in range(10):
        fork = ChoiceFork(choices, 20)
        assert kept.store_fork(number, fork, 1.0) == kept.get(number) == (fork, 1.0)
    assert sum(kept.get(number) is not None for number in range(10)) == 1


def test_answers_to_several_questions_tell_which_one_they_answer() -> None:
    def choice(question: str, *, decision: bool = True) -> Choice:
        return Choice(0, (Transition("p", "a", None, "q", question=question, decision=decision),))

    assert with_questions([choice("Good?"), choice("Good?")], ["yes", "no"]) == ["yes", "no"]
    both = [choice("Good?"), choice("Late?"), choice("", decision=False), Choice(0, ())]
    assert with_questions(both, ["yes", "yes", "Go", "stop"]) == ["Good? yes", "Late? yes", "Go", "stop"]


def test_what_is_ruled_out_on_a_page_of_a_selection() -> None:
    """Sets by themselves, and all sets that one answer leads to, which goes on to another page."""
    a, b, c, d = (frozenset(name) for name in "abcd")
    part = SelectionPart(here=a | b, later=c | d, marker=">")
    assert part.all_members == a | b | c | d
    assert part.make_answer(a) == a
    assert part.make_answer(a | c) == frozenset("a>") == part.make_answer(a | c | d)
    assert part.make_answer(c) == frozenset(">")
    assert SelectionPart(here=a | b).make_answer(a | c) == a | c  # there is no page to go on to
    out = RuledOut(frozenset((b, frozenset("a>"), a | b | c)), part)
    assert b in out
    assert a | c in out and a | d in out and a | b | c in out
    assert a not in out and a | b not in out and a | b | d not in out and b | c not in out and c not in out
    assert 3 not in out and "b" not in out
