"""Errors and likely mistakes in a grammar that can be read.

An empty language is an error. The others are warnings: unproductive and unreachable symbols, terminals that look like a
misspelled nonterminal, and rules that look like nested calls in a grammar that does not declare its order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence

from formal_llm.automata.languages.emptiness import why_no_plan
from formal_llm.automata.lookahead.cheapest import least_costs
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.verdicts import SEARCH_TIME, START, TRIES
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import constrained
from formal_llm.automata.models.repetition import is_sugar
from formal_llm.automata.models.symbols import (
    Diagnostic,
    Production,
    find_derivable_heads,
    find_reachable,
    selection_members,
)

#: The minimum similarity (difflib's ratio) of two names if one is a misspelling of the other.
_NEAR = 0.85
#: The maximum number of pairs of names to compare; a grammar with more candidates is not searched further.
_COMPARISONS = 50_000
#: How many rules with two inputs or more are looked at, to tell whether a grammar is one of nested calls.
_CALLS = 100


def empty_reason(cfg: CFG) -> Diagnostic | None:
    """Return why the grammar describes no word at all, limits included; None if it describes some."""
    if cfg.start not in cfg.productive:
        stuck = [name for name in cfg.nonterminals if name in cfg.reachable and name not in cfg.productive]
        return Diagnostic(
            "empty",
            stuck[0],
            f"the language is empty: no word can be derived from {_list_some_names(stuck)}",
            "every rule of such a symbol leads back to one; give it a rule that ends",
        )
    if not cfg.limits or (not cfg.limits.times and not cfg.limits.rules and _cheapest_word_keeps_limits(cfg)):
        return None
    why = why_no_plan(cfg)
    if why is None:
        return None
    lines = [*why.constraints, *why.limits]
    names = [word for line in lines for word in line.split()[1:] if word in cfg.terminals]
    one = len(lines) == 1
    listed = "; ".join(lines)
    message = f"no word keeps {listed}" if one else f"the language is empty under these limits, which clash: {listed}"
    return Diagnostic("empty", names[0] if names else cfg.start, message, "loosen it" if one else "loosen one of them")


def _cheapest_word_keeps_limits(cfg: CFG) -> bool:
    """Return whether the word of the derivation with the fewest productions and terminals keeps the limits.

    If so, nothing else needs to be determined, which would take time in proportion to the grammar. Only the uses
    of each terminal in the word are counted, since the word may be very long.
    """
    rules = [(p.head, 1 + len(p.body), [name for name in p.body if name in cfg.by_head]) for p in cfg.expanded]
    costs = least_costs(rules)
    cheapest = {
        production.head: production
        for production, (head, cost, parts) in zip(cfg.expanded, rules, strict=True)
        if all(name in costs for name in parts) and cost + sum(costs[name] for name in parts) == costs[head]
    }
    uses = Counter({cfg.start: 1})
    for head in reversed(costs):  # found before it was whatever its derivation needs
        if uses[head]:
            for name in cheapest[head].body:
                uses[name] += uses[head]
    limits, used = cfg.limits, [name for name in uses if name in cfg.terminals]
    numbers = {name: symbol.numbers for name, symbol in cfg.symbols.items()}
    bounds = limits.bounds(dict.fromkeys((*used, *limits.at_least)), numbers)
    totals = [(bound, sum(uses[name] * weight for name, weight in bound.weights.items())) for bound in bounds]
    return all(bound.least <= total and (bound.most is None or total <= bound.most) for bound, total in totals)


def cfg_warnings(cfg: CFG) -> tuple[Diagnostic, ...]:
    """Return warnings of constructs that are legal but look like mistakes."""
    found: list[Diagnostic] = []
    for name in cfg.nonterminals:
        if name not in cfg.productive:
            found.append(Diagnostic("unproductive", name, f"no word can be derived from {name}; its rules never end"))
        if name not in cfg.reachable:
            found.append(Diagnostic("unreachable", name, f"{name} cannot be reached from the start symbol {cfg.start}"))
    return (*found, *_find_misspelled_names(cfg), *_find_foreign_notation(cfg))


def nested_calls_warning(cfg: CFG) -> Diagnostic | None:
    """Return the warning of a grammar without ``%order`` that looks like nested calls, a tool before its inputs.

    It looks so if every body of two symbols or more begins with a terminal, or a choice of one, and one of them is a
    call that needs a stack: behind its tool are only nonterminals, and one before the last derives the rule's head
    again, as in ``T -> F T T``. Steps in their order do not look so: ``Day -> wake Breakfast work``, ``S -> a S | b``,
    ``S -> open S close | ε``.
    """
    tools = cfg.classes | cfg.terminals.keys()
    bodies = [(p.head, p.body) for p in cfg.expanded if len(p.body) > 1 and p.head in cfg.reachable]
    if any(body[0] not in tools for _, body in bodies):
        return None
    calls = [rule for rule in bodies if len(rule[1]) > 2 and all(name in cfg.nonterminals for name in rule[1][1:])]
    for head, body in calls[:_CALLS]:
        below = find_reachable(body[1:-1], lambda name: (one for p in cfg.by_head.get(name, ()) for one in p.body))
        if head in below:
            message = (
                f"the rule {head} -> {' '.join(body)} looks like nested calls, {body[0]} before its inputs; "
                f"but words are the order in which steps are carried out. Write %order prefix if inputs come first, "
                f"%order forward if {body[0]} comes first"
            )
            return Diagnostic("order", head, message)
    return None


#: Notations of other grammar formats, which here are parts of names; and their equivalents.
_FOREIGN = (
    (re.compile(r"\[(\w+)\]"), "{0} or nothing", "{0}?"),
    (re.compile(r"\{(\w+)\}"), "any number of {0}", "{0}*"),
    (re.compile(r"['`](\w+)['`]"), "the terminal {0}", "{0}"),
)


def _find_foreign_notation(cfg: CFG) -> list[Diagnostic]:
    """Find names that look like repetitions, options and terminals in other notations."""
    found = []
    for name in cfg.terminals:
        if name in cfg.symbols or name[-1:].isalnum():
            continue
        for pattern, meaning, written in _FOREIGN:
            match = pattern.fullmatch(name)
            if match is not None:
                means, write = meaning.format(match[1]), written.format(match[1])
                found.append(Diagnostic("typo", name, f"{name} is the name of a terminal; {means} is written: {write}"))
    return found


def _find_misspelled_names(cfg: CFG) -> list[Diagnostic]:
    """Find terminals that nearly equal a nonterminal, in a grammar where terminals do not look like that."""
    described = {name for name, symbol in cfg.symbols.items() if symbol.label or symbol.numbers}
    chosen = {name for symbol in cfg.selections for name in selection_members(symbol) or ()}
    by_folded: dict[str, str] = {}
    for head in cfg.nonterminals:
        by_folded.setdefault(head.casefold(), head)
    nearest = _NearMissFinder(by_folded)
    warnings = []
    for name in cfg.terminals:
        if name in described or name in chosen:
            continue
        folded = name.casefold()
        meant = by_folded.get(folded) if len(name) > 1 else None
        if meant is None and len(name) >= 4:
            near = nearest.find_nearest(folded)
            # Numbered families (step1, step2) are similar on purpose.
            meant = by_folded[near] if near and _without_digits(near) != _without_digits(folded) else None
        # "Verb -> verb" is a convention, not a mistake.
        if meant is not None and any(name in production.body for production in cfg.by_head[meant]):
            meant = None
        if meant is not None:
            warnings.append(Diagnostic("typo", name, f"{name} has no rule, so it is a terminal; did you mean {meant}?"))
    return warnings


class _NearMissFinder:
    """Finds the most similar of many names, without comparing all pairs.

    Two names are at most as similar as their common characters allow. Names are grouped by their characters other
    than digits and the number of their digits, so that a numbered family is ruled out in one step.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._groups: dict[tuple[str, int], list[str]] = {}
        for name in names:
            self._groups.setdefault(_count_characters(name), []).append(name)
        self._counted = [
            (Counter(letters), len(letters), digits, group) for (letters, digits), group in self._groups.items()
        ]
        self._left = _COMPARISONS

    def find_nearest(self, name: str) -> str | None:
        """Return the most similar name if it is a likely misspelling; None if there is none, or too much was asked."""
        letters, digits = _count_characters(name)
        counts = Counter(letters)
        candidates: list[str] = []
        for others, size, more, group in self._counted:
            least = _NEAR * (len(name) + size + more) / 2 - min(digits, more)
            if least <= min(len(letters), size) and least <= (counts & others).total():
                candidates += group
        self._left -= len(candidates)
        if not candidates or self._left < 0:
            return None
        import difflib  # slow to load, and rarely needed

        near = difflib.get_close_matches(name, candidates, n=1, cutoff=_NEAR)
        return near[0] if near else None


