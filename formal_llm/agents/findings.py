"""What is wrong with rules, reported before any run.

A monitor steers round dead ends, since it looks ahead. A run without a monitor, or one that is only checked one step
ahead, can enter them: those are the *traps*, events that no rule forbids by itself and after which the rules together
can no longer be kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from formal_llm import automata
from formal_llm.exports import LazyFunction

if TYPE_CHECKING:
    from formal_llm.agents.compiled import CompiledRules, RuleGroup
    from formal_llm.automata import Word
    from formal_llm.automata.languages.fronts import ConfigurationSet

# A guard needs the class of findings alone, and a hook of one starts often.
_explain_refusal = LazyFunction("formal_llm.agents.refusal:explain_refusal")
_why_empty = LazyFunction("formal_llm.automata.languages.emptiness:why_empty")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is probably not meant.

    Attributes:
        kind: ``"empty"``: nothing keeps the rules. ``"trap"``: an event that can come, with no way to an end behind it.
            ``"never"``: an event that no whole trace holds. ``"not decided"``: not all places were looked at.
        name: the event; empty where it is about no single one.
        message: a sentence for a person.
        trace: the shortest trace that shows it; of a trap its last event is the one that must not come.
        limits, constraints: what is to blame for a trap, as of a :class:`~formal_llm.agents.Refusal`.
        by_environment: whether the event of a trap comes from the environment, so that no agent can keep out of it.
    """

    kind: Literal["empty", "trap", "never", "not decided"]
    name: str
    message: str
    trace: Word = ()
    limits: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    by_environment: bool = False

    def __str__(self) -> str:
        return self.message


def find_rule_problems(
    rules: CompiledRules, environment: Iterable[str] = (), max_places: int = 2_000
) -> tuple[Finding, ...]:
    """What is wrong with rules.

    Args:
        rules: the rules.
        environment: what comes from the environment, besides the states of a behaviour with that flag.
        max_places: how many places of each group of rules are looked at, the nearest to the start first.

    Returns:
        Of each event the shortest trap, and what can never come. Where there are more places, that is reported, and
        there may be traps behind them; what never comes is known nevertheless, as far as the budget of states reaches.
    """
    empty = [group for group in rules.groups if group.fronts.start.is_viable is False]
    if empty:
        reasons = [_why_empty(group.source, max_states=group.max_states) for group in empty]
        message = "; ".join(why.reason for why in reasons)
        return tuple(
            Finding("empty", "", f"nothing keeps the rules: {message}", (), why.limits, why.constraints)
            for why in reasons[:1]
        )
    outside = rules.environment | set(environment)
    found: list[Finding] = []
    for group in rules.groups:
        found += _check_group(rules, group, outside, max_places)
    return tuple(found)


def _check_group(rules: CompiledRules, group: RuleGroup, outside: frozenset[str], max_places: int) -> Iterable[Finding]:
    traps: dict[str, Word] = {}
    seen: dict[ConfigurationSet, None] = {group.fronts.start: None}
    todo: deque[tuple[ConfigurationSet, Word]] = deque([(group.fronts.start, ())])
    come: set[str] = set()
    whole = True
    while todo:
        front, word = todo.popleft()
        for name in dict.fromkeys((*front.next_terminals, *front.readable_terminals)):
            if group.letters is not None and name not in group.letters:
                continue
            if name in front.allowed_terminals:
                come.add(name)
                after = front.after_terminal(name)
                if after in seen:
                    continue
                if len(seen) >= max_places:
                    whole = False
                    continue
                seen[after] = None
                todo.append((after, (*word, name)))
            elif front.word is None:  # beyond the cap it is not known what the automaton could read by itself
                traps.setdefault(name, (*word, name))
    for name, trace in traps.items():
        yield _describe_trap(rules, name, trace, name in outside)
    for name in sorted(set(group.letters or group.fronts.terminals) - come, key=list(rules.owners).index):
        if whole or not _can_come(group, name):
            yield Finding("never", name, f"{name} can never come: no trace that keeps the rules holds it")
    if not whole:
        yield Finding("not decided", "", f"only the {max_places} places nearest to the start were looked at for traps")


def _describe_trap(rules: CompiledRules, name: str, trace: Word, by_environment: bool) -> Finding:
    why = _explain_refusal(rules, trace[:-1], name, {}, may_stop=False)
    after = f"after {', '.join(trace[:-1])}" if trace[:-1] else "at the start"
    blamed = "; ".join((*why.limits, *(f"constraint {one!r}" for one in why.constraints)))
    because = f" (because of {blamed})" if blamed else ""
    who = ", which comes from the environment," if by_environment else ""
    message = f"{after} {name}{who} can come, and there is no way to an end behind it{because}"
    return Finding("trap", name, message, trace, why.limits, why.constraints, by_environment)


def _can_come(group: RuleGroup, name: str) -> bool:
    """Whether a whole trace can hold an event; True where that is not known."""
    if not isinstance(group.source, automata.PDA) or name not in group.source.terminals:
        return True
    required = automata.Lookahead(group.source, automata.Limits(at_least={name: 1}), max_states=group.max_states)
    return required.completable().value != "no"
