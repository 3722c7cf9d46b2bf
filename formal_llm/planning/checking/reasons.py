"""Why a walk does not offer something at its position: which constraint, which limit, or the grammar itself.

The grammar or automaton without any rules has options of its own at this position. Those that the walk does not offer
lead nowhere under the rules, and a clash among the rules (:mod:`formal_llm.automata.languages.emptiness`) explains
why: the automaton for the plans that begin as this one and take that option has no word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from formal_llm.automata import PDA, Configuration, Lookahead, Transition, Word
from formal_llm.automata.languages.emptiness import RuleSet
from formal_llm.automata.languages.prefixes import ConfigurationSets
from formal_llm.automata.models.product import constrained
from formal_llm.errors import AutomatonError
from formal_llm.planning.checking.verify import Verifier
from formal_llm.planning.reading import find_names
from formal_llm.planning.walks.choices import Choice, ChoiceFork, ChoiceTable
from formal_llm.planning.walks.walk import Walk

#: Of a selection with more members the subsets are not looked at one by one.
_MEMBERS = 8


class LeftOut(NamedTuple):
    """An option that is not offered: its text, and why."""

    text: str
    reason: str


class Reasons:
    """Explains why things are not offered, for walks over one automaton.

    Args:
        table: the choices of the automaton that the walks are on.

    Raises:
        AutomatonError: it is no pushdown automaton.
    """

    def __init__(self, table: ChoiceTable) -> None:
        pda = table.lookahead.pda
        if pda is None:
            raise AutomatonError("reasons are known for grammars and pushdown automata, not for other automata")
        self._pda = pda
        self._table = table
        self._max_states = table.lookahead.max_states
        self._verifier = Verifier(pda, max_states=self._max_states)
        self._rules = self._verifier.rules
        self._free = ChoiceTable(Lookahead(self._rules.base, max_states=self._max_states), look=False)

    def left_out(self, walk: Walk) -> list[LeftOut]:
        """The options that the grammar or automaton has at the position of a walk, and that the rules leave out."""
        here = self._find_base_configuration(walk.configuration)
        if here is None:
            return []
        fork = self._free.at(here, walk.left)
        if fork.several:
            texts: Sequence[str] = [self._pda.label(choice.reads[0]) for choice in fork.choices]
        else:
            texts = walk.wording.options(fork.choices, self._rules.base.label, walk.table.vocabulary.order)
        missing = self._find_missing(walk, fork)
        return [
            LeftOut(texts[n], self._explain_choice(walk.word, here, fork.choices[n], fork.several)) for n in missing
        ]

    def count(self, walk: Walk) -> int:
        """How many options :meth:`left_out` reports."""
        here = self._find_base_configuration(walk.configuration)
        return 0 if here is None else len(self._find_missing(walk, self._free.at(here, walk.left)))

    def _find_missing(self, walk: Walk, fork: ChoiceFork) -> list[int]:
        """The places of the choices that the walk does not offer."""
        offered = {
            self._identify_choice(choice, fork.several)
            for choice in self._table.at(walk.configuration, walk.left).choices
        }
        keys = [self._identify_choice(choice, fork.several, of_base=True) for choice in fork.choices]
        return [n for n, key in enumerate(keys) if key not in offered]

    def _find_base_configuration(self, configuration: Any) -> Configuration | None:
        """The configuration of the automaton without rules; None where that of the product does not determine it."""
        state, stack = self._table.lookahead.uncounted(configuration)
        if any(constraint.uses_stack for constraint in self._rules.constraints):
            return None
        return Configuration(self._base_state(state), stack)

    def _base_state(self, state: Any) -> Any:
        # A product's state is a pair: that of what it was made of, and that of the constraint.
        for _ in self._rules.constraints:
            state = state[0]
        return state

    def _identify_choice(self, choice: Choice, several: bool, *, of_base: bool = False) -> tuple[object, ...]:
        """What a choice is, whether its moves are those of the base or of a product that was made of it."""
        if several:
            return choice.reads
        targets = [move.target if of_base else self._base_state(move.target) for move in choice.moves]
        return (choice.reads, *((move.read, move.pop, move.push) for move in choice.moves), *targets)

    def _explain_choice(self, word: Word, here: Configuration, choice: Choice, several: bool) -> str:
        if several:
            state, stacks = here.state, list(self._list_member_stacks(here, choice.reads[0]))
        elif choice.moves:
            after = self._free.lookahead.uncounted(self._free.after(here, choice))
            word = (*word, *(move.read for move in choice.moves if move.read is not None))
            state, stacks = after.state, [tuple(after.stack)]
        else:
            state, stacks = None, []  # the plan ends here
        broken = [] if several else self._verifier.broken(word, ends=not choice.moves)
        if broken:
            return f"because of {'; '.join(map(self._rules.describe_rule, broken))}"
        begun = constrained(_build_continuation(self._rules.base, word, state, stacks), self._rules.constraints)
        rules = RuleSet(begun.with_limits(self._pda.limits, self._pda.terminals), self._max_states)
        if rules.verdict_without(frozenset()) == "yes":
            return "it led to a dead end"
        clash = rules.find_clash()
        return (
            f"because of {'; '.join(map(rules.describe_rule, clash))}"
            if clash
            else "no plan can be finished from there"
        )

    def _list_member_stacks(self, here: Configuration, member: str) -> Iterator[Word]:
        """The stacks after a selection of which one member at least is chosen."""
        members = self._rules.base.selection(here) or ()
        below = tuple(here.stack)[1:]
        others = [name for name in members if name != member]
        sizes = range(len(others) + 1) if len(others) < _MEMBERS else (0, len(others))
        for size in sizes:
            for more in combinations(others, size):
                yield (*(name for name in members if name == member or name in more), *below)

    def about(self, walk: Walk, text: str) -> str:
        """Why a terminal (by name or label), or an option that is left out (by text), is not offered; or that it is.

        Raises:
            NotationError: the text may mean several terminals.
        """
        question = walk.question
        if text in self._table.automaton.terminals:
            return self._explain_terminal(walk, text)  # its very name, however much an option's text looks like it
        folded = " ".join(text.casefold().split())
        options = question.options if question is not None else ()
        if alike := [option for option in options if " ".join(option.text.casefold().split()) == folded]:
            return f"it is offered: {alike[0].number}"
        for option in self.left_out(walk) if question is not None else ():
            if " ".join(option.text.casefold().split()) == folded:
                return f"it is left out {option.reason}" if option.reason.startswith("because") else option.reason
        names = find_names(text, self._table.automaton)
        found = [self._explain_terminal(walk, name) for name in names]
        return "\n".join(found) if found else f"there is no step or option {text!r} here"

    def _explain_terminal(self, walk: Walk, name: str) -> str:
        label, word = self._pda.label(name), walk.word
        if walk.question is not None:
            fork = self._table.at(walk.configuration, walk.left)
            reading = [n for n, choice in enumerate(fork.choices, 1) if choice.reads[:1] == (name,)]
            if reading:
                return f"{label} is offered: {_join_alternatives(reading)}"
            if later := [n for n, choice in enumerate(fork.choices, 1) if self._can_come_next(walk, choice, name)]:
                return f"{label} can come next, after option {_join_alternatives(later)}"
        found = self._verifier.verify((*word, name), repair=False)
        if found.valid or (found.position is not None and found.position > len(word)):
            return f"{label} could come next, but not after the last answers: take them back"
        later_on = walk.question is not None and name in self._table.lookahead.detours(walk.configuration)
        return found.reason + ("; it may still come later" if later_on else "")

    def _can_come_next(self, walk: Walk, choice: Choice, name: str) -> bool:
        """Whether a terminal can come next after a choice that reads none."""
        if choice.reads or not choice.moves:
            return False
        after = self._table.after(walk.configuration, choice)
        state, stack = self._table.lookahead.uncounted(after)
        begun = _build_continuation(self._pda, walk.word, state, [tuple(stack)]).with_limits(
            self._pda.limits, self._pda.terminals
        )
        return ConfigurationSets(Lookahead(begun, max_states=self._max_states)).is_viable((*walk.word, name)) is True


def _build_continuation(pda: PDA, word: Word, state: Any, stacks: Iterable[Word]) -> PDA:
    """The automaton for the words that begin with ``word`` and continue as ``pda`` does from a state and a stack.

    Without a stack it is the one for ``word`` alone.
    """
    jumps = [Transition(("begun", len(word)), None, None, state, stack) for stack in stacks]
    reads = [Transition(("begun", at), name, None, ("begun", at + 1)) for at, name in enumerate(word)]
    return PDA(
        [*reads, *jumps, *pda.transitions],
        start=("begun", 0),
        accepting=pda.accepting_states if jumps else [("begun", len(word))],
        symbols=pda.symbols,
        check=False,
    )


def _join_alternatives(numbers: Sequence[int]) -> str:
    return " or ".join(map(str, numbers))
