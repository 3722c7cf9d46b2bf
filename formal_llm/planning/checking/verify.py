"""Is this plan valid, and if not: where does it go wrong, what was possible there, what is the nearest valid plan?

This is for plans that somebody else made, a person or a model. A :class:`Verifier` keeps what it learns about an
automaton, so that it serves many plans; :func:`verify` is its one-shot form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

from formal_llm.automata import PDA, Limits, Lookahead, Source, Word
from formal_llm.automata.languages.emptiness import RuleSet, filter_needed, why_empty
from formal_llm.automata.languages.nearest_words import UNIT_WEIGHTS, Edit, EditWeights, Nearest, nearest, turn_edits
from formal_llm.automata.languages.prefixes import ConfigurationSets
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.lookahead.verdicts import SEARCH_TIME, START
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.product import split_conjunction
from formal_llm.automata.models.symbols import Order
from formal_llm.errors import AutomatonError, did_you_mean
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.vocabulary import write_word
from formal_llm.planning.source import source_of

#: How many sets of rules a verifier keeps what it learnt of, to name the limits and constraints to blame.
_KEPT = 100


@dataclass(frozen=True)
class Verification:
    """The verdict on a plan: whether it is valid, and if not, where and why.

    Attributes:
        word: the plan's word.
        valid: whether it is a word of the language within the limits. Always certain.
        reason: why, in a sentence for a person.
        position: where an invalid word leaves the language: the longest prefix that some valid word begins with ends
            there, so ``word[position]`` is the first wrong terminal. ``len(word)`` where the word only ends too early.
            None for a valid word, and where it was not decided.
        allowed: the terminals that were possible at ``position``, in the order of the alphabet.
        may_stop: whether the word could have ended at ``position``.
        limits: the limits to blame, as lines of the grammar notation or the sentences that they were written as; empty
            where the word breaks the grammar itself.
        constraints: the constraints to blame, by name (``"constraint 2"``, by its place, for one without); a rule about
            order by its text.
            The limits and constraints to blame are those that the word breaks at ``position``, each by itself; where it
            breaks none there, they are a smallest set that together leave no way on: without any one there is one.
        decided: False where the budget of states ran out before ``position`` and all of ``allowed`` were known; what
            is reported nevertheless is certain.
        nearest: a nearest valid word; None where there is none, or it was not looked for or not found.
        edits: what turns the word into it.
        distance: what those edits cost; infinite where there is no valid word, None where it is not known.
        nearest_decided: False where ``nearest`` was not looked for or the budget of states ran out.
        order: which way the words are read. ``reason`` and the text for a person are in the order of carrying out.
    """

    word: Word
    valid: bool
    reason: str
    position: int | None = None
    allowed: Word = ()
    may_stop: bool = False
    limits: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    decided: bool = True
    nearest: Word | None = None
    edits: tuple[Edit, ...] = ()
    distance: int | float | None = None
    nearest_decided: bool = True
    order: Order = "forward"

    def __bool__(self) -> bool:
        return self.valid

    def __str__(self) -> str:
        lines = [f"{'valid' if self.valid else 'not valid'}: {self.reason}"]
        if self.edits and self.nearest is not None:
            lines.append(f"nearest valid plan: {write_word(self.nearest, self.order)}")
            lines += [f"  {edit}" for edit in turn_edits(self.edits, len(self.word), self.order)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, JSON]:
        """The verification as plain data for JSON; an infinite distance becomes None."""
        data = asdict(self)
        if self.distance == INFINITE:
            data["distance"] = None
        return data


class Verifier:
    """Verifies plans against one grammar or automaton.

    Args:
        source: a grammar (with its limits), a flowchart, a behaviour, a pushdown automaton, a product, or one of these
            under limits.
        limits: more limits.
        weights: what edits cost, in the search for a nearest valid word.
        max_states: how many states one query may visit before it answers "not decided".
        search_time: the seconds of search after which a query answers so; None for no bound.

    Attributes:
        rules: the constraints and limits of the automaton, by number.

    Raises:
        AutomatonError: the automaton is no pushdown automaton, or a limit names a terminal that there is not.
    """

    def __init__(
        self,
        source: Source,
        limits: Limits | None = None,
        *,
        weights: EditWeights = UNIT_WEIGHTS,
        max_states: int = 50_000,
        search_time: float | None = START * SEARCH_TIME,
    ) -> None:
        self.lookahead = Lookahead(source_of(source, "Verifier"), limits, max_states=max_states)
        self.automaton = self.lookahead.automaton
        self.weights = weights
        self._max_states = max_states
        self._time = search_time
        if self.lookahead.pda is None:
            raise AutomatonError("plans are verified against grammars and pushdown automata alone")
        self._prefixes = ConfigurationSets(self.lookahead, search_time=search_time)
        self._pda = self.lookahead.pda
        self._decisions = {t.read: f"{t.question} {t.text}" for t in self._pda.transitions if t.decision and t.text}
        parts = self._pda
        if isinstance(source, Behaviour):
            parts = cast("PDA", as_automaton(split_conjunction(source), limits))
        self.rules = RuleSet(parts, max_states)
        self._under: dict[frozenset[int], ConfigurationSets] = {frozenset(): self._prefixes}
        self._alone: dict[int, ConfigurationSets] = {}

    def verify(self, plan: Plan | Sequence[str], *, repair: bool = True) -> Verification:
        """Verify a plan: whether it is valid, and if not, where and why.

        Args:
            plan: a plan, or a word as a sequence of terminal names.
            repair: whether to look for a nearest valid word, which is most of the work.

        Raises:
            TypeError: a text; :func:`~formal_llm.planning.reading.read_plan_text` reads one.
        """
        if isinstance(plan, str):
            raise TypeError("a word is a sequence of terminal names; read_plan_text reads a plan from a text")
        word: Word = plan.word if isinstance(plan, Plan) else tuple(plan)
        if self.automaton.accepts(word):
            return Verification(
                word, True, "it follows all the rules", may_stop=True, nearest=word, distance=0, order=self._pda.order
            )
        found = nearest(self.lookahead, word, self.weights, max_states=self._max_states) if repair else None
        return self._explain_invalid(word, found or Nearest(None, decided=False))

    def _explain_invalid(self, word: Word, found: Nearest) -> Verification:
        longest, decided = self._prefixes.longest_viable(word)
        position: int | None = max(longest, 0) if decided else None
        allowed: Word = ()
        may_stop = False
        limits: Sequence[str] = ()
        constraints: Sequence[str] = ()
        if position is None:
            reason = "where it goes wrong was not decided within the budget of states"
        elif longest < 0:
            why = why_empty(self.lookahead.source, max_states=self._max_states)
            limits, constraints = why.limits, why.constraints
            reason = f"no plan is valid: {why.reason}"
        else:
            allowed, may_stop, decided = self._prefixes.next_terminals(word[:position])
            rules, blamed = self.rules, self.to_blame(word, position)
            limits = rules.name_rules(rule for rule in blamed if rules.is_limit(rule))
            constraints = rules.name_rules(rule for rule in blamed if not rules.is_limit(rule))
            reason = self._write_reason(
                word, position, allowed, may_stop, [rules.describe_rule(rule) for rule in blamed]
            )
        return Verification(
            word, False, reason, position, allowed, may_stop, tuple(limits), tuple(constraints), decided,
            found.word, found.edits, found.distance if found.decided else None, found.decided, self._pda.order,
        )  # fmt: skip

    # -- why ----------------------------------------------------------------------------------------------------

    def to_blame(self, word: Word, position: int) -> list[int]:
        """The :attr:`rules` that forbid the terminal at ``position``; none where the grammar forbids it anyway.

        ``position`` is where the longest prefix ends that some valid word begins with.
        """
        rules, prefix = self.rules, word[: position + 1]
        ends = position == len(word)
        if not rules.every or not self._allows_prefix(prefix, ends, rules.every):
            return []
        if broken := self.broken(prefix, ends=ends):
            return broken
        # No rule is broken yet, but together they leave no way on.
        return filter_needed(rules.every, lambda dropped: not self._allows_prefix(prefix, ends, dropped))

    def broken(self, word: Word, *, ends: bool) -> list[int]:
        """The rules each of which, whatever the grammar, forbids a word or, where it continues, its beginning."""
        broken = [
            number for number in range(len(self.rules.constraints)) if self._breaks_constraint(number, word, ends)
        ]
        limits = [n for n, bound in enumerate(self.rules.bounds) if not bound.holds(word)]
        kept = [n for n in limits if ends or self.rules.bounds[n].most is not None]
        return broken + [len(self.rules.constraints) + number for number in kept]

    def _breaks_constraint(self, number: int, prefix: Word, ends: bool) -> bool:
        """Whether a constraint by itself, whatever the grammar, rules out that a word begins so, or is that."""
        constraint = self.rules.constraints[number]
        if ends:
            return not constraint.accepts(prefix)
        if number not in self._alone:
            alone = Lookahead(constraint, max_states=self._max_states)
            self._alone[number] = ConfigurationSets(alone, search_time=self._time)
        return self._alone[number].is_viable(prefix) is False

    def _allows_prefix(self, prefix: Word, ends: bool, dropped: frozenset[int]) -> bool:
        """Whether a word begins with ``prefix``, or is it, when some rules are dropped; unknown counts as yes."""
        if ends:
            return bool(self.rules.automaton_without(dropped).accepts(prefix))
        prefixes = self._under.get(dropped)
        if prefixes is None:
            if len(self._under) > _KEPT:
                self._under.clear()
            lookahead = Lookahead(self.rules.automaton_without(dropped), max_states=self._max_states)
            # There are as many questions as there are rules: together they may take about as long as one.
            each = None if self._time is None else self._time / len(self.rules.every)
            prefixes = self._under[dropped] = ConfigurationSets(lookahead, search_time=each)
        return prefixes.is_viable(prefix) is not False

    def label(self, name: str) -> str:
        """The text for a terminal; a decision is shown with its question, since many have the answer "yes"."""
        return self._decisions.get(name) or self._pda.label(name)

    def _write_reason(self, word: Word, position: int, allowed: Word, may_stop: bool, blamed: Sequence[str]) -> str:
        ends, label, forward = position == len(word), self.label, self._pda.order == "forward"
        place = position + 1 if forward else len(word) - position
        name = "" if ends else word[position]
        if not ends and name not in self._pda.terminals:
            near = did_you_mean(name, self._pda.terminals)
            what = f"{name!r} at place {place} is no terminal" + (f" (did you mean {near}?)" if near else "")
        elif ends:
            what = f"it {'ends too early' if forward else 'begins too late'}" if word else "it is empty"
        else:
            what = f"{label(name)} cannot stand at place {place}"
        if blamed:
            what += f" because of {'; '.join(blamed)}"
        could = [label(other) for other in allowed]
        limit = "end there" if forward else "begin after it"
        if not could:
            return what + (f"; the plan must {limit}" if may_stop else "")
        come = "stand there" if not ends else "come next" if forward else "come before"
        more = f", or the plan could {limit}" if may_stop and not ends else ""
        return f"{what}; {_join_alternatives(could)} could {come}{more}"


def verify(
    plan: Plan | Sequence[str],
    source: Source,
    *,
    limits: Limits | None = None,
    weights: EditWeights = UNIT_WEIGHTS,
    max_states: int = 50_000,
) -> Verification:
    """Whether a plan is valid, where it goes wrong if not, and a nearest valid one.

    ``plan`` is a plan, or a word as a sequence of terminal names; the other arguments are those of :class:`Verifier`,
    which is the thing to keep where many plans are verified against one automaton.

    Raises:
        AutomatonError: the automaton is no pushdown automaton, or a limit names a terminal that there is not.
        TypeError: the plan is a text; :func:`~formal_llm.planning.reading.read_plan_text` reads one.
    """
    return Verifier(source, limits, weights=weights, max_states=max_states).verify(plan)


def _join_alternatives(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
