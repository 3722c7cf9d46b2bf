"""Words, prefixes, nearest words and differences, against all short words and a slow reference.

Random rules of every kind with finitely many words are asked in :mod:`tests.automata.test_questions`.
"""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, SumLimit
from formal_llm.automata.languages.comparison import differences
from formal_llm.automata.languages.nearest_words import Edit, EditWeights, Nearest, find_edits, nearest
from formal_llm.automata.languages.prefixes import Allowed, ConfigurationSets
from formal_llm.automata.languages.word_lists import PlanCount, count_plans, words
from formal_llm.automata.lookahead.derivations import derivations
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.product import product
from formal_llm.errors import Undecided
from tests.automata.languages.editing import apply_edits, distance, in_order, weights
from tests.automata.languages.editing import words as some_words
from tests.automata.lookahead.judging import Plain, sources
from tests.automata.messages import quiet
from tests.oracles import Reference, all_words, keeps, language, runs
from tests.strategies import automata, choices, examples, grammars, limited_automata, limited_grammars, tool_grammars

UP_TO = 5


def short_words(cfg, up_to=UP_TO):
    return {word for word in language(cfg, up_to) if keeps(word, cfg.limits, cfg.terminals, cfg.symbols)}


class TestWords:
    @given(grammars())
    @examples(60)
    def test_each_once_and_in_order(self, cfg):
        assert list(words(cfg, 4)) == in_order(language(cfg, 4), cfg.terminals)

    @given(automata(letters=("a", "b")))
    @examples(40)
    def test_of_automata_written_by_hand(self, pda):
        accepted = {word: runs(pda, word) for word in all_words(pda.terminals, 4)}
        assume(None not in accepted.values())
        assert list(words(pda, 4)) == in_order([word for word in accepted if accepted[word]], pda.terminals)

    def test_lazily(self):
        names = [f"tool{number}" for number in range(40)]
        cfg = CFG([("S", ("T", "S")), ("S", ()), *(("T", (name,)) for name in names)])
        assert list(itertools.islice(words(cfg, 500), 3)) == [(), ("tool0",), ("tool1",)]

    @pytest.mark.parametrize(
        ("rules", "many", "shown"),
        [
            ("S -> a b | a b c d | e", PlanCount(3, "words"), "3"),
            ("S -> a S | b", PlanCount(5, "words", 5), "infinitely many; 5 up to 5"),
            ("S -> " + " | ".join(f"a{n}" for n in range(1200)), PlanCount(1200, "words"), "1,200"),
        ],
    )
    def test_how_many_plans_there_are(self, rules, many, shown):
        found = count_plans(Lookahead(CFG.from_string(rules)))
        assert found == many
        assert found.describe_count("up to {}") == shown

    def test_derivations_are_counted_where_words_cannot_be(self, monkeypatch):
        lookahead = Lookahead(CFG.from_string("S -> A | B\nA -> a\nB -> a"))
        count = lookahead.count

        def undecided(configuration=None, *, of="words", max_length=None):
            if of == "words":
                raise Undecided("not counted")
            return count(configuration, of="derivations", max_length=max_length)

        monkeypatch.setattr(lookahead, "count", undecided)
        assert count_plans(lookahead).describe_count("") == "2 derivations (a plan may have several)"


class TestDerivations:
    @given(grammars())
    @examples(40)
    def test_each_derives_the_word_and_no_two_are_the_same(self, cfg):
        for word in itertools.islice(words(cfg, 4), 6):
            found = derivations(cfg, word, 8).found
            assert found
            assert len(set(found)) == len(found)
            assert [len(one) for one in found] == sorted(len(one) for one in found)
            for derivation in found:
                form = [cfg.start]
                for production in derivation:
                    at = next(place for place, name in enumerate(form) if name not in cfg.terminals)
                    assert form[at] == production.head
                    form[at : at + 1] = production.body
                assert tuple(form) == word

    def test_as_many_as_catalan_says_and_those_that_are_cut(self):
        cfg = CFG.from_string("S -> S S | a")
        assert [len(derivations(cfg, "a" * n).found) for n in range(1, 7)] == [1, 1, 2, 5, 14, 42]
        assert derivations(cfg, "aaaa", 5).complete
        assert not derivations(cfg, "aaaa", 4).complete
        endless = derivations(CFG([("S", ("S",)), ("S", ("a",))]), "a", 3)
        assert ([len(one) for one in endless.found], endless.complete) == ([1, 2, 3], False)
        long = derivations(CFG.from_string("S -> a S | b"), "a" * 150 + "b")
        assert (len(long.found[0]), long.complete) == (151, True)


