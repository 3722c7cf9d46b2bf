"""The commutative grammar of an automaton, against words written out."""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import PDA, Limits, Lookahead, constraint
from formal_llm.automata.languages.prefixes import ConfigurationSets
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import ACCEPTING, LENGTH, FlowGrammar
from formal_llm.automata.models.automaton import Stack
from formal_llm.automata.models.pda import LOOP
from formal_llm.automata.models.product import constrained
from tests.oracles import language
from tests.strategies import (
    LETTERS,
    choices,
    direct_automata,
    examples,
    grammars,
    limited_automata,
    limited_grammars,
    walk,
)

FORMULAS = [
    "(eventually a)",
    "(not (eventually b))",
    "(-> (eventually a) (eventually (next b (until any c))))",
    "(not (eventually (next a b)))",
    "(eventually (next c (until any a)))",
    "(until_0_2 any (next b (until any empty)))",
]


def flow(cfg, limits=None):
    pda = PDA.from_cfg(cfg).with_limits(cfg.limits if limits is None else limits)
    return FlowGrammar(pda, Counters(pda.bounds))


class TestSymbols:
    @given(limited_grammars())
    @examples(80)
    def test_the_shortest_words_of_each_nonterminal(self, cfg):
        grammar = flow(cfg)
        upper = [bound for bound in grammar.counters.bounds if bound.most is not None]
        limited = {name for bound in upper for name in bound.weights}
        banned = {name for bound in upper for name, weight in bound.weights.items() if weight > bound.most}
        for head in cfg.nonterminals:
            symbol = grammar.get_symbol(LOOP, head, LOOP)
            words = language(cfg.with_start(head), 4)
            for length, without in ((symbol.least_length, banned), (symbol.free_length, limited)):
                found = [len(word) for word in words if without.isdisjoint(word)]
                if found:
                    assert length // LENGTH == min(found)
                else:
                    assert length == INFINITE or length // LENGTH > 4


class TestStacks:
    @pytest.mark.parametrize("first", [True, False])
    def test_one_symbol_may_be_open(self, first):
        grammar = FlowGrammar(
            PDA([("p", "a", "X", end) for end in "pq"], start="p", accepting="q", stack="X"), Counters(())
        )
        exits = grammar.exit_states("p", "X")
        assert not first or grammar.has_open_symbols
        grammar.get_symbol("p", "X", exits[1])
        assert len(grammar.symbols) == 1 and grammar.has_open_symbols


class SlowCosts:
    """The cheapest ways to pop a symbol and to accept before, by going over all transitions until nothing changes.

    Args:
        pda: the automaton.
        forbidden: the terminals that may not be read.
        length: what reading a terminal costs, beside 1 for each transition.
    """

    def __init__(self, pda, forbidden, length):
        self.pops, self.accepts = {}, {(state, top): 0 for state in pda.accepting_states for top in [None, *tops(pda)]}
        before = None
        while before != (before := (dict(self.pops), dict(self.accepts))):
            for move in pda.transitions:
                if move.read in forbidden:
                    continue
                cost = 1 + length * (move.read is not None)
                for top in [None, *tops(pda)] if move.pop is None else [move.pop]:
                    pushed = (*move.push, top) if move.pop is None else move.push
                    reached, accepted = self.work_off(move.target, pushed)
                    self.note(self.accepts, (move.state, top), cost + accepted)
                    for end, more in reached.items() if top is not None else ():
                        self.note(self.pops, (move.state, top, end), cost + more)

    def note(self, known, key, cost):
        if cost < known.get(key, INFINITE):
            known[key] = cost

    def work_off(self, state, symbols):
        """(for each state in which all symbols may be gone the cost, the cost of accepting before)."""
        reached, accepted = {state: 0}, INFINITE
        for symbol in symbols:
            accepted = min(
                [accepted, *(cost + self.accepts.get((at, symbol), INFINITE) for at, cost in reached.items())]
            )
            after = {}
            for (at, top, end), more in self.pops.items():
                if top == symbol and at in reached:
                    self.note(after, end, reached[at] + more)
            reached = after
        return reached, accepted

    def of(self, key):
        """The cost of a flow symbol."""
        state, top, target = key
        return self.accepts.get((state, top), INFINITE) if target is ACCEPTING else self.pops.get(key, INFINITE)


