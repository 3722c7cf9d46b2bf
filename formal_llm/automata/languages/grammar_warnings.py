"""Errors and likely mistakes in a grammar that can be read.

An empty language is an error. The others are warnings: unproductive and unreachable symbols, rules by which a symbol
becomes itself, names that look like another name or like the sign of the empty word, and rules that look like
nested calls in a grammar that does not declare its order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from formal_llm.automata.languages.emptiness import why_no_plan
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.symbols import Diagnostic, find_derivable_heads, find_reachable, selection_members

#: The minimum similarity (difflib's ratio) of two names if one is a misspelling of the other.
_NEAR = 0.85
#: The maximum number of pairs of names to compare; in a grammar with more, only case is looked at.
_COMPARISONS = 20_000
#: How many rules with two inputs or more are looked at, to tell whether a grammar is one of nested calls.
_CALLS = 100
#: Names of the empty word in books and other notations.
_EMPTY_WORDS = frozenset(("epsilon", "eps", "lambda", "empty", "\\epsilon", "λ", "ϵ", "∅"))
#: The regular endings of English words.
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|e)$|(?<=\w\w)es$|(?<=\w[^suiy])s$")


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
    why = why_no_plan(cfg) if cfg.limits else None
    if why is None:
        return None
    lines = [*why.constraints, *why.limits]
    names = [word for line in lines for word in line.split()[1:] if word in cfg.terminals]
    one = len(lines) == 1
    listed = "; ".join(lines)
    message = f"no word keeps {listed}" if one else f"the language is empty under these limits, which clash: {listed}"
    return Diagnostic("empty", names[0] if names else cfg.start, message, "loosen it" if one else "loosen one of them")


def cfg_warnings(cfg: CFG) -> tuple[Diagnostic, ...]:
    """Return warnings of constructs that are legal but look like mistakes."""
    found: list[Diagnostic] = []
    for name in cfg.nonterminals:
        if name not in cfg.productive:
            found.append(Diagnostic("unproductive", name, f"no word can be derived from {name}; its rules never end"))
        if name not in cfg.reachable:
            found.append(Diagnostic("unreachable", name, f"{name} cannot be reached from the start symbol {cfg.start}"))
    for name in cfg.terminals:
        if name.casefold() in _EMPTY_WORDS and any(production.body == (name,) for production in cfg.productions):
            message = f"{name} is read as the name of a step; if the empty word is meant, write ε"
            found.append(Diagnostic("typo", name, message))
    return (*found, *_find_cycles(cfg), *_find_misspelled_names(cfg))


def _find_cycles(cfg: CFG) -> Iterator[Diagnostic]:
    """Warn of symbols that derive themselves alone: a choice that leads nowhere, as often as it is taken."""
    nullable = find_derivable_heads([(one.head, one.body) for one in cfg.expanded], ())
    becomes: dict[str, dict[str, None]] = {}
    for production in cfg.productions:
        solid = [name for name in production.body if name not in nullable]
        if production.head in cfg.productive and len(solid) < 2:
            alone = [name for name in solid or production.body if name in cfg.productive]
            becomes.setdefault(production.head, {}).update(dict.fromkeys(alone))
    ending = find_derivable_heads([(head, [*targets]) for head, targets in becomes.items()], cfg.terminals)
    becomes = {head: targets for head, targets in becomes.items() if head not in ending}
    reported: set[str] = set()
    for head, targets in becomes.items():
        circle = find_reachable(targets, lambda name: becomes.get(name, ()))
        if head in circle and head not in reported:
            mutual = [name for name in circle if head in find_reachable((name,), lambda one: becomes.get(one, ()))]
            reported.update(mutual)
            way = f" (by {', '.join(name for name in mutual if name != head)})" if len(mutual) > 1 else ""
            message = f"{head} can become {head} again{way}, without any step: leave out the rule that leads back"
            yield Diagnostic("cycle", head, message)


def nested_calls_warning(cfg: CFG) -> Diagnostic | None:
    """Return the warning of a grammar without ``%order`` that looks like nested calls, a tool before its inputs.

    It looks so if every body of two symbols or more begins with a terminal, or a choice of one, and one of them is a
    call that needs a stack: behind its tool are only nonterminals, and one before the last derives the rule's head
    again, as in ``T -> F T T``. Steps in their order do not look so: ``Day -> wake Breakfast work``, ``S -> a S | b``,
    ``S -> open S close | ε``. Tools with one input each look so where all that stands behind tools are two kinds of
    things or more, with labels: ``Text "a text" -> describe Image | translate Text``.
    """
    tools = cfg.classes | cfg.terminals.keys()
    bodies = [(p.head, p.body) for p in cfg.expanded if len(p.body) > 1 and p.head in cfg.reachable]
    if any(body[0] not in tools for _, body in bodies):
        return None
    calls = [rule for rule in bodies if len(rule[1]) > 2 and all(name in cfg.nonterminals for name in rule[1][1:])]
    described = {name for name in cfg.nonterminals if name in cfg.symbols and cfg.symbols[name].label}
    inputs = {name for _, body in bodies for name in body[1:]}
    typed = len(inputs) > 1 and inputs <= described
    for head, body in (bodies if typed else calls)[:_CALLS]:
        first = body[1:] if typed else body[1:-1]
        if head in find_reachable(first, lambda name: (one for p in cfg.by_head.get(name, ()) for one in p.body)):
            message = (
                f"the rule {head} -> {' '.join(body)} looks like nested calls, {body[0]} before its inputs; "
                f"but words are the order in which steps are carried out. Write %order prefix if inputs come first, "
                f"%order forward if {body[0]} comes first"
            )
            return Diagnostic("order", head, message)
    return None


def _find_misspelled_names(cfg: CFG) -> Iterator[Diagnostic]:
    """Find terminals that nearly equal a nonterminal, in a grammar where terminals do not look like that."""
    from difflib import get_close_matches  # slow to load, and only texts are searched for slips

    described = {name for name, symbol in cfg.symbols.items() if symbol.label or symbol.numbers}
    chosen = {name for symbol in cfg.selections for name in selection_members(symbol) or ()}
    heads: dict[str, str] = {}
    for head in cfg.nonterminals:
        heads.setdefault(head.casefold(), head)
    names = [name for name in cfg.terminals if name not in described and name not in chosen]
    few = len(names) * len(heads) <= _COMPARISONS
    used = {name for production in cfg.productions for name in production.body}
    for name in names:
        folded = name.casefold()
        meant = heads.get(folded) if len(name) > 1 else None
        if meant is None and few and len(name) >= 4:
            # Four letters of which one is wrong are alike if the rule has no other use.
            near = get_close_matches(folded, heads, n=1, cutoff=0.7) or [""]
            alike = get_close_matches(folded, near, cutoff=_NEAR) or (near[0] and heads[near[0]] not in used)
            # Numbered families (step1, step2) are similar on purpose.
            if alike and _without_digits(near[0]) != _without_digits(folded):
                meant = heads[near[0]]
        # "Verb -> verb" is a convention, not a mistake.
        if meant is not None and not any(name in production.body for production in cfg.by_head[meant]):
            yield Diagnostic("typo", name, f"{name} has no rule, so it is a terminal; did you mean {meant}?")


def _without_digits(name: str) -> str:
    return "".join([character for character in name if not character.isdigit()])


def _list_some_names(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def fold_name(name: str) -> str:
    """Return what is left of a name without its spacing, case, and the regular endings of its words."""
    words = re.split(r"(?<=[a-z])(?=[A-Z])|[\s_-]+", name.strip())
    return "".join(re.sub(r"([^aeiouls])\1$", r"\1", _ENDING.sub("", word.lower())) for word in words)


def warn_of_similar_steps(names: Iterable[str], label: Callable[[str], str]) -> list[str]:
    """Return warnings about terminals that may be one step; two with one label are one step at two places of a chart.

    Names of fewer than three letters are not compared: they are letters of a formal language.
    """
    first: dict[str, str] = {}
    labels = dict.fromkeys(label(name) for name in names)
    pairs = [(first.setdefault(fold_name(name), name), name) for name in labels]
    return [
        f"{one} and {other} differ only in how they are spelled; if they are one step, call both by one name"
        for one, other in pairs if one != other and sum(map(str.isalpha, other)) >= 3
    ]  # fmt: skip
