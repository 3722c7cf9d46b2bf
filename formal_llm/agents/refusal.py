"""Why an event cannot come now: the rules to blame, and what is allowed instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from formal_llm.agents.compiled import CompiledRules, RuleGroup
from formal_llm.automata import PDA, Word
from formal_llm.automata.languages.emptiness import why_empty
from formal_llm.automata.languages.prefixes import Allowed
from formal_llm.errors import did_you_mean

#: How many of the names that are allowed a sentence lists.
_LISTED = 10


@dataclass(frozen=True)
class Refusal:
    """Why something cannot come now.

    Attributes:
        name: what the rules call the event; None where the end is refused.
        reason: a sentence for a person, or for the model that wanted it.
        allowed: what could come instead.
        may_stop: whether the run could end here.
        limits: the limits to blame, as lines of the grammar notation.
        constraints: the constraints to blame, by name. As for a :class:`~formal_llm.Verification`: those that are
            broken by this event alone, else a smallest set that together leaves no way to an end after it. Both are
            empty where the automaton itself, without limits and constraints, cannot continue so.
    """

    name: str | None
    reason: str
    allowed: Mapping[str, Allowed]
    may_stop: bool
    limits: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.reason


def explain_refusal(
    rules: CompiledRules, word: Word, name: str | None, allowed: Mapping[str, Allowed], may_stop: bool
) -> Refusal:
    """Why ``name`` cannot come after ``word``, or why it cannot end there where ``name`` is None."""
    limits: list[str] = []
    constraints: list[str] = []
    shown: list[str] = []
    if name is not None and name not in rules.owners:
        near = did_you_mean(name, rules.owners)
        what = f"{name!r} is nothing that the rules know" + (f" (did you mean {near}?)" if near else "")
    else:
        what = "it cannot end yet" if name is None else f"{name} cannot come now"
        for group in _find_forbidding_groups(rules, word, name):
            if group.fronts.start.is_viable is False:
                why = why_empty(group.source, max_states=group.max_states)
                limits += why.limits
                constraints += why.constraints
                what = f"{what}: nothing keeps the rules ({why.reason})"
            elif isinstance(group.source, PDA):
                # Of the word itself nothing is wrong; what comes after it is.
                read = group.project_word(word)
                blamed = group.verifier.to_blame((*read, name) if name is not None else read, len(read))
                of = group.verifier.rules
                limits += of.name_rules(rule for rule in blamed if of.is_limit(rule))
                constraints += of.name_rules(rule for rule in blamed if not of.is_limit(rule))
                shown += [of.describe_rule(rule) for rule in blamed]
    if shown:
        what += f" because of {'; '.join(shown)}"
    if could := _join_with_or(list(allowed)):
        what += f"; {could} could come next" + (", or it could end" if may_stop and name is not None else "")
    elif may_stop:
        what += "; it must end here"
    return Refusal(name, what, allowed, may_stop, tuple(limits), tuple(constraints))


def _find_forbidding_groups(rules: CompiledRules, word: Word, name: str | None) -> list[RuleGroup]:
    """The groups of rules that forbid it."""
    empty = [group for group in rules.groups if group.fronts.start.is_viable is False]
    if empty:
        return empty
    if name is None:
        return [group for group in rules.groups if not group.fronts.after_word(group.project_word(word)).may_stop]
    number = rules.owners[name]
    return [] if number is None else [rules.groups[number]]


def _join_with_or(names: Sequence[str]) -> str:
    if len(names) > _LISTED:
        return f"{', '.join(names[:_LISTED])} or one of {len(names) - _LISTED} others"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}" if names else ""