def tops(pda):
    pushed = {symbol for move in pda.transitions for symbol in move.push}
    return sorted(pushed | {*pda.start().stack} | {move.pop for move in pda.transitions if move.pop is not None})


class TestCosts:
    """All that is known of symbols before any search, of automata of any form."""

    @given(limited_automata() | direct_automata().map(lambda pda: (pda, Limits())), choices)
    @examples(80)
    def test_as_by_going_over_all_transitions(self, source, picks):
        pda, limits = source
        pda = pda.with_limits(pda.limits & limits)
        grammar = FlowGrammar(pda, Counters(pda.bounds))
        state, stack = Lookahead(pda).uncounted(walk(Lookahead(pda).automaton, picks)[0])
        levels = [[symbol for symbol, _ in ways] for ways in grammar.walk_stack(state, stack)]
        upper = [bound for bound in pda.bounds if bound.most is not None]
        banned = {name for bound in upper for name, weight in bound.weights.items() if weight > bound.most}
        limited = {name for bound in upper for name in bound.weights}
        for name, forbidden, length in (
            ("least_steps", banned, 0), ("least_length", banned, LENGTH),
            ("free_steps", limited, 0), ("free_length", limited, LENGTH),
        ):  # fmt: skip
            slow = SlowCosts(pda, forbidden, length)
            for symbol in grammar.symbols:
                assert getattr(symbol, name) == slow.of(symbol.key)
        for symbol in grammar.symbols:
            ended = [way for way in symbol.ways if all(grammar.symbols[c].least_steps < INFINITE for c in way.children)]
            assert [*grammar.live_ways(symbol)] == [way for _, way in grammar.live_moves(symbol)] == ended
        # From the top of the stack down some way is left, where the run may accept at all, limits aside.
        whole = SlowCosts(pda, (), 0).work_off(state, (*stack, None))[1]
        assert all(levels) == (whole < INFINITE)

    @given(limited_automata(), choices)
    @examples(40)
    def test_what_serves_a_lower_bound_may_occur(self, source, picks):
        """A symbol is due just where a bound's terminal is read on some way down from it."""
        pda = source[0].with_limits(source[0].limits & source[1])
        grammar = FlowGrammar(pda, Counters(pda.bounds))
        state, stack = Lookahead(pda).uncounted(walk(Lookahead(pda).automaton, picks)[0])
        for _ in grammar.walk_stack(state, stack):
            pass
        due = {name for bound in pda.bounds if bound.most is None for name in bound.weights}
        for symbol in grammar.symbols:
            below = [grammar.symbols[index] for index in grammar.reachable_symbols([symbol.index])]
            read = {way.read for one in below for way in grammar.live_ways(one)}
            assert symbol.due == (not due.isdisjoint(read))
            assert {*grammar.detours_of(symbol.index)} == read - {None}


def make_exits(seed):
    """An automaton that pops most symbols in several states and accepts in the midst of stacks; a state, a stack."""
    pick = random.Random(seed)
    pushed = ["", "", "", "X", "Y", "XY", "YX", "XXY"]
    moves = [
        (pick.choice("pqr"), pick.choice("ab-"), pick.choice("XXY-"), pick.choice("pqr"), (*pick.choice(pushed),))
        for _ in range(pick.randint(6, 12))
    ]
    moves = [(at, read.strip("-") or None, top.strip("-") or None, end, push) for at, read, top, end, push in moves]
    accepting = pick.sample("pqr", pick.choice([0, 1, 1, 2]))
    pda = PDA(moves, start="p", accepting=accepting, stack="XY", alphabet="ab", check=False)
    return pda, pick.choice("pqr"), Stack.of(*pick.choices("XY", k=pick.randint(0, 4)))