def _count_characters(name: str) -> tuple[str, int]:
    """Return the characters of a name other than digits, sorted, and the number of its digits."""
    letters = _without_digits(name)
    return "".join(sorted(letters)), len(name) - len(letters)


def _without_digits(name: str) -> str:
    return "".join([character for character in name if not character.isdigit()])


def _list_some_names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


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


#: The maximum number of productions of the result; beyond it, the rules stay unchanged.
_MOST = 5_000


def without_left_recursion(pda: PDA) -> PDA:
    """Return an automaton with the same words, within the same limits.

    The result is ``pda`` itself if that is not the automaton of a grammar (or a product of one with constraints),
    if it has no left recursion, if that is hidden behind symbols that derive ε, if a recursion never ends,
    or if the result would be large.
    """
    base = pda.factors[0] if pda.factors else pda
    if base.cfg is None or not base.is_of_cfg:
        return pda
    productions = _left_corner_transform(base.cfg)
    if productions is None:
        return pda
    terminals = CFG(productions, base.cfg.start).terminals
    symbols = {name: symbol for name, symbol in pda.symbols.items() if name in terminals}
    result = PDA.from_cfg(CFG(productions, base.cfg.start, symbols))
    result = constrained(result, [one.without_limits for one in pda.factors[1:]]).with_limits(pda.limits, pda.terminals)
    # A limit may concern terminals whose data only the original automaton has.
    return pda if pda.limits.problem(result.terminals, result.symbols) else result


