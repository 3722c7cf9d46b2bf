import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, SumLimit
from formal_llm.automata.languages.edits import Edit, EditWeights, apply, edits, weigh
from formal_llm.automata.languages.nearest import Nearest, nearest
from formal_llm.automata.languages.prefixes import Prefixes
from formal_llm.automata.models.product import product
from formal_llm.errors import AutomatonError
from tests.oracles import Reference, all_words, keeps, language
from tests.strategies import LETTERS, examples, limited_automata, limited_grammars, tool_grammars

UP_TO = 5
words = st.lists(st.sampled_from(LETTERS), max_size=4).map(tuple)
weights = st.builds(EditWeights, st.integers(0, 3), st.integers(0, 3), st.integers(0, 4))


def distance(word, other, weights):
    """The recursive definition of the weighted Levenshtein distance."""
    if not word or not other:
        return len(word) * weights.delete + len(other) * weights.insert
    return min(
        distance(word[1:], other[1:], weights) + (0 if word[0] == other[0] else weights.substitute),
        distance(word[1:], other, weights) + weights.delete,
        distance(word, other[1:], weights) + weights.insert,
    )


def check(lookahead, word, weights, short_words):
    """``short_words``: all words of the language within the limits, up to the length ``UP_TO``."""
    found = nearest(lookahead, word, weights)
    assume(found.decided)
    best = min((distance(word, other, weights) for other in short_words), default=float("inf"))
    assert found.distance <= best
    if found.word is None:
        assert found == Nearest(None)
        return
    assert lookahead.automaton.accepts(found.word)
    assert apply(found.edits, word) == found.word
    assert weigh(found.edits, weights) == found.distance
    if len(found.word) <= UP_TO:
        assert found.distance == best


class TestEdits:
    @given(words, words, weights)
    def test_they_turn_one_word_into_the_other_for_the_least(self, word, other, weights):
        made = edits(word, other, weights)
        assert apply(made, word) == other
        assert weigh(made, weights) == distance(word, other, weights)
        assert [edit.position for edit in made] == sorted(edit.position for edit in made)

    def test_what_they_say(self):
        made = edits(("a", "b", "c"), ("b", "x", "d"))
        assert weigh(made) == 3
        assert str(Edit("insert", 2, new="x")) == "insert x at place 3"
        assert str(Edit("delete", 2, "x")) == "delete x at place 3"
        assert str(Edit("substitute", 2, "x", "y")) == "replace x at place 3 by y"

    @pytest.mark.parametrize("weight", [-1, float("inf"), float("nan")])
    def test_weights_are_numbers_from_zero(self, weight):
        with pytest.raises(ValueError, match="the weight of delete"):
            EditWeights(delete=weight)


class TestNearest:
    @given(limited_grammars() | tool_grammars(), words, weights)
    @examples(80)
    def test_grammars_under_limits(self, cfg, word, weights):
        within = [w for w in language(cfg, UP_TO) if keeps(w, cfg.limits, cfg.terminals, cfg.symbols)]
        check(Lookahead(cfg), word, weights, within)

    @given(limited_grammars(), words, weights)
    @examples(80)
    def test_grammars_without_limits(self, cfg, word, weights):
        check(Lookahead(PDA.from_cfg(cfg)), word, weights, language(cfg, UP_TO))

    @given(limited_automata(), words, weights)
    @examples(80)
    def test_automata(self, source, word, weights):
        pda, bounds = source
        within = [
            w
            for w in all_words(pda.terminals, UP_TO)
            if keeps(w, bounds, pda.terminals, pda.symbols) and pda.accepts(w)
        ]
        check(Lookahead(*source), word, weights, within)

    def test_limits_on_sums_and_lower_bounds(self):
        cfg = CFG.from_string("S -> a S | b S | c\na cost=2\nb cost=3\n")
        found = nearest(Lookahead(cfg, Limits(sums=(SumLimit("cost", 7, 7),))), ("a", "a", "a", "c"))
        assert (sorted(found.word), found.distance) == (["a", "a", "b", "c"], 1)
        found = nearest(Lookahead(cfg, Limits(at_least={"b": 2})), ("a", "a", "c"), EditWeights(substitute=5))
        assert (sorted(found.word), found.distance) == (["a", "a", "b", "b", "c"], 2)

    def test_left_recursion_empty_productions_and_unit_cycles(self):
        cfg = CFG.from_string("S -> S N | S | a\nN -> b | ε | N N\n%limit 2 b")
        assert nearest(Lookahead(cfg), ("c", "b", "b", "b")).distance == 2
        assert nearest(Lookahead(cfg), ()).word == ("a",)

    def test_no_word_at_all(self):
        assert nearest(Lookahead(CFG.from_string("S -> a b").with_limits(Limits({"a": 0}))), ("a",)) == Nearest(None)
        assert nearest(Lookahead(CFG([("S", ("S",))])), ("a",)) == Nearest(None)

    def test_symbols_that_the_automaton_does_not_know(self):
        found = nearest(Lookahead(CFG.from_string("S -> a S b | c")), ("x", "a", "y", "z", "b"))
        assert found.distance == 3
        assert not {"x", "y", "z"} & set(found.word)

    def test_long_words(self):
        cfg = CFG.from_string("S -> a S b | c")
        word = ("a",) * 150 + ("c",) + ("b",) * 147
        assert nearest(Lookahead(cfg), word).distance == 3

    def test_the_budget_ends_it_honestly(self):
        names = [f"t{number}" for number in range(12)]
        cfg = CFG([("S", (name, "S")) for name in names] + [("S", ())], limits=Limits(default=1))
        word = ("t0",) * 6 + ("t1",) * 6
        assert nearest(Lookahead(cfg), word, EditWeights(delete=3), max_states=5) == Nearest(None, decided=False)

    def test_only_for_pushdown_automata(self):
        class Other:
            terminals = ("a",)

        lookahead = Lookahead(Other())
        for ask in (Prefixes, lambda known: nearest(known, ())):
            with pytest.raises(AutomatonError, match="pushdown"):
                ask(lookahead)