#: Drawn by numbers, since small ones, which are tried most, have few exits.
many_exits = st.integers(0, 1 << 32).map(make_exits)


def ask_everything(pda):
    """A flow grammar that knows all symbols which any stack may ask for."""
    grammar = FlowGrammar(pda, Counters(pda.bounds))
    for state in "pqr":
        for top in (None, "X", "Y"):
            for target in grammar.target_states(state, top):
                grammar.get_symbol(state, top, target)
    return grammar


def endings(pda, key, most):
    """(terminals read, moves) of all runs that a flow symbol is for, of up to ``most`` moves, by making the runs."""
    state, top, target = key
    inside = target is ACCEPTING
    begin = (state, (top,) if top is not None else (), (), 0)
    todo, seen, found = [begin], {begin}, set()
    while todo:
        at, stack, read, moves = todo.pop()
        if top is not None and not stack:  # popped
            if at == target:
                found.add((read, moves))
            continue
        if inside and at in pda.accepting_states:
            found.add((read, moves))
        for move in pda.transitions if moves < most else ():
            if move.state == at and (move.pop is None or stack[:1] == (move.pop,)):
                rest = stack if move.pop is None else stack[1:]
                after = tuple(sorted((*read, move.read))) if move.read is not None else read
                following = (move.target, (*move.push, *rest), after, moves + 1)
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
    return found


def worked_off(grammar, most):
    """For each flow symbol (terminals read, moves) of all its completions of up to ``most`` moves, by its ways."""
    found = {symbol.index: set() for symbol in grammar.symbols}
    before = -1
    while before < (before := sum(map(len, found.values()))):
        for symbol in grammar.symbols:
            for way in symbol.ways:
                made = {(() if way.read is None else (way.read,), way.moves)}
                for child in way.children:
                    made = {
                        (tuple(sorted(one + other)), moves + more)
                        for one, moves in made
                        for other, more in found[child]
                        if moves + more <= most
                    }
                found[symbol.index] |= made
    return found


