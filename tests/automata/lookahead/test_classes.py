"""What limits count and leave, packed, against plain sums; least costs; what ways take."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead
from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN, least_cost, least_costs
from formal_llm.automata.lookahead.classes import Classes, FlowWays, find_least_taken, find_leaves, find_ways
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.models.limits import Bound
from formal_llm.automata.models.pda import LOOP
from tests.automata.lookahead.judging import pieces, search_of
from tests.oracles import all_words, language
from tests.strategies import LETTERS, choices, examples, grammars, limited_grammars, tool_grammars, walk

names = st.sampled_from("STUV")
rules = st.lists(st.tuples(names, st.integers(0, 4), st.lists(names, max_size=3)), max_size=8)
edges = st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.integers(0, 5), max_size=14)


class TestDerivations:
    @given(rules)
    def test_as_by_relaxing_every_rule(self, rules):
        costs = {}
        for _ in range(len(rules) + 1):
            for head, cost, body in rules:
                if all(name in costs for name in body):
                    whole = cost + sum(costs[name] for name in body)
                    costs[head] = min(whole, costs.get(head, whole))
        assert least_costs(rules) == costs

    def test_costs_of_any_size(self):
        doubling = [(number, 0, [number + 1] * 2) for number in range(3_000)]
        assert least_costs([*doubling, (3_000, 1, [])])[0] == 2**3_000


class TestWays:
    @given(edges, st.integers(0, 6), st.integers(0, 8))
    def test_as_by_relaxing_every_edge(self, edges, end, max_states):
        far = {0: 0}
        for _ in range(8):
            for (one, other), price in edges.items():
                if one in far:
                    far[other] = min(far[one] + price, far.get(other, INFINITE))

        def after(state):
            return [(price, other, 0) for (one, other), price in edges.items() if one == state]

        assert least_cost((0, 0, 0), after, lambda state: state == end, 100) == far.get(end, INFINITE)
        cut = least_cost((0, 0, 0), after, lambda state: state == end, max_states)
        assert cut in {far.get(end, INFINITE), UNKNOWN}

    def test_an_estimate_saves_states(self):
        visited = []

        def after(at):
            visited.append(at)
            return [(1, at + step, abs(9 - at - step)) for step in (-1, 1)]

        assert least_cost((0, 0, 9), after, lambda at: at == 9, 100) == 9
        assert visited == list(range(9))


def known(cfg, limits=None):
    """The flow grammar of a grammar under limits, and the symbol of its start symbol."""
    pda = PDA.from_cfg(cfg).with_limits(limits or Limits(default=1))
    grammar = FlowGrammar(pda, Counters(pda.bounds))
    return grammar, grammar.get_symbol(LOOP, cfg.start, LOOP)


class TestFindWays:
    def test_leaves_are_merged_into_those_who_lead_to_them(self):
        grammar, start = known(CFG.from_string("S -> A b S | c\nA -> a"))
        leaves = find_leaves(grammar)
        assert set(leaves.values()) == {"a", "b", "c"}
        ways = find_ways(grammar, leaves)[start.index]
        # S -> A b S: the move itself, A -> a and its match are two symbols of which only a and b are left to read.
        assert [(sorted(reads), children) for reads, children, _ in ways] == [(["b"], ways[0][1]), (["c"], ())]
        assert start.index in ways[0][1]

    def test_links_and_what_one_way_leads_to_are_merged_as_well(self):
        # Line is a link, and Day is used once. End is neither: two ways lead to it.
        grammar, start = known(CFG.from_string("S -> Day Line | c Line\nDay -> a | b\nLine -> End\nEnd -> S | d"))
        ways = find_ways(grammar, find_leaves(grammar))[start.index]
        assert sorted(reads for reads, _, _ in ways) == [("a",), ("b",), ("c",)]
        (end,) = {child for _, children, _ in ways for child in children}
        assert grammar.symbols[end].key[1] == "End"
        assert sorted(steps for _, _, steps in ways) == [3, 4, 4]

    @given(grammars())
    @examples(60)
    def test_each_takes_at_least_what_every_word_uses(self, cfg):
        grammar, start = known(cfg)
        places = {name: number for number, name in enumerate(cfg.terminals)}

        def takes(reads):
            return {places[name]: reads.count(name) for name in reads}

        ways = find_ways(grammar, find_leaves(grammar))
        least = find_least_taken(grammar.symbols, ways, takes)
        words = language(cfg, 4)
        for name, place in places.items():
            for word in words:
                assert least[start.index].get(place, 0) <= word.count(name)
        # A fixpoint: no way takes less than its symbol is said to.
        for index, group in ways.items():
            for reads, children, _ in group:
                total = takes(reads)
                for child in children:
                    for place, amount in least[child].items():
                        total[place] = total.get(place, 0) + amount
                assert all(least[index][place] <= total.get(place, 0) for place in least[index])

    def test_what_every_word_uses_is_found(self):
        cfg = CFG.from_string("S -> a T T | a a T c\nT -> b T | b")
        grammar, start = known(cfg)
        places = {"a": 0, "b": 1, "c": 2}
        least = find_least_taken(
            grammar.symbols,
            find_ways(grammar, find_leaves(grammar)),
            lambda reads: {places[name]: reads.count(name) for name in reads},
        )
        assert least[start.index] == {0: 1, 1: 1}


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


class TestClasses:
    @given(tool_grammars() | limited_grammars(), choices)
    @examples(80)
    def test_what_is_left_is_the_sum_over_interchangeable_terminals(self, cfg, picks):
        lookahead = Lookahead(cfg)
        classes, counters = search_of(lookahead).demands.classes, Counters(lookahead.bounds)
        now, word = walk(lookahead.automaton, picks)
        left = classes.left_of(pieces(lookahead, now)[1] or counters.remaining)
        assert left == classes.left_of(counters.remaining) - sum(
            classes.pack_need(counters.need.get(name, 0)) for name in word
        )
        assert left & classes.guard == classes.guard
        upper = [bound for bound in lookahead.bounds if bound.most is not None]
        used = sum(bound.weights.get(name, 0) for bound in upper for name in word)
        assert sum(classes.amounts(left)) == sum(bound.most for bound in upper) - used
        assert classes.amount(left, classes.total) == sum(classes.amounts(left))
        assert classes.left_of(classes.some_remaining(left)) == left

    @given(tool_grammars(), choices)
    @examples(60)
    def test_what_is_left_covers_just_what_it_is_enough_for(self, cfg, picks):
        lookahead = Lookahead(cfg)
        classes = search_of(lookahead).demands.classes
        left = classes.left_of(pieces(lookahead, walk(lookahead.automaton, picks)[0])[1])
        for name in cfg.terminals:
            one = classes.pack(classes.amounts_taken([name]))
            for times in (0, 1, 2, 3, 40, 1 << 20):
                taken = [amount * times for amount in classes.amounts(one)]
                enough = all(have >= take for have, take in zip(classes.amounts(left), taken, strict=True))
                assert classes.covers(left, one * times) == enough

    @given(tool_grammars() | limited_grammars(), choices)
    @examples(60)
    def test_what_lower_bounds_of_terminals_need(self, cfg, picks):
        lookahead = Lookahead(cfg)
        classes = search_of(lookahead).demands.classes
        _, remaining, needed = pieces(lookahead, walk(lookahead.automaton, picks)[0])
        left, total = classes.left_of(remaining), [0] * classes.total
        for bound, _, due in classes.counters.open_bounds(needed):
            for field, amount in classes.takes.get(bound.terminal, {}).items() if bound.terminal else ():
                total[field] += due * amount
        enough = all(have >= need for have, need in zip(classes.amounts(left), total, strict=True))
        for _ in range(2):  # the second answer is remembered
            assert classes.covers_due(left, needed) == enough

    @given(tool_grammars() | limited_grammars())
    @examples(60)
    def test_each_symbol_takes_and_pays_within_what_its_ways_do(self, cfg):
        demands = search_of(Lookahead(cfg)).demands
        flow, symbols = demands.flow, demands.grammar.symbols
        for index, ways in flow.ways.items():
            if index in flow.leaves or index not in flow.least:
                continue
            assert (flow.least[index] > 0) == (not symbols[index].is_free)
            for way in ways:
                if all(child in flow.least for child in way.children):
                    taken = way.need + sum(flow.least[child] for child in way.children)
                    for field in range(flow.classes.total + 1):
                        amount = flow.classes.amount(flow.least[index], field)
                        assert amount <= flow.classes.amount(taken, field)
                for bound, shift, _ in flow.counters.lower:
                    paid = sum(weight for at, weight in flow.counters.list_payments(way.reads) if at == shift)
                    paid += sum(flow.most_paid[child].get(shift, 0) for child in way.children)
                    assert min(paid, bound.least) <= flow.most_paid[index].get(shift, 0)

    def test_terminals_are_exchanged_where_nothing_tells_them_apart(self):
        def fields(text: str, *, counting: bool = False) -> set[frozenset[str]]:
            grammar = search_of(Lookahead(CFG.from_string(f"%limit 1\n{text}"))).demands.grammar
            leaves = find_leaves(grammar)
            classes = Classes(grammar.counters, find_ways(grammar, leaves), leaves, counting=counting)
            alike = {}
            for name, field in classes.uses.items():
                alike.setdefault(field, set()).add(name)
            return {frozenset(names) for names in alike.values()}

        assert fields("S -> a S | b S | c") == {frozenset("ab"), frozenset("c")}
        assert fields("S -> a S | b S | c\n%limit kg <= 9\na kg=1\nb kg=2") == set(map(frozenset, "abc"))
        assert fields("S -> a S | b S | c\n%require 1 a") == set(map(frozenset, "abc"))
        twice = "S -> T a | a T | b T | c\nT -> x"
        assert fields(twice) == {frozenset("ab"), frozenset("c"), frozenset("x")}
        assert fields(twice, counting=True) == set(map(frozenset, "abcx"))

    def test_only_one_of_ways_that_are_alike_is_kept(self):
        lookahead = Lookahead(CFG.from_string("%limit 1\nS -> a S | b S | c"))
        grammar, start = search_of(lookahead).demands.grammar, lookahead.uncounted(lookahead.automaton.start())
        ((symbol, _),) = grammar.resolve_top(start.state, start.stack.top, start.stack.rest)
        ways = [way.reads for way in FlowWays(grammar, exchange=True).ways[symbol.index]]
        assert ("b",) not in ways or ("a",) not in ways
        assert len({*FlowWays(grammar, exchange=False).classes.uses.values()}) == 3