def viable(pda, bounds, prefix):
    """Whether a word within the limits begins with ``prefix``, by the slow reference on both automata side by side."""
    steps = [(at, name, None, at + 1) for at, name in enumerate(prefix)]
    loops = [(len(prefix), name, None, len(prefix)) for name in pda.terminals]
    begins = PDA([*steps, *loops], start=0, accepting=[len(prefix)], check=False)
    # The letters are those of the automaton, so that no limit on what cannot be read after the prefix is lost.
    return not Reference(product(pda, begins), bounds, pda.terminals).empty


GRAMMAR_SOURCES = (limited_grammars() | tool_grammars()).map(lambda cfg: (PDA.from_cfg(cfg), cfg.limits))


class TestPrefixes:
    @given(GRAMMAR_SOURCES | limited_automata(), some_words, st.sampled_from([0, 3, 1_000]))
    @examples(100)
    def test_against_the_reference(self, source, word, most):
        pda, bounds = source
        prefixes = ConfigurationSets(Lookahead(pda, bounds), max_configurations=most)
        length, decided = prefixes.longest_viable(word)
        assert decided
        found = [viable(pda, bounds, word[:end]) for end in range(len(word) + 1)]
        assert found == [end <= length for end in range(len(word) + 1)]
        assert found == [prefixes.is_viable(word[:end]) for end in range(len(word) + 1)]
        if length >= 0:
            start = word[:length]
            allowed, may_stop, decided = prefixes.next_terminals(start)
            assert decided
            assert may_stop == (pda.accepts(start) and keeps(start, bounds, pda.terminals, pda.symbols))
            assert allowed == tuple(name for name in pda.terminals if viable(pda, bounds, (*start, name)))

    @given(sources, choices)
    @examples(40)
    def test_what_comes_next_is_what_leads_on(self, source, picks):
        sets = ConfigurationSets(Lookahead(*source))
        here = sets.start
        for pick in picks:
            after = {name: here.after_terminal(name) for name in sets.terminals}
            allowed = [name for name, one in after.items() if one.is_viable is not False]
            assert here.allowed_terminals == {name: Allowed(after[name].shortest_length) for name in allowed}
            assert not allowed or here.is_viable
            if not allowed:
                break
            here = after[allowed[pick % len(allowed)]]

    def test_the_configurations_of_a_set_are_those_that_are_followed(self):
        lookahead = Lookahead(CFG.from_string("S -> a S b | c"))
        few, none = ConfigurationSets(lookahead), ConfigurationSets(lookahead, max_configurations=0)
        assert few.start.configurations == frozenset((lookahead.automaton.start(),))
        assert few.after_word("b") is few.dead
        assert few.dead.configurations == frozenset() and few.dead.shortest_length is None
        assert none.after_word("a").configurations is None

    def test_beyond_the_cap_answers_stay_the_same(self):
        # The left recursion is hidden behind what derives ε, so it stays.
        cfg = CFG.from_string("%order forward\nS -> E S a | E S b | c\nE -> ε")
        for few in (Limits(at_most={"a": 1}, at_least={"b": 2}), Limits()):
            front = ConfigurationSets(Lookahead(cfg, few), max_configurations=5).after_word(("c", "a"))
            assert front.word == ("c", "a")
            left = 1 if few else 0
            assert front.shortest_length == (2 if few else 0)
            assert dict(front.allowed_terminals) == (
                {"b": Allowed(left)} if few else {"a": Allowed(0), "b": Allowed(0)}
            )
            assert front.may_stop == (not few)
            assert front.after_terminal("c").is_viable is False

    def test_beyond_the_cap_other_automata_are_not_decided(self):
        class Endless(Plain):
            class Silent:
                read = None

            def moves(self, configuration):
                return (self.Silent(), *self.steps)

            def step(self, configuration, move):
                return configuration + 1 if move.read is None else 0

        with pytest.raises(Undecided, match="more than 7 configurations"):
            _ = ConfigurationSets(Lookahead(Endless()), max_configurations=7).start.may_stop

    def test_long_words_with_left_recursion(self):
        prefixes = ConfigurationSets(Lookahead(CFG.from_string("S -> S a | b")), max_configurations=20)
        word = ("b",) + ("a",) * 60 + ("b",) + ("a",) * 20
        assert prefixes.longest_viable(word) == (61, True)

    def test_a_prefix_is_not_certainly_the_longest_where_the_time_ran_out(self):
        cfg = CFG.from_string("%order forward\n%limit 5 a b\n%require 2 a b\nS -> E S T | c\nE -> ε\nT -> a | b | T T")
        for most in (2, 5):
            word = ("c", "a", "b", "a", "b", "c")
            assert ConfigurationSets(Lookahead(cfg), max_configurations=most).longest_viable(word) == (5, True)
            hasty = ConfigurationSets(Lookahead(cfg), search_time=0, max_configurations=most)
            length, sure = hasty.longest_viable(word)
            assert length < 5 and not sure

    @given(limited_grammars() | tool_grammars(), some_words, st.sampled_from([0.0, 0.0003]))
    @examples(40)
    def test_what_is_certain_in_little_time_is_right(self, cfg, word, seconds):
        hasty, exact = ConfigurationSets(Lookahead(cfg), search_time=seconds), ConfigurationSets(Lookahead(cfg))
        assert hasty.is_viable(word) in (None, exact.is_viable(word))
        length, decided = hasty.longest_viable(word)
        assert length == exact.longest_viable(word)[0] if decided else length <= exact.longest_viable(word)[0]
        allowed, may_stop, decided = hasty.next_terminals(word[:1])
        sure = exact.next_terminals(word[:1])
        assert (set(allowed), may_stop) == (set(sure[0]), sure[1]) if decided else set(allowed) <= set(sure[0])


