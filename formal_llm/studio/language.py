"""The analysis of rules while they are typed: what is wrong, the picture, how many plans, some of them."""

from __future__ import annotations

import random

from formal_llm.automata import CFG
from formal_llm.automata.languages.emptiness import why_empty
from formal_llm.automata.languages.word_lists import count_plans
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.errors import FormalLLMError, Undecided
from formal_llm.studio.drawn import drawn, rules_picture
from formal_llm.studio.guards import check_guard
from formal_llm.studio.parts import Asked, Part, Parts, text_of
from formal_llm.studio.procedures import check_procedure, picture_procedure
from formal_llm.studio.rules import (
    GUARD,
    MAX_STATES,
    PROCEDURE,
    ReadRules,
    asked_rules,
    build_problem,
    ending_of,
    problem,
)

#: How many plans are drawn at random.
_SAMPLES = 5
#: How many names of unused terminals are shown.
_NAMES = 20


def check(asked: Asked) -> Parts:
    """The problems, the picture and the language of rules, in this order, each as soon as it is known."""
    others = {PROCEDURE: check_procedure, GUARD: check_guard}
    if (ending := ending_of(asked)) in others:
        yield from others[ending](asked)
        return
    try:
        written = asked_rules(asked)
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}
        return
    yield {"part": "problems", "problems": list(written.warnings), "facts": _describe_rules(written)}
    yield drawn(rules_picture(written, text_of(asked, "near", "")))
    yield from _analyze_language(written, random.Random(str(asked.get("seed", 0))))


def picture(asked: Asked) -> Parts:
    """The picture of rules, near the symbol that is named."""
    if ending_of(asked) == PROCEDURE:
        yield from picture_procedure(asked)
    else:
        yield drawn(rules_picture(asked_rules(asked), text_of(asked, "near", "")))


def _describe_rules(written: ReadRules) -> list[Part]:
    rules, source = written.rules, written.source
    sizes: dict[str, dict[str, int]] = {}
    if isinstance(rules, CFG):
        sizes["grammar"] = {
            "nonterminal": len(rules.nonterminals), "terminal": len(rules.terminals),
            "production": len(rules.productions),
        }  # fmt: skip
    elif isinstance(rules, Flowchart):
        kinds = [rules.kind(node.id) for node in rules.nodes]
        sizes["flowchart"] = {kind: kinds.count(kind) for kind in ("decision", "step")}
    elif isinstance(rules, Behaviour):
        sizes["behaviour"] = {"state": len(rules.states)}
    if not isinstance(source, CFG):
        sizes["automaton"] = {"state": len(source.states), "transition": len(source.transitions)}
    rows = {
        name: ", ".join(_format_count(number, what) for what, number in size.items()) for name, size in sizes.items()
    }
    rows["limits"] = "; ".join(line.lstrip("%") for line in source.limits.lines()) or "none"
    return [{"name": name, "value": value} for name, value in rows.items()]


def _format_count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _analyze_language(written: ReadRules, rng: random.Random) -> Parts:
    try:
        lookahead = written.lookahead
        shortest = lookahead.shortest_word()
        if shortest is None:
            why = why_empty(lookahead.source, max_states=MAX_STATES)
            yield {"part": "problems more", "problems": [build_problem("error", f"no valid plan: {why.reason}")]}
            return
        yield {"part": "shortest", "plan": written.word(shortest)}
        many = count_plans(lookahead)
        yield {"part": "count", "text": many.describe_count("of at most {} terminals"), "number": str(many.number)}
        words = [lookahead.sample(rng, of=many.of, max_length=many.bound) for _ in range(_SAMPLES)]
        yield {"part": "samples", "plans": [written.word(word) for word in dict.fromkeys(words) if word is not None]}
        usable = lookahead.detours(lookahead.automaton.start())
        if unused := [name for name in lookahead.automaton.terminals if name not in usable]:
            more = f" and {len(unused) - _NAMES:,} more" if len(unused) > _NAMES else ""
            names = ", ".join(unused[:_NAMES]) + more
            yield {"part": "problems more", "problems": [build_problem("warning", f"in no plan: {names}")]}
    except Undecided as error:
        yield {"part": "undecided", "reason": str(error)}
    except FormalLLMError as error:
        yield {"part": "problems more", "problems": [problem(error)]}
