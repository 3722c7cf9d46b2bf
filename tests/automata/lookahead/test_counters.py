"""Counters of bounds, packed, against plain sums."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Limits
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.models.limits import Bound
from tests.oracles import all_words
from tests.strategies import LETTERS

weights = st.dictionaries(st.sampled_from(LETTERS), st.integers(1, 5), min_size=1)
uppers = st.builds(lambda weights, most: Bound(weights, 0, most, "upper"), weights, st.integers(0, 9))
lowers = st.builds(lambda weights, least: Bound(weights, least, None, "lower"), weights, st.integers(1, 9))
bounds = st.lists(uppers | lowers, max_size=5)
words = st.lists(st.sampled_from(LETTERS), max_size=8)


def total(bound, word):
    return sum(bound.weights.get(name, 0) for name in word)


def still_due(bound, word):
    return max(0, bound.least - total(bound, word))


class TestAgainstSums:
    @given(bounds, words)
    def test_upper_bounds(self, bounds, word):
        counters = Counters(bounds)
        remaining, read = counters.remaining, []
        for name in word:
            fits = all(total(b, [*read, name]) <= b.most for b in bounds if b.most is not None)
            assert counters.can_afford(name, remaining) == fits
            assert counters.can_afford("of no bound", remaining)
            if fits:
                remaining -= counters.need.get(name, 0)
                read.append(name)
        fields = zip(counters.fields, bounds, strict=True)
        for (shift, mask), bound in fields:
            assert bound.most is None or remaining >> shift & mask == bound.most - total(bound, read)

    @given(bounds)
    def test_a_field_holds_what_a_bound_allows_and_one_more_which_it_never_pays(self, bounds):
        counters = Counters(bounds)
        for (shift, mask), bound in zip(counters.fields, bounds, strict=True):
            for name, weight in bound.weights.items() if bound.most is not None else ():
                assert counters.need[name] >> shift & mask == min(weight, bound.most + 1)

    @given(bounds, words)
    def test_lower_bounds(self, bounds, word):
        counters = Counters(bounds)
        needed = counters.pay_all(word, counters.needed)
        open_bounds = [(b, still_due(b, word)) for b in bounds if b.most is None and still_due(b, word)]
        assert [(bound, amount) for bound, _, amount in counters.open_bounds(needed)] == open_bounds
        assert counters.sum_of_needs(needed) == sum(amount for _, amount in open_bounds)
        assert (needed == 0) == (not open_bounds)

    @given(bounds, words)
    def test_what_is_sure_to_come_is_as_good_as_read(self, bounds, word):
        counters = Counters(bounds)
        paid = 0
        for name in word:
            paid = counters.add_payment(name, paid)
        assert counters.subtract_paid(counters.needed, paid) == counters.pay_all(word, counters.needed)
        for read in (word, word[::2], ["a", *word]):
            needed = counters.pay_all(read, counters.needed)
            assert counters.subtract_paid(needed, paid) == counters.pay_all(word, needed)

    @given(lowers)
    def test_reads_of_one_bound(self, bound):
        """As many as if each were the one that counts most; of a bound that nothing counts for, each counts one."""
        counters = Counters([bound])
        assert counters.least_reads(counters.needed) == ceil(bound.least / max(bound.weights.values()))
        nothing = Counters([Bound({}, bound.least, None, "lower")])
        assert nothing.least_reads(nothing.needed) == bound.least

    @given(st.lists(lowers, max_size=3))
    def test_reads_never_overrates(self, bounds):
        counters = Counters(bounds)
        enough = [word for word in all_words(LETTERS, 5) if not counters.pay_all(word, counters.needed)]
        if enough:
            assert counters.least_reads(counters.needed) <= min(map(len, enough))


class TestPacking:
    def test_many_bounds_of_different_sizes_do_not_run_into_each_other(self):
        names = [f"t{number}" for number in range(40)]
        most = {name: 2**number % 1000 for number, name in enumerate(names)}
        counters = Counters(Limits(most).bounds(names, {}))
        remaining = counters.remaining
        for name in names:
            for _ in range(most[name]):
                assert counters.can_afford(name, remaining)
                remaining -= counters.need[name]
            assert not counters.can_afford(name, remaining)
        assert not any(counters.can_afford(name, remaining) for name in names)

    def test_without_bounds_everything_is_afforded(self):
        counters = Counters(())
        assert counters.can_afford("a", 0)
        assert (counters.pay_for("a", 0), counters.least_reads(0), counters.sum_of_needs(0)) == (0, 0, 0)
