"""What is wrong, or looks wrong, with a grammar that can be read.

An empty language is an error. The rest are warnings: unproductive and unreachable symbols, and terminals that look
like a nonterminal with a slip in its name.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from formal_llm.automata.cfg import CFG, members


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something to tell the author of a grammar.

    Attributes:
        kind: ``"empty"``, ``"unproductive"``, ``"unreachable"`` or ``"typo"``.
        symbol: the symbol it is about.
        message: what is wrong, in one sentence.
        suggestion: the way out, where there is one to name.
    """

    kind: str
    symbol: str
    message: str
    suggestion: str | None = None

    def __str__(self) -> str:
        return self.message


def empty_reason(cfg: CFG) -> Diagnostic | None:
    """Why the grammar describes no word at all, limits included; None if it describes some."""
    if cfg.start not in cfg.productive:
        stuck = [name for name in cfg.nonterminals if name in cfg.reachable and name not in cfg.productive]
        return Diagnostic(
            "empty",
            stuck[0],
            f"the language is empty: no word can be derived from {_listed(stuck)}",
            "every rule of such a symbol leads back to one; give it a rule that ends",
        )
    if not cfg.limits:
        return None
    from formal_llm.automata.explain import clash
    from formal_llm.automata.lookahead import Lookahead

    lookahead = Lookahead(cfg)
    if lookahead.completable().value != "no":
        return None
    lines = clash(lookahead.automaton)
    names = [line.split()[2] for line in lines if len(line.split()) == 3]
    return Diagnostic(
        "empty",
        names[0] if names else cfg.start,
        f"the language is empty under these limits, which clash: {'; '.join(lines)}",
        "loosen one of them",
    )


def check_grammar(cfg: CFG) -> tuple[Diagnostic, ...]:
    """The warnings about a grammar."""
    found: list[Diagnostic] = []
    for name in cfg.nonterminals:
        if name not in cfg.productive:
            found.append(Diagnostic("unproductive", name, f"no word can be derived from {name}; its rules never end"))
        if name not in cfg.reachable:
            found.append(Diagnostic("unreachable", name, f"{name} cannot be reached from the start symbol {cfg.start}"))
    return (*found, *_slips(cfg))


def _slips(cfg: CFG) -> list[Diagnostic]:
    """Terminals that are one slip away from a nonterminal, in a grammar where terminals do not look like that."""
    described = {name for name, symbol in cfg.symbols.items() if symbol.label or symbol.numbers}
    chosen = {name for symbol in cfg.selections for name in members(symbol) or ()}
    by_folded: dict[str, str] = {}
    for head in cfg.nonterminals:
        by_folded.setdefault(head.casefold(), head)
    slips = []
    for name in cfg.terminals:
        if name in described or name in chosen:
            continue
        folded = name.casefold()
        meant = by_folded.get(folded) if len(name) > 1 else None
        if meant is None and len(name) >= 4:
            near = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.85)
            # Numbered families (step1, step2) are near each other on purpose.
            meant = by_folded[near[0]] if near and _without_digits(near[0]) != _without_digits(folded) else None
        # "Verb -> verb" is a habit, not a slip.
        if meant is not None and any(name in production.body for production in cfg.by_head[meant]):
            meant = None
        if meant is not None:
            slips.append(Diagnostic("typo", name, f"{name} has no rule, so it is a terminal; did you mean {meant}?"))
    return slips


def _without_digits(name: str) -> str:
    return "".join(character for character in name if not character.isdigit())


def _listed(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