def weigh_edits(made, weights):
    return sum(getattr(weights, edit.kind) for edit in made)


class TestNearest:
    @given(some_words, some_words, weights)
    def test_edits_turn_one_word_into_the_other_for_the_least(self, word, other, weights):
        made = find_edits(word, other, weights)
        assert apply_edits(made, word) == other
        assert weigh_edits(made, weights) == distance(word, other, weights)
        assert [edit.position for edit in made] == sorted(edit.position for edit in made)

    def test_edits_in_words(self):
        assert str(Edit("insert", 2, new="x")) == "insert x at place 3"
        assert str(Edit("delete", 2, "x")) == "delete x at place 3"
        assert str(Edit("substitute", 2, "x", "y")) == "replace x at place 3 by y"

    @pytest.mark.parametrize("weight", [-1, float("inf"), float("nan")])
    def test_weights_are_numbers_from_zero(self, weight):
        with pytest.raises(ValueError, match="the weight of delete"):
            EditWeights(delete=weight)

    @given(
        limited_automata().map(lambda source: (source, None))
        | (limited_grammars() | tool_grammars()).map(lambda cfg: ((cfg,), short_words(cfg)))
        | limited_grammars().map(lambda cfg: ((PDA.from_cfg(cfg),), language(cfg, UP_TO))),
        some_words,
        weights,
    )
    @examples(150)
    def test_against_all_short_words(self, drawn, word, weights):
        source, short = drawn
        if short is None:
            pda, bounds = source
            short = [
                one for one in all_words(pda.terminals, UP_TO)
                if keeps(one, bounds, pda.terminals, pda.symbols) and pda.accepts(one)
            ]  # fmt: skip
        lookahead = Lookahead(*source)
        found = nearest(lookahead, word, weights)
        assume(found.decided)
        best = min((distance(word, one, weights) for one in short), default=float("inf"))
        assert found.distance <= best
        if found.word is None:
            assert found == Nearest(None)
            return
        assert lookahead.automaton.accepts(found.word)
        assert apply_edits(found.edits, word) == found.word
        assert weigh_edits(found.edits, weights) == found.distance
        assert found.distance == best or len(found.word) > UP_TO

    def test_limits_on_sums_and_lower_bounds(self):
        cfg = CFG.from_string("S -> a S | b S | c\na cost=2\nb cost=3\n")
        found = nearest(Lookahead(cfg, Limits(sums=(SumLimit("cost", 7, 7),))), ("a", "a", "a", "c"))
        assert (sorted(found.word), found.distance) == (["a", "a", "b", "c"], 1)
        found = nearest(Lookahead(cfg, Limits(at_least={"b": 2})), ("a", "a", "c"), EditWeights(substitute=5))
        assert (sorted(found.word), found.distance) == (["a", "a", "b", "b", "c"], 2)

    def test_moves_without_input_that_never_end(self):
        moves = [("p", None, "X", "p", ("X", "Y")), ("p", "a", "X", "p", ()), ("p", "c", "Y", "p", ())]
        pda = PDA([*moves, ("p", "b", "$", "q", ())], start="p", accepting=["q"], stack=("X", "$"))
        found = nearest(Lookahead(pda), tuple("aacb"))
        assert (found.distance, pda.accepts(found.word)) == (1, True)
        with quiet():
            cfg = CFG.from_string("S -> S N | S | a\nN -> b | ε | N N\n%limit 2 b")
        # All of the endlessly many stacks could lead to a word that is as near.
        assert nearest(Lookahead(cfg), ("c", "b", "b", "b"), max_states=500) == Nearest(None, decided=False)

    def test_no_word_at_all(self):
        assert nearest(Lookahead(CFG.from_string("S -> a b").with_limits(Limits({"a": 0}))), ("a",)) == Nearest(None)
        assert nearest(Lookahead(CFG([("S", ("S",))])), ("a",)) == Nearest(None)

    def test_unknown_symbols_long_words_and_other_automata(self):
        cfg = CFG.from_string("S -> a S b | c")
        found = nearest(Lookahead(cfg), ("x", "a", "y", "z", "b"))
        assert (found.distance, {"x", "y", "z"} & set(found.word)) == (3, set())
        assert nearest(Lookahead(cfg), ("a",) * 150 + ("c",) + ("b",) * 147).distance == 3
        assert nearest(Lookahead(Plain()), ("x",)).distance == 1

    def test_the_budget_ends_it_honestly(self):
        names = [f"t{number}" for number in range(12)]
        cfg = CFG([("S", (name, "S")) for name in names] + [("S", ())], limits=Limits(default=1))
        word = ("t0",) * 6 + ("t1",) * 6
        assert nearest(Lookahead(cfg), word, EditWeights(delete=3), max_states=5) == Nearest(None, decided=False)

    def test_limits_that_leave_many_choices(self):
        cfg = CFG.from_string("%limit 1\nS -> T | T S\nT -> " + " | ".join(f"t{n}" for n in range(20)))
        word = tuple(f"t{n * n % 17}" for n in range(30))
        found = nearest(Lookahead(cfg), word, max_states=5_000)
        assert (found.decided, found.distance) == (True, 30 - len(set(word)))


