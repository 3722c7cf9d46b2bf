"""Plans that tell their word outright: JSON, and terminal names with blanks between them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from formal_llm.authored.files import parse_json
from formal_llm.automata import CFG, PDA, Transition, Word
from formal_llm.automata.models.repetition import repeated
from formal_llm.automata.models.symbols import members, unquote
from formal_llm.errors import NotationError
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.tree import Node, is_flat
from formal_llm.planning.reading.candidates import CandidateWords, build_run_candidates

_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_JSON = re.compile(r'\s*[{[]\s*"')


def looks_like_json(row: str) -> bool:
    """Whether a line begins as an object or a list of texts in JSON."""
    return _JSON.match(row) is not None


def read_json(text: str) -> Plan | list[str]:
    """The plan or the list of names that a text is in JSON.

    Raises:
        NotationError: it is neither; or a plan whose parts contradict each other, or that is not finished.
    """
    try:
        data = parse_json(text)
        if isinstance(data, dict) and "tree" in data:
            plan = Plan.from_json(text)
            _check_parts(plan, data)
            return plan
        names = data["word"] if isinstance(data, dict) else data
    except (ValueError, KeyError) as error:
        raise NotationError(f"this is neither the JSON of a plan nor a list of names: {error}") from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise NotationError("a plan in JSON is a list of names, or an object with such a list as its 'word'")
    return names


def _check_parts(plan: Plan, data: dict[str, object]) -> None:
    """Raise where what is written for readers is not what the tree says."""
    made = json.loads(plan.to_json())
    wrong = [part for part in ("word", "call", "steps") if part in data and data[part] != made[part]]
    if wrong:
        raise NotationError(f"this plan contradicts itself: its {' and '.join(wrong)} and its tree are of two plans")


def is_derivation(tree: Node, cfg: CFG) -> bool:
    """Whether a tree is a derivation of the grammar, from any symbol: each node a production, to the text."""
    known = {(p.head, p.body, p.text) for p in cfg.productions}
    for node in tree.walk():
        below = tuple(child.symbol for child in node.children)
        among = members(node.symbol)
        if node.terminal:
            fits = not below and node.symbol in cfg.terminals
        elif (again := repeated(node.symbol)) is not None:
            count = len(below)
            fits = set(below) <= {again.of} and again.least <= count and (again.most is None or count <= again.most)
            fits = fits and not node.open and not node.text
        elif among is not None:
            fits = bool(below) and list(below) == [name for name in among if name in below]
        else:
            fits = not node.open and (node.symbol, below, node.text) in known
        if not fits:
            return False
    return True


def find_tree_candidates(tree: Node, pda: PDA) -> CandidateWords | None:
    """The words of the runs that have such a flat tree; None for another tree."""
    if not is_flat(tree):
        return None
    silent = {move for move in pda.transitions if move.read is None and not move.text}
    return build_run_candidates(pda, silent, [_find_matching_transitions(node, pda) for node in tree.children])


def _find_matching_transitions(node: Node, pda: PDA) -> Collection[Transition]:
    said = (node.symbol or None, node.text or "", node.question)
    return {
        move for move in pda.transitions if (move.read, move.text, move.question if move.decision else None) == said
    }


def read_names(rows: Sequence[str], terminals: Collection[str]) -> Word | None:
    """The word that rows of names are, where one of them holds several; None where a name is unknown.

    A name may stand in quotes, and one in quotes may stand alone.
    """
    pieces = [_NAME.findall(row) for row in rows]
    if all(len(row) < 2 for row in pieces) and not (len(rows) == 1 and _is_quoted(pieces[0][0])):
        return None
    names = tuple(unquote(one) if _is_quoted(one) else one for row in pieces for one in row)
    return names if all(name in terminals for name in names) else None


def _is_quoted(piece: str) -> bool:
    return len(piece) > 1 and piece[0] == piece[-1] == '"'
