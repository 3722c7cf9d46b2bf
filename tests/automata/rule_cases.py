"""Random rules of every kind under limits of every kind, each with all its words, found by trying."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, BehaviourState, Limits, Source, SumLimit, Symbol, constraint
from formal_llm.automata import Word
from formal_llm.automata.models.quantities import TIME, Amount
from formal_llm.errors import NotationError
from tests import oracles
from tests.automata import formulas, schedules
from tests.automata.charts import flowcharts
from tests.automata.messages import quiet
from tests.strategies import LETTERS, amounts, automata, direct_automata, limits, productions

#: All rules bound the number of terminals by this, with a sum; so all their words can be listed.
LONGEST = 4
#: The kinds of rules.
KINDS = ("grammar", "automaton", "flowchart", "behaviour", "product")


@dataclass(frozen=True)
class RuleCase:
    """Rules, and all their words.

    Attributes:
        rules: the rules.
        plain: the same as an automaton that keeps its limits as they are written.
        free: their words of at most :data:`LONGEST` terminals, limits aside.
        forward: whether words run from the first step to the last.
    """

    rules: Source
    plain: PDA
    free: frozenset[Word]
    forward: bool

    @cached_property
    def words(self) -> frozenset[Word]:
        """All their words."""
        return self.kept(self.plain.limits)

    def kept(self, bounds: Limits) -> frozenset[Word]:
        """The free words that keep some limits."""
        return frozenset(
            word
            for word in self.free
            if oracles.keeps(word, bounds, self.plain.terminals, self.plain.symbols)
            and (
                not bounds.times
                or schedules.keeps(bounds.times, self.plain.symbols, word[:: 1 if self.forward else -1])
            )
        )

    @property
    def probes(self) -> list[Word]:
        """Words to ask about: those of the language, those that break a limit, and some others."""
        names = sorted(self.plain.terminals)[:4]
        others = itertools.chain.from_iterable(itertools.product(names, repeat=size) for size in range(4))
        return sorted({*self.words, *list(self.free)[:40], *itertools.islice(others, 40)}, key=lambda w: (len(w), w))


@st.composite
def rule_cases(draw: st.DrawFn, kind: str) -> RuleCase:
    """Rules of a kind."""
    if kind == "grammar":
        return _of_grammar(draw)
    if kind == "product":
        return _product(draw)
    if kind == "behaviour":
        return _of_behaviour(draw)
    if kind == "flowchart":
        chart = draw(flowcharts(texts=st.sampled_from(("", "yes", "no"))))
        assume(chart.terminals)
        numbers, bounds = _limited(draw, tuple(chart.terminals)[:12], chart.terminals)
        rules: Any = replace(chart, numbers=numbers, limits=bounds)
        return RuleCase(rules, rules.pda(), _accepted(chart.pda()), True)
    pda = draw(automata() | automata(finite=True) | direct_automata())
    assume(pda.terminals)
    numbers, bounds = _limited(draw, tuple(pda.terminals), pda.terminals)
    order = draw(st.sampled_from(("forward", "prefix")))
    made = PDA(
        pda.transitions, start=pda.start_state, accepting=pda.accepting_states, stack=pda.start_stack,
        symbols=_symbols(numbers), limits=bounds, order=order,
    )  # fmt: skip
    return RuleCase(made, made, _accepted(pda), order != "prefix")


def _of_grammar(draw: st.DrawFn) -> RuleCase:
    plain = CFG(draw(productions()))
    assume(plain.terminals)
    numbers, bounds = _limited(draw, tuple(plain.terminals), plain.terminals)
    order = draw(st.sampled_from(("prefix", "forward")))
    cfg = CFG(plain.productions, plain.start, _symbols(numbers), bounds, order)  # type: ignore[arg-type]
    automaton = PDA.from_cfg(cfg).with_limits(cfg.limits)
    return RuleCase(cfg, automaton, frozenset(oracles.language(plain, LONGEST)), order == "forward")


def _product(draw: st.DrawFn) -> RuleCase:
    one, tree = _of_grammar(draw), draw(formulas.trees(LETTERS, leaves=4))
    allowed = {word for word in oracles.all_words(LETTERS, LONGEST) if formulas.holds(tree, word)}
    assume(allowed)
    assert isinstance(one.rules, CFG)
    try:
        with quiet():
            automaton = one.rules & constraint(formulas.text_of(tree), LETTERS)
    except NotationError:  # no single terminal satisfies what is inside (always ...)
        assume(False)
    return RuleCase(automaton, automaton, one.free & allowed, one.forward)


def _of_behaviour(draw: st.DrawFn) -> RuleCase:
    tree = draw(formulas.trees(LETTERS, leaves=4))
    free = {word for word in oracles.all_words(LETTERS, LONGEST) if formulas.holds(tree, word)}
    assume(free)
    numbers, bounds = _limited(draw, LETTERS, LETTERS)
    states = [BehaviourState(name, numbers=numbers[name]) for name in LETTERS]
    try:
        behaviour = Behaviour("b", states, formulas.made(tree), bounds)
    except ValueError:  # no single state satisfies what is inside (always ...)
        assume(False)
    return RuleCase(behaviour, behaviour.pda, frozenset(free), True)


def _limited(
    draw: st.DrawFn, named: tuple[str, ...], terminals: Iterable[str]
) -> tuple[dict[str, dict[str, Any]], Limits]:
    """Numbers of terminals, and limits of all kinds that name some of them; each kind may be missing."""
    numbers: dict[str, dict[str, Any]] = {name: {"size": 1} for name in terminals}
    for name, price in draw(st.dictionaries(st.sampled_from(named), amounts, max_size=2)).items():
        numbers[name]["cost"] = price
    priced = any("cost" in row for row in numbers.values())
    bounds = draw(st.just(Limits()) | limits(named, ("cost",) if priced else ()))
    bounds &= Limits(sums=(SumLimit("size", LONGEST, draw(st.integers(0, 2))),))
    if len(named) >= len(schedules.NAMES) and draw(st.booleans()):
        table, symbols = draw(schedules.schedules())
        names = dict(zip(schedules.NAMES, named, strict=False))
        for name in numbers:
            numbers[name]["time"] = Amount(0, TIME)
        numbers |= {names[n]: {**numbers[names[n]], **symbols[n].numbers} for n in schedules.NAMES}
        bounds &= Limits(times=table.renamed(names))
    return numbers, bounds


def _symbols(numbers: Mapping[str, Mapping[str, Any]]) -> dict[str, Symbol]:
    return {name: Symbol(numbers=row) for name, row in numbers.items()}


def _accepted(pda: PDA) -> frozenset[Word]:
    found = oracles.accepted(pda, LONGEST)
    assume(found is not None)
    assert found is not None
    return frozenset(found)
