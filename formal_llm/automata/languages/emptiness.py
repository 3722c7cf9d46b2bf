"""Why nothing can be completed: the rules that clash, and those to drop.

A rule is a part that was added to a grammar or automaton and can be dropped: a constraint of a product, or a limit.
Dropping rules only adds words. A *clash* is a set of rules that together leave no word, all of them needed for that. A
*remedy* is a set of rules without which there is a word, so it contains one rule of every clash.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable
from typing import Generic, NamedTuple, TypeVar, cast

from formal_llm.automata.lookahead.cheapest import INFINITE, least_costs
from formal_llm.automata.lookahead.limited import LimitedAutomaton, SourceAutomaton, as_automaton, count_clock_states
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.verdicts import SEARCH_TIME, START, TIME, TRIES
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limits import Bound, Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import constrained
from formal_llm.automata.models.rules import Source
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.errors import Undecided

#: The maximum number of sets of rules to remember in the search for a smallest remedy.
_SETS = 20_000
#: The maximum number of tries for a smallest remedy; after that, one from which no rule can be put back is named.
_TRIES = 60
#: The states of a clock that are looked through in about a second.
_CLOCK_STATES = 10_000


class WhyEmpty(NamedTuple):
    """The reason why an automaton has no word.

    Attributes:
        symbols: the grammar symbols that cannot be completed, if the grammar itself has no word.
        limits: the limits of a clash, as lines of the grammar notation or the sentences that they were written as.
        constraints: the constraints of the same clash, by name; a rule about order by its text.
        remedy: a smallest set of limits and constraints without which there is a word.
        decided: whether the search time sufficed. If not, some of the named rules may
            have no part in a clash, and the remedy may be larger than needed, or missing.
    """

    reason: str
    symbols: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()
    decided: bool = True


def why_empty(
    automaton: Source, *, max_states: int = 20_000, search_time: float | None = START * SEARCH_TIME
) -> WhyEmpty:
    """Explain why an automaton without any word has none.

    Rules are dropped one by one while the rest still allows no word (deletion filter); one for which lookahead cannot
    determine that is kept. A smallest remedy contains a rule of every clash, so the rules of one clash after the other
    are removed in turn, fewest first (the hitting-set tree of Reiter 1987).

    Args:
        automaton: one without any word.
        max_states: the budget of each question to lookahead.
        search_time: the search time for all these questions together, in seconds; None for no bound. Rules that
            are not examined by then are kept.
    """
    rules = RuleSet(as_automaton(automaton), max_states, search_time)
    clashing = rules.find_clash()
    if clashing:
        sure = not rules.out_of_time
        way_out = rules.find_remedy(clashing)
        limits = tuple(rules.name_rules(rule for rule in clashing if rules.is_limit(rule)))
        constraints = tuple(rules.name_rules(rule for rule in clashing if not rules.is_limit(rule)))
        kind = "limits" if not constraints else "constraints" if not limits else "rules"
        subject = "no plan keeps" if len(clashing) == 1 else f"these {kind} clash:"
        reason = f"{subject} {'; '.join(map(rules.describe_rule, clashing))}"
        # If a single rule is in the way, dropping it is obviously the remedy.
        if way_out and (way_out != clashing or len(clashing) > 1):
            reason += f"; there is a plan without {' and '.join(map(rules.describe_rule, way_out))}"
        if not sure:
            reason += "; fewer of them may do so (the search time was over)"
        elif rules.out_of_time and not way_out:
            reason += "; what to leave out was not found within the search time"
        return WhyEmpty(reason, (), limits, constraints, tuple(rules.name_rules(way_out)), not rules.out_of_time)
    cfg = rules.base.cfg if isinstance(rules.base, PDA) else None
    if cfg is not None and cfg.start not in cfg.productive:
        stuck = tuple(name for name in cfg.nonterminals if name in cfg.reachable and name not in cfg.productive)
        return WhyEmpty(f"no word can be derived from {', '.join(stuck)}", stuck)
    return WhyEmpty("no run of the automaton accepts")


#: The steps of a plan that is tried before it is asked if there is one.
_SHORT = 100


def why_no_plan(rules: Source) -> WhyEmpty | None:
    """Explain why rules that were just read allow no plan; None if they allow one or that is not decided soon.

    Every notation uses this to refuse a text whose rules, limits included, allow no plan. As values such rules
    are legal, and planning reports the problem. Nothing is decided where a clock has so many moments that it takes
    longer than a second.
    """
    if count_clock_states(rules) > _CLOCK_STATES:
        return None
    if isinstance(rules, CFG):
        word = _spell_short_word(rules)
        if word is not None and PDA.from_cfg(rules).with_limits(rules.limits).keeps_limits(word):
            return None
    try:
        automaton = as_automaton(rules)
        if isinstance(automaton, PDA) and not automaton.uses_stack and not automaton.bounds:
            after: dict[State, list[State]] = {}
            for one in automaton.transitions:
                after.setdefault(one.state, []).append(one.target)
            reached = find_reachable([automaton.start_state], lambda state: after.get(state, ()))
            possible = not automaton.accepting_states.isdisjoint(reached)
        else:
            lookahead = Lookahead(automaton)
            with lookahead.work.limit_seconds(START * SEARCH_TIME):
                possible = lookahead.completable().possible
    except Undecided:  # the clock shows too many times
        return None
    return None if possible else why_empty(automaton)


def _spell_short_word(cfg: CFG) -> tuple[str, ...] | None:
    """Return the word of a smallest derivation, which often keeps the limits; None where it is long."""
    rules = [(p.head, 1, [name for name in p.body if name not in cfg.terminals]) for p in cfg.expanded]
    costs = least_costs(rules)
    smallest: dict[str, tuple[str, ...]] = {}
    for (head, _, inner), production in zip(rules, cfg.expanded, strict=True):
        if head not in smallest and costs.get(head) == 1 + sum(costs.get(name, INFINITE) for name in inner):
            smallest[head] = production.body
    word: list[str] = []
    todo = [cfg.start]
    while todo and len(word) + len(todo) < _SHORT:
        name = todo.pop()
        todo += reversed(smallest[name]) if name in smallest else []
        word += [] if name in smallest else [name]
    return None if todo else tuple(word)


#: The maximum number of terminals for which it is decided individually whether a word can use them.
_MANY = 100
#: The number of states of a search that is decided quickly.
_SOON = 1_000


def find_unused_terminals(
    lookahead: Lookahead, max_states: int = 20_000, used: Container[str] = (), search_time: float = START * SEARCH_TIME
) -> tuple[list[str], list[str]]:
    """Return the terminals that no word uses, and those of which that was not decided.

    Args:
        lookahead: the lookahead of the language.
        max_states: the budget of each question.
        used: terminals that are known to be used.
        search_time: the seconds of search for all questions together.
    """
    usable = lookahead.detours(lookahead.automaton.start())
    terminals = list(lookahead.automaton.terminals)
    if len(terminals) > _MANY:
        return [name for name in terminals if name not in usable], []
    left = search_time

    def decide_use(name: str) -> str:
        nonlocal left
        value = "unknown"
        # Loading the solver takes as long as a hundred quick searches.
        for states, solver in ((min(_SOON, max_states), False), (max_states, True)):
            if value == "unknown" and left > 0:
                required = Lookahead(lookahead.source, Limits(at_least={name: 1}), max_states=states, solver=solver)
                with required.work.limit_seconds(left):
                    value = required.completable().value
                left -= required.work.used + required.made / TRIES
        return value

    uses = {name: decide_use(name) for name in terminals if name in usable and name not in used}
    never = [name for name in terminals if uses.get(name) == "no" or name not in usable]
    return never, [name for name, use in uses.items() if use == "unknown"]


def explain_unused(
    lookahead: Lookahead, name: str, max_states: int = 20_000, search_time: float = START * SEARCH_TIME
) -> list[str]:
    """Return the rules without any one of which some word could use a terminal that no word uses.

    Limits come as lines of the grammar notation, constraints by name; none if no word could use the terminal anyway,
    or if that was not decided in time.
    """
    rules = RuleSet(as_automaton(lookahead.source, Limits(at_least={name: 1})), max_states, search_time)
    needed = rules.name_rules(rules.find_clash())
    return [] if rules.out_of_time else [line for line in needed if line != f"%require 1 {name}"]


def filter_needed(rules: Iterable[int], may_miss: Callable[[frozenset[int]], bool]) -> list[int]:
    """Return the rules that are left when each one that may be missed is taken out in turn (deletion filter)."""
    out, needed = frozenset[int](), list[int]()
    for rule in sorted(rules):
        if may_miss(out | {rule}):
            out |= {rule}
        else:
            needed.append(rule)
    return needed


#: A pushdown automaton, or another automaton with its own class.
A = TypeVar("A", bound=SourceAutomaton)


class RuleSet(Generic[A]):
    """The rules of an automaton, by number: the constraints of a product first, then the limits.

    Rules have numbers because names need not be distinct. Constraints come first, so that the deletion filter tries to
    do without them first: the rest is then a smaller automaton.

    Args:
        automaton: an automaton with its limits, including products.
        max_states: the budget of each question to lookahead.
        search_time: the time for all these questions together, in seconds; None for no bound.

    Attributes:
        base: the automaton without any rules.
        constraints: the constraints, in the order of their numbers.
        bounds: the limits, in the order of their numbers.
        every: the numbers of all rules.
        out_of_time: whether some question was undecided because the search time was over.
    """

    def __init__(self, automaton: A, max_states: int, search_time: float | None = None) -> None:
        whole: SourceAutomaton = automaton
        factors = whole.factors if isinstance(whole, PDA) else ()
        # The limits of the parts are those of the whole: if kept in the parts, a dropped rule would still apply.
        self.constraints: tuple[PDA, ...] = tuple(factor.without_limits for factor in factors[1:])
        self._names = [one.name or f"constraint {place}" for place, one in enumerate(self.constraints, 1)]
        self._limits = Limits()
        self.bounds: tuple[Bound, ...] = ()
        if isinstance(whole, PDA):
            base: SourceAutomaton = (factors[0] if factors else whole).without_limits
            # A lower bound on a terminal that is no longer readable, since a rule was dropped, still counts.
            self._alphabet = tuple(whole.terminals)
            self._limits = whole.limits
            self.bounds = whole.bounds
        elif isinstance(whole, LimitedAutomaton):
            base = whole.source
            self._limits = whole.limits
            self.bounds = whole.counters.bounds
        else:
            base = whole
        self._names += [self._limits.wordings.get(bound.line, bound.line) for bound in self.bounds]
        self.base = cast("A", base)
        self._max_states = max_states
        self._left, self.out_of_time = search_time, False
        self.every = frozenset(range(len(self._names)))
        self._products: dict[frozenset[int], PDA] = {}
        self._verdicts: dict[frozenset[int], str] = {}

    def name_rules(self, rules: Iterable[int]) -> list[str]:
        """Return the names of rules."""
        return [self._names[rule] for rule in rules]

    def describe_rule(self, rule: int) -> str:
        """Return a rule as part of a sentence; a name chosen by an author is quoted to set it apart."""
        name = self._names[rule]
        if self.is_limit(rule):
            return name if name.startswith("%") else f"limit {name!r}"
        return f"constraint {name!r}" if self.constraints[rule].name else name

    def is_limit(self, rule: int) -> bool:
        """Return whether a rule is a limit rather than a constraint."""
        return rule >= len(self.constraints)

    def verdict_without(self, dropped: frozenset[int]) -> str:
        """Determine whether there is a word if some rules are dropped: yes, no or unknown."""
        if dropped in self._verdicts:
            return self._verdicts[dropped]
        value = "unknown"
        if self._left is not None and self._left <= 0:
            self.out_of_time = True
        else:
            lookahead = Lookahead(self.automaton_without(dropped), max_states=self._max_states)
            with lookahead.work.limit_seconds(self._left):
                verdict = lookahead.completable()
                if self._left is not None:
                    self._left = (lookahead.work.left - lookahead.made) / TRIES
            self.out_of_time = self.out_of_time or verdict.how is TIME
            value = verdict.value
        self._verdicts[dropped] = value
        return value

    def automaton_without(self, dropped: frozenset[int]) -> A:
        """Return the automaton under the rules that remain if some are dropped."""
        limits = self._limits
        for rule in dropped:
            if self.is_limit(rule):
                limits = limits.without(self.bounds[rule - len(self.constraints)].line)
        if not isinstance(self.base, PDA):
            return cast("A", as_automaton(self.base, limits))
        kept = frozenset(range(len(self.constraints))) - dropped
        if kept not in self._products:
            self._products[kept] = constrained(self.base, [self.constraints[number] for number in sorted(kept)])
        return cast("A", self._products[kept].with_limits(limits, self._alphabet))

    def find_clash(self, dropped: frozenset[int] = frozenset()) -> list[int]:
        """Return a clash among the rules that are not dropped, given that these leave no word."""
        if self.verdict_without(self.every) == "no":
            return []
        return filter_needed(self.every - dropped, lambda rules: self.verdict_without(dropped | rules) == "no")

    def find_remedy(self, first: list[int], max_tries: int = _TRIES) -> list[int]:
        """Return a smallest remedy, given a first clash; after so many tries one from which no rule can be put back."""
        clashes, tries = [first], 0
        todo: deque[frozenset[int]] = deque([frozenset()])
        seen: set[frozenset[int]] = set()
        while todo and tries < max_tries and len(seen) < _SETS:
            dropped = todo.popleft()
            # A known clash that is still whole saves the search for another one.
            whole = next((known for known in clashes if dropped.isdisjoint(known)), None)
            if whole is None:
                tries += 1
                verdict = self.verdict_without(dropped)
                if verdict == "yes":
                    return sorted(dropped)
                whole = self.find_clash(dropped)
                # Only a proven clash is recorded: otherwise a set that leaves it whole may be a remedy.
                if verdict == "no":
                    clashes.append(whole)
            for rule in whole:
                following = dropped | {rule}
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return self._any_remedy()

    def _any_remedy(self) -> list[int]:
        """Return a remedy from which no rule can be put back: all rules, minus each one that is not in the way."""
        if self.verdict_without(self.every) != "yes":
            return []
        return filter_needed(self.every, lambda rules: self.verdict_without(self.every - rules) == "yes")
