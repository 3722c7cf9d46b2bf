"""How long the words of a grammar are, its limits aside: just as in :meth:`CFG.accepts`."""

from __future__ import annotations

from formal_llm.automata.lookahead.cheapest import least_costs
from formal_llm.automata.models.cfg import CFG


def shortest_length(cfg: CFG) -> int | None:
    """The number of terminals of a shortest word, None for the empty language (Knuth 1977)."""
    costs = least_costs(
        (p.head, sum(name in cfg.terminals for name in p.body), [name for name in p.body if name not in cfg.terminals])
        for p in cfg.expanded
    )
    return int(costs[cfg.start]) if cfg.start in costs else None


def is_finite(cfg: CFG) -> bool:
    """Whether the language has finitely many words (none at all counts as finite)."""
    return cfg.recognizer.empty or _longest_word_length(cfg) is not None


def longest_length(cfg: CFG) -> int | None:
    """The number of terminals of a longest word; None where there is none, or no word at all."""
    return None if cfg.recognizer.empty else _longest_word_length(cfg)


def _longest_word_length(cfg: CFG) -> int | None:
    """The longest word of a language that is not empty, None for an infinite one.

    It is infinite when some useful symbol derives itself with more beside it. Otherwise the lengths are worked out from
    the symbols that lead to no others upwards; symbols that derive each other have the same.
    """
    import networkx

    recognizer = cfg.recognizer
    rules = {head: bodies for head, bodies in recognizer.by_head.items() if head in cfg.reachable}
    graph = networkx.DiGraph((head, name) for head in rules for body in rules[head] for name in body)
    graph.add_node(cfg.start)
    longest = dict.fromkeys(recognizer.bits, 1)
    for group in networkx.strongly_connected_components(graph):  # those that are led to come first
        if any(
            name in group and any(recognizer.first.get(n) for n in (*body[:place], *body[place + 1 :]))
            for head in group
            for body in rules.get(head, ())
            for place, name in enumerate(body)
        ):
            return None
        lengths = (
            sum(longest[name] for name in body if name not in group) for head in group for body in rules.get(head, ())
        )
        most = max(lengths, default=1)
        longest.update(dict.fromkeys(group, most))
    return longest[cfg.start]
