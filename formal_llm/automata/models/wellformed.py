"""What makes a grammar well-formed: names that the notation can write, and no mention of a symbol that there is not."""

from __future__ import annotations

import re

from formal_llm.automata.models.cfg import CFG, members
from formal_llm.errors import GrammarError

#: What a symbol's name may look like: no blanks, quotes, bars, commas, parentheses, equals or comment signs, no arrow.
NAME = r'(?!%)(?:(?!->|→|::=)[^\s\x00-\x1f\x7f|"#(),=])+'
_NAME = re.compile(NAME)
#: What stands for an empty body, and so names no symbol.
EMPTY_WORDS = ("ε", "%empty")


def check_wellformed(cfg: CFG) -> None:
    """Raise for what no grammar may have.

    Raises:
        GrammarError: a name that the notation cannot write, a selection that is none, an unknown start symbol, a label,
            number or limit of what there is not.
    """
    _check_symbols(cfg)
    _check_selections(cfg)
    if cfg.start not in cfg.nonterminals:
        raise GrammarError(cfg.unknown("start symbol", cfg.start, cfg.nonterminals))
    _check_descriptions(cfg)
    _check_limits(cfg)


def _check_symbols(cfg: CFG) -> None:
    for name in {*cfg.nonterminals, *cfg.terminals}:
        if not _NAME.fullmatch(name) or name in EMPTY_WORDS:
            raise GrammarError(
                f"{name!r} cannot be the name of a symbol",
                suggestion='names have no blanks, quotes, commas, parentheses, "|", "#" or "=" and no arrow',
            )


def _check_selections(cfg: CFG) -> None:
    for chosen in cfg.selections:
        names = members(chosen) or ()
        if not chosen.startswith("some("):
            raise GrammarError(f"{chosen!r} cannot be the name of a symbol", suggestion="write some(...)")
        if len(set(names)) < len(names):
            raise GrammarError(f"{chosen} names a terminal twice")
        for name in names:
            if name in cfg.nonterminals:
                raise GrammarError(f"{chosen} holds the nonterminal {name}; a selection is made of terminals")


def _check_descriptions(cfg: CFG) -> None:
    """Labels, descriptions and numbers."""
    known = {*cfg.nonterminals, *cfg.terminals}
    for name, symbol in cfg.symbols.items():
        if name not in known:
            raise GrammarError(cfg.unknown("symbol with a label", name, known))
        if symbol.numbers and name in cfg.nonterminals:
            raise GrammarError(f"{name} carries numbers, but it is a nonterminal; only terminals carry numbers")
        for quantity, amount in symbol.numbers.items():
            if not _NAME.fullmatch(quantity) or not 0 <= amount < float("inf"):
                raise GrammarError(f"{name} carries {quantity!r} = {amount}; amounts are named, and numbers from 0")


def _check_limits(cfg: CFG) -> None:
    for name in (*cfg.limits.at_most, *cfg.limits.at_least):
        if name in cfg.nonterminals:
            raise GrammarError(f"the limit on {name} cannot be counted: it is a nonterminal, limits count terminals")
        if name not in cfg.terminals:
            raise GrammarError(cfg.unknown("symbol in a limit", name, cfg.terminals))
    quantities = {name for symbol in cfg.symbols.values() for name in symbol.numbers}
    for bound in cfg.limits.sums:
        if bound.quantity not in quantities:
            raise GrammarError(cfg.unknown("quantity in a limit", bound.quantity, quantities))