def check_differences(found, ours, theirs):
    """What was found is right for two sets of all words of at most ``UP_TO`` terminals."""
    for only, mine, others in ((found.only_one, ours, theirs), (found.only_other, theirs, ours)):
        apart = mine - others
        if only is not None and len(only) <= UP_TO:
            assert only in apart
            assert len(only) == min(map(len, apart))
        else:
            sure = UP_TO if found.up_to is None else min(found.up_to, UP_TO)
            assert not [word for word in apart if len(word) <= sure]
    for row in found.counts:
        if row.length <= UP_TO:
            assert row.one == sum(len(word) == row.length for word in ours)
            assert row.other == sum(len(word) == row.length for word in theirs)


class TestDifferences:
    @given(limited_grammars(), limited_grammars(), st.sampled_from([{"max_length": UP_TO}, {"max_places": 50}]))
    @examples(40)
    def test_grammars(self, one, other, options):
        found = differences(one, other, **options)
        assert found.up_to in (None, options.get("max_length", found.up_to)) or found.exact
        check_differences(found, short_words(one), short_words(other))

    @given(limited_automata(finite=True), automata(finite=True))
    @examples(60)
    def test_finite_automata_are_compared_without_a_bound(self, limited, other):
        one = as_automaton(limited[0], limited[1])
        found = differences(one, other)
        assert found.exact
        check_differences(found, set(words(one, UP_TO)), set(words(other, UP_TO)))

    def test_finite_languages(self):
        found = differences(
            CFG.from_string("%order forward\nS -> a S S | b\n%limit 2 a"),
            CFG.from_string("S -> b | a b b | a T\nT -> a b b b | b a b b"),
        )
        assert (found.equal, found.exact, found.up_to) == (True, True, None)
        assert [tuple(row) for row in found.counts] == [(1, 1, 1), (2, 0, 0), (3, 1, 1), (4, 0, 0), (5, 2, 2)]

    def test_infinite_languages_up_to_a_length(self):
        found = differences(CFG.from_string("S -> a S b | ε"), CFG.from_string("S -> a S b | a b | ε"))
        assert (found.equal, found.exact) == (True, False)
        assert found.up_to >= 40
        cfg = CFG.from_string("S -> a S | b S | c S | d S | ε\n%limit 3")
        few = differences(cfg, cfg.with_limits(Limits(default=4)), max_places=3)
        assert (few.equal, few.exact, few.up_to) == (True, False, 1)

    def test_the_same_rules_are_equal_however_large(self):
        cfg = CFG.from_string("%order forward\nS -> a S S | b S c | ε")
        found = differences(cfg, CFG.from_string(str(cfg) + '\na "A label"'), max_places=10)
        assert (found.equal, found.exact) == (True, True)
        numbers = "S -> a S | b\n%limit cost <= 3\na cost={}"
        found = differences(CFG.from_string(numbers.format(1)), CFG.from_string(numbers.format(2)))
        assert (found.only_one, found.only_other) == (("a", "a", "b"), None)

    def test_both_ways(self):
        one = PDA([("p", "a", None, "p"), ("p", "b", None, "q")], start="p", accepting=["q"])
        other = PDA([("p", "a", None, "p"), ("p", "c", None, "q")], start="p", accepting=["p", "q"])
        found = differences(one, other)
        assert (found.only_one, found.only_other, found.exact) == (("b",), (), True)
        assert differences(one, one, 0).equal
        with pytest.raises(ValueError, match="counts from 0"):
            differences(one, one, -1)
