"""A grammar as providers of language models read it: in Lark's notation and in GBNF.

A text by it has each step on a line of its own, so the text of the empty word is empty. Limits are left out: no such
notation can count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from formal_llm.automata.models.cfg import CFG
from formal_llm.errors import GrammarError


def cfg_to_lark(cfg: CFG) -> str:
    """Return a grammar in Lark's notation; the text of a word is each step followed by a line break.

    Raises:
        GrammarError: the grammar has no words.
    """
    return "".join(f"{name}: {' | '.join(bodies)}\n" for name, bodies in _write_rules(cfg, "start"))


def cfg_to_gbnf(cfg: CFG) -> str:
    """Return a grammar in GBNF, the notation of llama.cpp, vLLM and SGLang; otherwise like :func:`cfg_to_lark`.

    Raises:
        GrammarError: the grammar has no words, or a symbol that may begin with itself, which readers of GBNF refuse.
    """
    rules = _write_rules(cfg, "root")
    if head := _find_left_recursion(cfg):
        raise GrammarError(
            f"{head} may begin with itself, which readers of GBNF refuse; write the recursion at the end: "
            f"{head} -> step {head}"
        )
    return "".join(f"{name} ::= {' | '.join(body or EMPTY for body in bodies)}\n" for name, bodies in rules)


#: The empty text in GBNF.
EMPTY = '""'


def _find_bodies(cfg: CFG, head: str) -> list[tuple[str, ...]]:
    """Return the bodies of a symbol of which words can be derived."""
    bodies = [tuple(production.body) for production in cfg.by_head[head]]
    return [body for body in bodies if all(name not in cfg.by_head or name in cfg.productive for name in body)]


def _write_rules(cfg: CFG, start: str) -> list[tuple[str, list[str]]]:
    """Return the rules of the symbols that are used, the start symbol first; a body is written as in both notations."""
    if cfg.start not in cfg.productive:
        raise GrammarError(f"{cfg.start} has no words, so there is no text by this grammar")
    used = [cfg.start]
    for head in used:  # which grows
        used += dict.fromkeys(n for body in _find_bodies(cfg, head) for n in body if n in cfg.by_head and n not in used)
    names = {head: f"n{place}" if place else start for place, head in enumerate(used)}

    def write(body: tuple[str, ...]) -> str:
        return " ".join(names.get(name) or json.dumps(f"{name}\n", ensure_ascii=False) for name in body)

    return [(names[head], list(dict.fromkeys(map(write, _find_bodies(cfg, head))))) for head in used]


def _find_left_recursion(cfg: CFG) -> str:
    """Return a symbol that may begin with itself; empty if there is none."""

    def list_first(head: str) -> Iterator[str]:
        for body in _find_bodies(cfg, head):
            for name in body:
                if name not in cfg.by_head:
                    break
                yield name
                if name not in cfg.nullable:
                    break

    for head in cfg.by_head:
        if head in cfg.productive and head in cfg.reachable | {cfg.start}:
            found = list(list_first(head))
            for name in found:  # which grows
                found += [one for one in list_first(name) if one not in found]
            if head in found:
                return head
    return ""
