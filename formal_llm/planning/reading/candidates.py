"""All the words that some lines may stand for, as an automaton.

A printed plan does not contain everything: a decision of a flowchart is no step, a text speaks for the terminals of its
production. So lines stand for a language, and questions about them are questions about automata: whether one of its
words follows the rules is whether the product with the rules has a word.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from formal_llm.automata import PDA, Lookahead, Transition, Word
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.product import constrained


@dataclass(frozen=True)
class CandidateWords:
    """The words that lines may stand for.

    Attributes:
        pda: the automaton for these words.
        lines: for the transitions that a line describes, the index of that line.
        sample: one of the words, where it was found on the way.
    """

    pda: PDA
    lines: Mapping[Transition, int]
    sample: Word | None = None

    def find_word(self, rules: PDA, max_states: int) -> Word | None:
        """One of the words that keep the constraints of a product and the limits, a short one; None for none.

        Raises:
            Undecided: the budget of states ran out before that was known.
        """
        if self.sample is not None and _keeps_rules(rules, self.sample):
            return self.sample
        pda = PDA(
            self.pda.transitions, start=self.pda.start_state, accepting=self.pda.accepting_states,
            stack=self.pda.start_stack, symbols=rules.symbols, check=False,
        )  # fmt: skip
        kept = constrained(pda, (factor.without_limits for factor in rules.factors[1:]))
        return Lookahead(kept.with_limits(rules.limits, rules.terminals), max_states=max_states).shortest_word()


def _keeps_rules(rules: PDA, word: Word) -> bool:
    """Whether a word keeps the constraints of a product, and the limits."""
    return all(bound.holds(word) for bound in rules.bounds) and all(
        factor.without_limits.accepts(word) for factor in rules.factors[1:]
    )


def has_word(candidates: CandidateWords) -> bool:
    """Whether there is a word at all."""
    return candidates.sample is not None or Lookahead(candidates.pda).completable().value != "no"


def write_step(transition: Transition, label: str) -> str | None:
    """The step that a transition of an automaton without a grammar prints; None for none."""
    if transition.decision or (transition.read is None and not transition.text):
        return None
    return transition.text or f"Use {label}"


#: Whether anything may come before the lines, or after them.
Around = Literal["", "before", "after"]


def build_run_candidates(
    pda: PDA, silent: Collection[Transition], lines: Sequence[Collection[Transition]], around: Around = ""
) -> CandidateWords:
    """The words of the runs that take one transition of each of the lines, in their order, and silent ones between.

    Only what can be reached is made: a state of the automaton together with how many of the lines are read.
    """
    leaving: dict[State, list[Transition]] = {}
    for transition in pda.transitions:
        leaving.setdefault(transition.state, []).append(transition)
    end = len(lines)
    free = {"before": 0, "after": end}.get(around)
    start = (pda.start_state, 0)
    seen: dict[State, None] = {start: None}
    todo = [start]
    made: list[Transition] = []
    line_of_transition: dict[Transition, int] = {}
    for state, at in todo:  # it grows
        for transition in leaving.get(state, ()):
            afters = [at] if transition in silent or at == free else []
            afters += [at + 1] if at < end and transition in lines[at] else []
            for after in afters:
                target = (transition.target, after)
                move = replace(transition, state=(state, at), target=target)
                made.append(move)
                if after > at:
                    line_of_transition[move] = at
                if target not in seen:
                    seen[target] = None
                    todo.append(target)
    accepting = [(state, at) for state, at in todo if at == end and state in pda.accepting_states]
    return CandidateWords(
        PDA(made, start=start, accepting=accepting, stack=pda.start_stack, check=False), line_of_transition
    )
