"""Rules without left recursion: the same words, and never more than finitely many ε-moves in a row.

In the automaton of ``S -> S a | b`` the symbol S can be expanded for ever before anything is read. The left-corner
transform (Rosenkrantz and Lewis 1970) turns that round. A derivation of A begins with a symbol that is no part of the
recursion, its left corner, and what is still to come after a B is complete, until A is, is derived from ``A/B``::

    A -> X β A/B     for each B -> X β, where X is no part of the recursion
    A/B -> β A/D     for each D -> B β
    A/A -> ε

Only words stay the same, not derivations; so it serves what asks about words alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import constrained
from formal_llm.automata.models.repetition import is_sugar
from formal_llm.automata.models.symbols import Production, find_derivable_heads

#: The result may have so many productions; beyond that the rules stay as they are.
_MOST = 5_000


def without_left_recursion(pda: PDA) -> PDA:
    """An automaton with the same words, within the same limits.

    It is ``pda`` itself where that is not the automaton of a grammar (or a product with constraints on top of one),
    where it has no left recursion, where that is hidden behind symbols that derive ε, where a recursion never ends,
    or where the result were large.
    """
    base = pda.factors[0] if pda.factors else pda
    if base.cfg is None or not base.is_of_cfg:
        return pda
    productions = _left_corner_transform(base.cfg)
    if productions is None:
        return pda
    terminals = CFG(productions, base.cfg.start).terminals
    symbols = {name: symbol for name, symbol in pda.symbols.items() if name in terminals}
    made = PDA.from_cfg(CFG(productions, base.cfg.start, symbols))
    made = constrained(made, [one.without_limits for one in pda.factors[1:]]).with_limits(pda.limits, pda.terminals)
    # A limit may be about what only the automaton as it was tells of its terminals.
    return pda if pda.limits.problem(made.terminals, made.symbols) else made


def _left_corner_transform(cfg: CFG) -> list[Production] | None:
    """The productions without left recursion; None where there is none, or it stays."""
    import networkx  # only here: importing takes a while, and few rules recurse to the left

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
                return None  # hidden behind what derives ε
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
    """The symbols that what a body derives can begin with, and their places."""
    for place, name in enumerate(body):
        yield place, name
        if name not in nullable:
            return


def _transform_group(group: Sequence[str], productions: Sequence[Production], taken: set[str]) -> Iterator[Production]:
    """The productions of symbols that recurse to each other, turned round; new names are added to those taken."""
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
