"""One decision procedure for limits: how often each way is taken, as an integer program over HiGHS.

What is left to do is a flow: choose how often each way of each pending symbol is taken, so that every symbol is worked
off exactly as often as it turns up (Parikh 1966, On context-free languages; as linear equations over the grammar itself
Verma, Seidl and Schwentick 2005, On the complexity of equational Horn clauses). With a count x(w) for each way w:

- balance: for each symbol X, pending(X) + the sum of x(w) times the occurrences of X among the children of w = the sum
  of x(w) over the ways w of X. A *free* symbol, which can be completed without limited terminals, may also be dropped;
- upper bounds: for each resource, what the ways take in all is at most what is left of it;
- lower bounds: for each, what the ways read adds up to at least what it still needs;
- moves: where they are bounded, those of all ways and of all that is dropped are at most so many.

**Connectivity.** A solution may contain cycles that nothing pending leads to. Without open lower bounds they do no
harm: apply ways to what is pending, each at most x(w) times, until nothing is pending. By balance there always is one
left to apply, so this ends in a completion that takes no more than the solution does. An open lower bound such a cycle
could pay by fraud. So there, a solution in which symbols are worked off that nothing pending leads to is *cut* off, by
a row for each of their ways w: x(w) is at most m(w) times what leads to these symbols (ways of others, and what is
pending of them), where m(w) is the most that w needs to be taken at all. A solution in which each symbol that is worked
off is reached from what is pending is a completion that uses each way exactly x(w) times (Esparza 1997, Petri nets,
commutative context-free grammars, and basic parallel processes, theorem 3.1).

**Bounds of the counts.** Let K be the most ways that can take a resource plus the most that lower bounds can have use
for; no x(w) needs to exceed 4 K. Take a completion with the fewest ways, as trees. Mark for each lower bound no more
reads than it needs, and call the ways that are marked or take a resource *events*: at most K. Keep only the paths from
the roots to events. All that hangs off them takes nothing and is of no use, so the symbol there is free and is dropped
instead. Each path ends in an event, so there are at most K ends and fewer than K forks. Cut at events and forks, and
the rest falls into at most 2 K chains. No chain meets a symbol twice: what lies between could be cut out, with what
hangs off it, and what remains would take no more, pay the marked reads as before, and have fewer ways. So a way occurs
at most 2 K times in chains, once in each, and at most 2 K times as an event or a fork. This is why ε-cycles, unit
cycles and left recursion are harmless: they are what is cut out. (None of it takes more moves: what is dropped is
completed by its fewest.)

HiGHS counts in floating point. So each "yes" is checked as a completion in whole numbers, and each "no", at every leaf
of the branch and bound (Land and Doig 1960), as an argument: factors of the rows, rounded to whole numbers, by which
the rows contradict each other within the bounds of the counts (Farkas 1902). Arguments and completions are kept, and
tried on later states first. What rounding leaves open is "unknown".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.stacks import PendingSymbols, SearchState
from formal_llm.automata.lookahead.verdicts import LINEAR, PROGRAM

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: The most entries of the rows; larger grammars are left to the search.
_LARGEST = 400_000
#: The largest number in a row: beyond it floating point says nothing about whole numbers.
_MOST = 1 << 45
#: The largest sum that a row can come to; beyond it nothing is asked.
MOST_SUM = 1 << 60
#: A value of the relaxation this near to a whole number is one.
_NEAR = 1e-6
#: Factors of rows are rounded to parts of this.
_SCALE = 1 << 32
#: Prices are whole numbers of this part of a unit, and are gone over so often until all are right.
_PRICE_SCALE, _ROUNDS = 1 << 40, 25
#: The largest sum that is looked at bit by bit, and the bits of a try.
_MOST_BITS, _BITS = 1 << 24, 150_000
#: How many arguments are kept, and how many completions (of what is alike).
_ARGUMENTS, _COMPLETIONS, _ALIKE = 64, 20_000, 32
#: The most rows that cut off what is stranded.
_CUTS = 300

#: A row: ("symbol", index), ("resource", number), ("due", place of its field) or ("moves", 0).
_Key = tuple[str, int]


class FlowWay(NamedTuple):
    """A way as the program sees it: how often it is taken is a variable.

    Attributes:
        head: the symbol that it works off.
        takes: what it takes, by resource.
        pays: what it pays, by the place of the lower bound's field.
        children: the symbols that it leaves, with counts, without those that can neither prevent a completion nor help.
        moves: the moves it takes, those of the symbols left out included.
    """

    head: int
    takes: Mapping[int, int]
    pays: Mapping[int, int]
    children: Mapping[int, int]
    moves: int


class Question(NamedTuple):
    """A state as the program asks it: its parts, and the sides of all rows; None where a side is open."""

    pending: Mapping[int, int]
    left: Sequence[int]
    needed: Mapping[int, int]
    moves: float
    low: list[int | None]
    high: list[int | None]


class _Argument(NamedTuple):
    """Factors of rows in whole numbers, and what they make of each way."""

    factors: Mapping[int, int]
    of_ways: Mapping[int, int]


def is_solver_installed() -> bool:
    """Whether OR-Tools is there (it is not loaded to find out)."""
    return find_spec("ortools") is not None


class FlowRows:
    """The ways of all symbols that the start leads to, as the grammar is known now, and the rows over them.

    Attributes:
        ways: the ways.
        ways_of: the numbers of the ways of each symbol.
        free: the symbols that may also be dropped, each with the moves of that.
        keys, rows: for each row what it is, and the factors of ways in it.
        exact: (resource, place of the lower bound's field, least amount) of each sum that is bounded from both sides.
        is_small: whether the program is small enough, and its numbers, to be asked at all.
    """

    def __init__(self, demands: PendingSymbols) -> None:
        self.demands = demands
        symbols, counters, classes = demands.grammar.symbols, demands.counters, demands.classes
        made: list[FlowWay] = []
        for index, group in demands.flow.ways.items():
            for way in group if index not in demands.flow.leaves else ():  # those are never pending
                pays: Counter[int] = Counter()
                for shift, weight in counters.list_payments(way.reads):
                    pays[shift] += weight
                taken = classes.amounts_taken(way.reads)
                takes = {field: amount for field, amount in taken.items() if amount and field != classes.total}
                idle = [symbols[c] for c in way.children if not symbols[c].due and demands.can_drop(symbols[c])]
                children = Counter(c for c in way.children if symbols[c].due or not demands.can_drop(symbols[c]))
                moves = way.steps + sum(int(child.free_steps) for child in idle)
                made.append(FlowWay(index, takes, pays, children, moves))
        self.ways = tuple(made)
        self.ways_of: dict[int, list[int]] = {}
        for number, one in enumerate(self.ways):
            self.ways_of.setdefault(one.head, []).append(number)
        self.free = {index: int(symbols[index].free_steps) for index in self.ways_of if symbols[index].is_free}
        self.dues = {shift: mask for _, shift, mask in counters.lower}
        rows: dict[_Key, Counter[int]] = {("symbol", index): Counter() for index in self.ways_of}
        for number, one in enumerate(self.ways):
            rows["symbol", one.head][number] += 1
            spent = one.moves - self.free.get(one.head, 0)
            for child, count in one.children.items():
                rows.setdefault(("symbol", child), Counter())[number] -= count
                spent += self.free.get(child, 0) * count
            for resource, amount in one.takes.items():
                rows.setdefault(("resource", resource), Counter())[number] = amount
            for shift, amount in one.pays.items():
                rows.setdefault(("due", shift), Counter())[number] = amount
            rows.setdefault(("moves", 0), Counter())[number] = spent
        self.keys = list(rows)
        self.rows = [{number: factor for number, factor in row.items() if factor} for row in rows.values()]
        #: For each way and stranded symbols that are cut off, the most that the way is taken at all; a row for each.
        self._cuts: dict[tuple[int, frozenset[int]], int] = {}
        self._paid = frozenset(key for kind, key in self.keys if kind == "due")
        largest = max((abs(factor) for row in self.rows for factor in row.values()), default=0)
        amounts = {r: [one.takes.get(r, 0) for one in self.ways] for kind, r in self.keys if kind == "resource"}
        paid = {shift: [one.pays.get(shift, 0) for one in self.ways] for kind, shift in self.keys if kind == "due"}
        self.exact = [
            (r, shift, least)
            for r, taken in amounts.items()
            for shift, given in paid.items()
            if taken == given and (least := min(filter(None, taken))) > 1
        ]
        self.is_small = bool(made) and sum(map(len, self.rows)) <= _LARGEST and largest <= _MOST

    def ask_state(self, state: SearchState) -> Question | None:
        """The question of a state without an open stack; None where a lower bound is open that no way pays."""
        multisets = self.demands.multisets
        pending = {symbol.index: count for symbol, count, _ in multisets.list_items(state.pending)}
        left = self.demands.classes.amounts(state.left)
        needed = {shift: amount for shift, mask in self.dues.items() if (amount := state.needed >> shift & mask)}
        if not self._paid.issuperset(needed):
            return None
        moves = state.moves - sum([self.free.get(symbol, 0) * count for symbol, count in pending.items()])
        low: list[int | None] = []
        high: list[int | None] = []
        for kind, key in self.keys:
            if kind == "symbol":
                count = pending.get(key, 0)
                high.append(count)
                low.append(None if key in self.free else count)
            elif kind == "due":
                low.append(needed.get(key, 0))
                high.append(None)
            else:
                low.append(None)
                high.append(left[key] if kind == "resource" else None if moves == INFINITE else int(moves))
        for (_, stranded), most in self._cuts.items():
            low.append(None)
            high.append(most * sum([count for symbol, count in pending.items() if symbol in stranded]))
        return Question(pending, left, needed, state.moves, low, high)

    def most_uses(self, left: Sequence[int], needed: Mapping[int, int]) -> list[int]:
        """How often each way needs to be taken at most; see the module's docstring."""
        least_taken: dict[int, int] = {}
        least_paid: dict[int, int] = {}
        for way in self.ways:
            for resource, amount in way.takes.items():
                least_taken[resource] = min(amount, least_taken.get(resource, amount))
            for shift, amount in way.pays.items():
                least_paid[shift] = min(amount, least_paid.get(shift, amount))
        events = sum(left[resource] // amount for resource, amount in least_taken.items())
        events += sum(-(-amount // least_paid[shift]) for shift, amount in needed.items())
        return [
            min([4 * events, *(left[resource] // amount for resource, amount in w.takes.items())]) for w in self.ways
        ]

    @cached_property
    def _most_at_all(self) -> list[int]:
        counters, classes = self.demands.counters, self.demands.classes
        needed = {shift: bound.least for bound, shift, _ in counters.lower if shift in self._paid}
        return self.most_uses(classes.amounts(classes.left_of(counters.remaining)), needed)

    def misses_sum(self, question: Question, effort: float) -> tuple[bool, float]:
        """Whether no uses of what may be read, whatever the order, add up to a sum bounded from both sides; the tries.

        The sums that can be made are the bits of one number.
        """
        tries = 0.0
        reached = self.list_reached(range(len(self.ways)), question.pending) if self.exact else ()
        ways = [way for way in self.ways if way.head in reached]
        children = {child for way in ways for child in way.children}
        for resource, shift, least in self.exact:
            most, needed = question.left[resource], question.needed.get(shift, 0)
            if most > _MOST_BITS or most - needed >= least:
                continue
            uses: dict[tuple[int, frozenset[tuple[int, int]]], int] = {}  # once for what ways of one symbol have alike
            for way in ways:
                if resource in way.takes:
                    copies = min(question.left[r] // amount for r, amount in way.takes.items())
                    head = -1 if way.head in children else way.head
                    uses[head, frozenset(way.takes.items())] = min(copies, question.pending.get(head, copies))
            sums, mask = 1, (2 << most) - 1
            for (_, takes), copies in uses.items():
                amount, times = dict(takes)[resource], 1
                while copies:  # 1, 2, 4, ... and the rest: so any number up to all of them
                    if (tries := tries + most / _BITS) > effort:
                        return False, tries
                    times = min(times, copies)
                    sums |= sums << amount * times & mask
                    copies, times = copies - times, 2 * times
            if not sums >> needed:
                return True, tries
        return False, tries

    def list_reached(self, counts: Container[int], pending: Mapping[int, int]) -> set[int]:
        """The symbols that what is pending leads to by the ways that are taken."""
        reached, todo = set(pending), list(pending)
        while todo:
            for number in self.ways_of.get(todo.pop(), ()):
                if number in counts:
                    for child in self.ways[number].children:
                        if child not in reached:
                            reached.add(child)
                            todo.append(child)
        return reached

    def cut_off(self, question: Question, counts: Mapping[int, float]) -> bool:
        """Add rows, also to the question, that cut off counts of ways to which nothing leads; False where none is new.

        The rows are about all symbols that are not reached, not only those that are worked off: so something has to
        lead out of those that are.
        """
        stranded = frozenset(self.ways_of.keys() - self.list_reached(counts, question.pending))
        new = [n for n in counts if self.ways[n].head in stranded and (n, stranded) not in self._cuts]
        if not new or len(self._cuts) + len(new) > _CUTS:
            return False
        into = [n for n, way in enumerate(self.ways) if way.head not in stranded and stranded & way.children.keys()]
        for number in new:
            most = self._cuts[number, stranded] = self._most_at_all[number]
            self.rows.append({number: 1, **dict.fromkeys(into, -most)})
            question.low.append(None)
            question.high.append(most * sum([question.pending.get(symbol, 0) for symbol in stranded]))
        return True

    def moves_of_completion(self, counts: Mapping[int, int], question: Question) -> int | None:
        """The moves of a completion that takes each way so often; None where it is none. In whole numbers."""
        balance, taken, paid = Counter(question.pending), Counter[int](), Counter[int]()
        moves = 0
        for number, count in counts.items():
            way = self.ways[number]
            balance[way.head] -= count
            moves += way.moves * count
            for child, times in way.children.items():
                balance[child] += times * count
            for resource, amount in way.takes.items():
                taken[resource] += amount * count
            for shift, amount in way.pays.items():
                paid[shift] += amount * count
        if any(amount > question.left[resource] for resource, amount in taken.items()):
            return None
        if any(paid[shift] < amount for shift, amount in question.needed.items()):
            return None
        for symbol, count in balance.items():
            if count < 0 or (count and symbol not in self.free):
                return None
            moves += self.free.get(symbol, 0) * count
        reached = self.list_reached(counts, question.pending)
        return moves if moves <= question.moves and all(self.ways[n].head in reached for n in counts) else None


class FlowProgram:
    """The program over the states of the completion search.

    Args:
        rows: the rows; several programs may share them.

    Attributes:
        tries, left: what the question has cost, and what it may still cost, in the unit of :class:`WorkBudget`.
    """

    def __init__(self, rows: FlowRows) -> None:
        self.rows = rows
        self.tries = self.left = 0.0
        self._arguments: list[_Argument] = []
        self._kept: dict[int, list[Mapping[int, int]]] = {}

    def decide_known(self, state: SearchState) -> tuple[float, str] | None:
        """(moves of some completion or infinite, what decided it), by what earlier questions found; else None."""
        question = self.rows.ask_state(state)
        return (INFINITE, LINEAR) if question is None else self._decide_known(state, question)

    def _decide_known(self, state: SearchState, question: Question) -> tuple[float, str] | None:
        for counts in reversed(self._kept.get(state.pending, ())):
            moves = self.rows.moves_of_completion(counts, question)
            if moves is not None:
                self._keep_completion(state, counts)
                return moves, PROGRAM
        if self._arguments:
            least, most = [0] * len(self.rows.ways), self.rows.most_uses(question.left, question.needed)
            for place in reversed(range(len(self._arguments))):
                if _is_contradiction(self._arguments[place], question, least, most):
                    self._arguments.append(self._arguments.pop(place))
                    return INFINITE, LINEAR
        return None

    def decide_state(self, state: SearchState, effort: float) -> tuple[float, str] | None:
        """Whether a state without an open stack can be completed.

        Args:
            state: as the search makes them.
            effort: what it may cost, in tries.

        Returns:
            (the moves of some completion, infinite for none; what decided it); None where the effort was spent, or
            rounding left it open.
        """
        self.tries = 0.0
        question = self.rows.ask_state(state)
        if question is None:
            return INFINITE, LINEAR
        known = self._decide_known(state, question)
        if known is None:
            missed, self.tries = self.rows.misses_sum(question, effort)
            known = (INFINITE, PROGRAM) if missed else self._branch_and_bound(state, question, effort)
        return known

    def _branch_and_bound(self, state: SearchState, question: Question, effort: float) -> tuple[float, str] | None:
        rows = self.rows
        bounds = rows.most_uses(question.left, question.needed)
        todo: list[tuple[dict[int, int], dict[int, int]]] = [({}, {})]
        solved = 0
        checked = 0
        while todo:
            if any(sum([abs(f) * bounds[n] for n, f in row.items()]) > MOST_SUM for row in rows.rows[checked:]):
                return None
            checked = len(rows.rows)
            lower, upper = todo.pop()
            least = [lower.get(n, 0) for n in range(len(bounds))]
            most = [min(bound, upper.get(n, bound)) for n, bound in enumerate(bounds)]
            if any(a > b for a, b in zip(least, most, strict=True)):
                continue
            if self.tries >= effort:
                return None
            solved += 1
            self.left = effort - self.tries
            values = self._solve(question, least, most)
            if values is None:
                return None
            if not values:
                if not todo and solved == 1:
                    return INFINITE, LINEAR
                continue
            taken = {n: value for n, value in enumerate(values) if value > _NEAR}
            if question.needed and rows.cut_off(question, taken):
                todo.append((lower, upper))
                continue
            number, off = max(enumerate(abs(v - round(v)) for v in values), key=lambda one: one[1])
            if off > _NEAR:
                value = int(values[number])
                below, above = (lower, {**upper, number: value}), ({**lower, number: value + 1}, upper)
                todo += [below, above] if values[number] - value > 0.3 else [above, below]
                continue
            counts = {n: round(value) for n, value in taken.items()}
            if not question.needed:  # what nothing leads to can only take something
                reached = rows.list_reached(counts, question.pending)
                counts = {n: count for n, count in counts.items() if rows.ways[n].head in reached}
            moves = rows.moves_of_completion(counts, question)
            if moves is None:
                return None  # rounded away
            self._keep_completion(state, counts)
            return moves, PROGRAM
        return INFINITE, PROGRAM

    def _solve(self, question: Question, least: Sequence[int], most: Sequence[int]) -> Sequence[float] | None:
        """How often each way is taken; nothing where that is refuted, None for unknown. ``tries`` is charged."""
        relaxation = self._relaxation
        self.tries += relaxation.solve(question, least, most)
        if relaxation.values is not None:
            return relaxation.values
        argument = _make_argument(relaxation.factors, self.rows.rows)
        if argument is None or not _is_contradiction(argument, question, least, most):
            return None  # rounded away
        if not any(least):
            self._arguments.append(argument)
            del self._arguments[:-_ARGUMENTS]
        return ()

    @cached_property
    def _relaxation(self) -> _Relaxation:
        return _Relaxation(len(self.rows.ways), self.rows.rows)

    def _keep_completion(self, state: SearchState, counts: Mapping[int, int]) -> None:
        """Remember a completion, under what is pending now and after each of the ways it may begin with."""
        if len(self._kept) > _COMPLETIONS:
            self._kept.clear()
        multisets = self.rows.demands.multisets
        begins = {state.pending: counts}
        for symbol, _, unit in multisets.list_items(state.pending):
            for number in self.rows.ways_of[symbol.index]:
                if number in counts:
                    children = self.rows.ways[number].children
                    after = state.pending - unit + sum([multisets.unit_of(c) * k for c, k in children.items()])
                    begins[after] = {n: c - (n == number) for n, c in counts.items() if c > (n == number)}
        for pending, left in begins.items():
            group = self._kept.setdefault(pending, [])
            group.append(left)
            del group[:-_ALIKE]


class _Relaxation:
    """The linear relaxation, kept in HiGHS: a question changes the sides of its rows and columns.

    Attributes:
        values: how often each way is taken; None where there is no solution.
        prices: of the rows, where there is one.
        factors: of the rows, for which there is none; empty where HiGHS gives none.
    """

    def __init__(self, ways: int, rows: Sequence[Mapping[int, int]], costs: Sequence[int] | None = None) -> None:
        # Half of the time that a plan takes to import, and most rules need no program.
        import highspy
        import numpy as np

        self._library: Any = highspy
        self._numpy = np
        self._highs: Any = self._library._Highs()  # the class above it prints a banner when it is made
        for name, value in (("output_flag", False), ("threads", 1), ("presolve", "off"), ("solver", "simplex")):
            self._highs.setOptionValue(name, value)
        self._columns = np.arange(ways, dtype=np.int32)
        self._highs.addVars(ways, np.zeros(ways), np.full(ways, np.inf))
        # Among equals any order will do; it is fixed by a fraction of the golden ratio for each.
        preferred = self._columns * 0.618034 % 1.0 if costs is None else np.array(costs, float)
        self._highs.changeColsCost(ways, self._columns, preferred)
        self._rows = rows
        self._height = 0
        self.values: list[float] | None = None
        self.factors: Sequence[float] = ()
        self.prices: Sequence[float] = ()
        self._question: Question | None = None
        self._effort = 8 + ways / 40

    def _as_sides(self, sides: Sequence[int | None], sign: int) -> npt.NDArray[np.float64]:
        open_side = sign * self._numpy.inf
        return self._numpy.array([open_side if side is None else side for side in sides], float)

    def solve(self, question: Question, least: Sequence[int], most: Sequence[int | None]) -> float:
        """Solve it with these bounds of the counts; what that cost, in tries."""
        highs, status = self._highs, self._library.HighsModelStatus
        new = self._rows[self._height :]
        for row in new:
            factors = self._numpy.array(list(row.values()), float)
            highs.addRow(-self._numpy.inf, self._numpy.inf, len(row), self._numpy.array(list(row), "int32"), factors)
        self._height += len(new)
        self._effort += sum(map(len, new)) / 200
        if new or question is not self._question:
            self._question = question
            low, high = self._as_sides(question.low, -1), self._as_sides(question.high, 1)
            highs.changeRowsBounds(len(low), self._numpy.arange(len(low), dtype="int32"), low, high)
        highs.changeColsBounds(len(least), self._columns, self._as_sides(least, -1), self._as_sides(most, 1))
        highs.run()
        self.values, self.factors = None, ()
        found = highs.getModelStatus()
        if found == status.kOptimal:
            solution = highs.getSolution()
            self.values, self.prices = list(solution.col_value), solution.row_dual
        elif found == status.kInfeasible:
            ray = highs.getDualRay()
            self.factors = list(ray[2]) if ray[1] else ()
        return self._effort * (1 + int(highs.getInfo().simplex_iteration_count) / 50)


def price_needs(
    costs: Sequence[int], heads: Sequence[int], rows: Mapping[_Key, Mapping[int, int]], sides: Mapping[_Key, int]
) -> tuple[dict[_Key, int], int] | None:
    """What a unit of each row costs at least, by the linear relaxation of the cheapest flow.

    Args:
        costs: what each way costs.
        heads: the symbol that each way works off.
        rows: for symbols (balance) and lower bounds (at least), the factors of ways.
        sides: what is pending and needed at the start; others are 0.

    Returns:
        (a value for each row, what all are multiplied by), in whole numbers: no way costs less than the values of its
        row of a lower bound, and of its symbol less its children, add up to. So the values of all that is pending and
        needed are never more than a completion costs. None where HiGHS, or rounding, does not lead to any.
    """
    if max([abs(f) for row in rows.values() for f in row.values()] + list(sides.values()), default=0) > _MOST:
        return None
    relaxation = _Relaxation(len(costs), list(rows.values()), costs)
    keys = list(rows)
    low: list[int | None] = [sides.get(key, 0) for key in keys]
    high = [None if kind == "due" else side for (kind, _), side in zip(keys, low, strict=True)]
    relaxation.solve(Question({}, (), {}, INFINITE, low, high), [0] * len(costs), [None] * len(costs))
    if relaxation.values is None:
        return None
    values: dict[_Key, int] = {}
    for key, value in zip(keys, relaxation.prices, strict=True):
        # A lower bound is rounded down, so that no circle of ways can earn by it.
        values[key] = max(0, int(value * _PRICE_SCALE)) if key[0] == "due" else round(value * _PRICE_SCALE)
    parts: list[list[tuple[_Key, int]]] = [[] for _ in costs]
    for key, row in rows.items():
        for number, factor in row.items():
            parts[number].append((key, factor))
    for _ in range(_ROUNDS):
        changed = False
        for number, cost in enumerate(costs):
            over = sum([values[key] * factor for key, factor in parts[number]]) - cost * _PRICE_SCALE
            if over > 0:
                head = "symbol", heads[number]
                if rows[head].get(number, 0) <= 0:
                    return None  # a symbol that leaves itself
                values[head] -= over
                changed = True
        if not changed:
            return values, _PRICE_SCALE
    return None


def _make_argument(factors: Sequence[float], rows: Sequence[Mapping[int, int]]) -> _Argument | None:
    """Factors as whole numbers; None where there are none."""
    largest = max(map(abs, factors), default=0.0)
    if not largest:
        return None
    whole = {n: rounded for n, factor in enumerate(factors) if (rounded := round(factor / largest * _SCALE))}
    of_ways: Counter[int] = Counter()
    for n, factor in whole.items():
        for way, amount in rows[n].items():
            of_ways[way] += factor * amount
    return _Argument(whole, {way: factor for way, factor in of_ways.items() if factor})


def _is_contradiction(argument: _Argument, question: Question, least: Sequence[int], most: Sequence[int]) -> bool:
    """Whether no counts within their bounds meet the rows, by an argument with either sign. In whole numbers."""
    for sign in (1, -1):
        right = 0
        for n, factor in argument.factors.items():
            side = question.high[n] if factor * sign > 0 else question.low[n]
            if side is None:
                break
            right += factor * sign * side
        else:
            left = sum(
                [factor * sign * (least[n] if factor * sign > 0 else most[n]) for n, factor in argument.of_ways.items()]
            )
            if left > right:
                return True
    return False