def viable(pda, bounds, prefix):
    """Whether a word within the limits begins with ``prefix``, by the slow reference on both automata side by side."""
    steps = [(at, name, None, at + 1) for at, name in enumerate(prefix)]
    loops = [(len(prefix), name, None, len(prefix)) for name in pda.terminals]
    begins = PDA([*steps, *loops], start=0, accepting=[len(prefix)], check=False)
    # The letters are those of the automaton, so that no limit on what cannot be read after the prefix is lost.
    return not Reference(product(pda, begins), bounds, pda.terminals).empty


def check_prefixes(pda, bounds, word, **options):
    prefixes = Prefixes(Lookahead(pda, bounds), **options)
    length, decided = prefixes.longest(word)
    assert decided
    found = [viable(pda, bounds, word[:end]) for end in range(len(word) + 1)]
    assert found == [end <= length for end in range(len(word) + 1)]
    assert found == [prefixes.viable(word[:end]) for end in range(len(word) + 1)]
    if length >= 0:
        start = word[:length]
        allowed, may_stop, decided = prefixes.following(start)
        assert decided
        assert may_stop == (pda.accepts(start) and keeps(start, bounds, pda.terminals, pda.symbols))
        assert allowed == tuple(name for name in pda.terminals if viable(pda, bounds, (*start, name)))


class TestPrefixes:
    @given(limited_grammars() | tool_grammars(), words, st.sampled_from([0, 3, 1_000]))
    @examples(60)
    def test_grammars(self, cfg, word, most):
        check_prefixes(PDA.from_cfg(cfg), cfg.limits, word, max_configurations=most)

    @given(limited_grammars(), words, st.sampled_from([0, 3, 1_000]))
    @examples(40)
    def test_grammars_without_limits(self, cfg, word, most):
        check_prefixes(PDA.from_cfg(cfg), Limits(), word, max_configurations=most)

    @given(limited_automata(), words, st.sampled_from([0, 3, 1_000]))
    @examples(60)
    def test_automata(self, source, word, most):
        check_prefixes(*source, word, max_configurations=most)

    def test_left_recursion_without_end(self):
        cfg = CFG.from_string("S -> S a | S b | c")
        prefixes = Prefixes(Lookahead(cfg), max_configurations=20)
        assert prefixes.longest(("c", "a", "b", "c", "a")) == (3, True)
        assert prefixes.following(("c", "a")) == (("a", "b"), True, True)
        limited_too = Prefixes(Lookahead(cfg, Limits(at_most={"a": 1}, at_least={"b": 2})), max_configurations=5)
        assert limited_too.longest(("c", "a", "a")) == (2, True)
        assert limited_too.following(("c", "a", "b")) == (("b",), False, True)
        assert limited_too.longest(("x",)) == (0, True)

    def test_long_words_with_left_recursion(self):
        prefixes = Prefixes(Lookahead(CFG.from_string("S -> S a | b")), max_configurations=20)
        word = ("b",) + ("a",) * 60 + ("b",) + ("a",) * 20
        assert prefixes.longest(word) == (61, True)