class TestRuns:
    """Automata with several exits, and their runs."""

    @given(many_exits, st.booleans())
    @examples(60)
    def test_ways_are_what_runs_do(self, source, banned):
        pda, _, _ = source
        grammar = ask_everything(pda.with_limits(Limits({"b": 0} if banned else {})))
        found = worked_off(grammar, 4)
        for symbol in grammar.symbols:
            runs = endings(pda, symbol.key, 4)
            assert found[symbol.index] == {(read, moves) for read, moves in runs if not banned or "b" not in read}

    @given(many_exits)
    @examples(60)
    def test_the_top_is_done_with_in_ways_after_which_the_rest_can_be(self, source):
        pda, state, stack = source
        grammar, slow = FlowGrammar(pda, Counters(())), SlowCosts(pda, (), 0)
        for rest in (stack, stack.rest, *([stack.rest.rest] if stack.depth > 1 else [])):
            for top in [None, *tops(pda)] if not rest.depth else tops(pda):
                targets = {end for at, name, end in slow.pops if (at, name) == (state, top)}
                if slow.accepts.get((state, top), INFINITE) < INFINITE:
                    targets.add(ACCEPTING)
                assert {*grammar.target_states(state, top)} == targets
                assert {target for _, target in grammar.resolve_top(state, top)} == targets
                ways = grammar.resolve_top(state, top, rest)
                assert all(symbol.key == (state, top, target) for symbol, target in ways)
                found = {target for _, target in ways}
                ends = {one for one in targets if one is ACCEPTING or slow.work_off(one, (*rest, None))[1] < INFINITE}
                assert found == (ends if len(targets) > 1 or not rest.depth else targets)

    def test_deep_stacks_with_several_exits(self):
        """Which of the states below each symbol lead to an end is found once for each, not once for each run."""
        pops = [
            ("p", "a", "X", "p"),
            ("p", "b", "X", "q"),
            ("q", "a", "X", "q"),
            ("q", "b", "Y", "r"),
            ("p", "c", "Z", "r"),
        ]
        grammar = FlowGrammar(PDA(pops, start="p", accepting="r", stack="XYZ"), Counters(()))
        for bottom, ends in (("Y", {"p", "q"}), ("Z", {"p"}), ("X", set())):
            rest = Stack.of(*"X" * 3000, bottom)
            assert {target for _, target in grammar.resolve_top("p", "X", rest)} == ends

    @given(many_exits)
    @examples(60)
    def test_symbols_are_known_whatever_was_asked_before(self, source):
        pda, _, _ = source
        grammar, slow = FlowGrammar(pda, Counters(())), SlowCosts(pda, (), LENGTH)
        for key in slow.pops:
            assert grammar.get_symbol(*key).least_length == slow.pops[key]
        for state, top in slow.accepts:
            assert grammar.get_symbol(state, top, ACCEPTING).least_length == slow.accepts[state, top]
        for symbol in grammar.symbols:
            assert symbol.least_length == slow.of(symbol.key)

    @given(many_exits)
    @examples(40)
    def test_detours_are_what_the_cheapest_run_with_the_terminal_takes_more(self, source):
        pda, _, _ = source
        grammar = ask_everything(pda)
        least = SlowCosts(pda, (), LENGTH)
        for name in pda.terminals:
            using = SlowCosts(noting(pda, name), (), LENGTH)
            for symbol in grammar.symbols:
                at, top, target = symbol.key
                cost = using.of(((at, False), top, target if target is ACCEPTING else (target, True)))
                found = grammar.detours_of(symbol.index).get(name)
                assert found == (None if cost == INFINITE else (cost - least.of(symbol.key)) // LENGTH)


def noting(pda, name):
    """The automaton with states that note whether a terminal was read; it accepts where it was."""
    moves = [
        replace(move, state=(move.state, noted), target=(move.target, noted or move.read == name))
        for move in pda.transitions for noted in (False, True)
    ]  # fmt: skip
    accepting = [(state, True) for state in pda.accepting_states]
    return SimpleNamespace(transitions=moves, accepting_states=accepting, start=pda.start)


class TestDetours:
    @given(grammars(selections=False))
    @examples(40)
    def test_no_word_with_the_terminal_is_shorter(self, cfg):
        grammar = flow(cfg, Limits())
        symbol = grammar.get_symbol(LOOP, cfg.start, LOOP)
        detours = grammar.detours_of(symbol.index)
        for word in language(cfg, 4):
            for name in word:
                assert symbol.least_length // LENGTH + detours[name] <= len(word)
        for name in cfg.terminals:
            if lengths := [len(word) for word in language(cfg, 4) if name in word]:
                # Moves are counted, too, so one terminal may be lost in rounding down.
                assert min(lengths) - 1 <= symbol.least_length // LENGTH + detours[name] <= min(lengths)


class TestManyStates:
    """A product of constraints, which may pop a symbol in very many states."""

    @given(grammars(), st.lists(st.sampled_from(FORMULAS), min_size=1, max_size=3, unique=True))
    @examples(30)
    def test_products_are_decided_as_words_written_out(self, cfg, formulas):
        limits = Limits(default=2)
        pda = constrained(PDA.from_cfg(cfg), [constraint(formula, LETTERS) for formula in formulas])
        words = [word for word in language(cfg, 5) if pda.accepts(word) and all(word.count(a) < 3 for a in LETTERS)]
        lookahead = Lookahead(pda, limits)
        for cut in {word[:n] for word in words for n in range(len(word) + 1)}:
            assert ConfigurationSets(lookahead).is_viable(cut) is not False
        if words:
            assert lookahead.shortest() == min(map(len, words))
        assert lookahead.completable().value != "no" or not words