def _left_corner_transform(cfg: CFG) -> list[Production] | None:
    """Return the productions without left recursion; None if there is none, or it cannot be removed."""
    import networkx  # only here: slow to import, and few rules are left-recursive

    nullable = find_derivable_heads([(production.head, production.body) for production in cfg.expanded], ())
    corners: networkx.DiGraph[str] = networkx.DiGraph()
    for production in cfg.productions:
        corners.add_edges_from((production.head, name) for _, name in _possible_left_corners(production.body, nullable))
    recursive: dict[str, int] = {}
    groups: list[set[str]] = []
    for group in networkx.strongly_connected_components(corners):
        if len(group) > 1 or any(corners.has_edge(name, name) for name in group):
            recursive.update(dict.fromkeys(group, len(groups)))
            groups.append(group)
    if not groups or any(is_sugar(name) for name in recursive):
        return None
    by_group: dict[int, list[Production]] = {}
    found = [p for p in cfg.productions if p.head not in recursive]
    for production in cfg.productions:
        number = recursive.get(production.head)
        if number is not None:
            if any(
                place and name in groups[number] for place, name in _possible_left_corners(production.body, nullable)
            ):
                return None  # hidden behind symbols that derive ε
            by_group.setdefault(number, []).append(production)
    for number, group in enumerate(groups):
        if all(production.body[:1] and production.body[0] in group for production in by_group[number]):
            return None  # these derive nothing at all, and would look like terminals
    if len(found) + sum(len(group) * len(by_group[number]) for number, group in enumerate(groups)) > _MOST:
        return None
    taken = {*cfg.nonterminals, *cfg.terminals}
    for number, group in enumerate(groups):
        found += _transform_group(sorted(group), by_group[number], taken)
    return found


def _possible_left_corners(body: Sequence[str], nullable: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield the symbols with which strings derived from a body can begin, and their positions."""
    for place, name in enumerate(body):
        yield place, name
        if name not in nullable:
            return


def _transform_group(group: Sequence[str], productions: Sequence[Production], taken: set[str]) -> Iterator[Production]:
    """Yield the transformed productions of mutually recursive symbols; new names are added to ``taken``."""
    rest: dict[tuple[str, str], str] = {}
    for whole in group:
        for part in group:
            name = f"{whole}/{part}"
            while name in taken:
                name += "'"
            taken.add(name)
            rest[whole, part] = name
    for whole in group:
        yield Production(rest[whole, whole], ())
        for production in productions:
            after = rest[whole, production.head]
            if production.body[:1] and (whole, production.body[0]) in rest:
                yield Production(rest[whole, production.body[0]], (*production.body[1:], after))
            else:
                yield Production(whole, (*production.body, after))
