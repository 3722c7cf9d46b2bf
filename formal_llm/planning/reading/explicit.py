"""Plans that contain their word: JSON, and terminal names with blanks between them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence

from formal_llm.authored.files import parse_json
from formal_llm.automata import CFG, PDA, Production, Transition, Word
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import selection_members, unquote_text
from formal_llm.errors import NotationError
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.tree import Node, is_flat, result_name
from formal_llm.planning.reading.candidates import CandidateWords, build_run_candidates
from formal_llm.planning.reading.line_chart import LineChart, LinePart, PartBody, PartWays, drop_dead_bodies

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
    """Raise where the text for readers contradicts the tree."""
    made = json.loads(plan.to_json())
    wrong = [part for part in ("word", "call", "steps") if part in data and data[part] != made[part]]
    if wrong:
        raise NotationError(f"this plan contradicts itself: its {' and '.join(wrong)} and its tree are of two plans")


def is_derivation(tree: Node, cfg: CFG) -> bool:
    """Whether a tree is a derivation of the grammar, from any symbol: each node a production, to the text."""
    known = {(p.head, p.body, p.text) for p in cfg.productions}
    for node in tree.walk():
        below = tuple(child.symbol for child in node.children)
        among = selection_members(node.symbol)
        if node.terminal:
            fits = not below and node.symbol in cfg.terminals
        elif (again := parse_repetition(node.symbol)) is not None:
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
    wanted = (node.symbol or None, node.text or "", node.question)
    return {
        move for move in pda.transitions if (move.read, move.text, move.question if move.decision else None) == wanted
    }


def read_names(rows: Sequence[str], terminals: Collection[str]) -> Word | None:
    """The word that rows of names are, where one of them holds several; None where a name is unknown.

    A name may be quoted, and a single quoted name is a word.
    """
    pieces = [_NAME.findall(row) for row in rows]
    if all(len(row) < 2 for row in pieces) and not (len(rows) == 1 and _is_quoted(pieces[0][0])):
        return None
    names = tuple(unquote_text(one) if _is_quoted(one) else one for row in pieces for one in row)
    return names if all(name in terminals for name in names) else None


def _is_quoted(piece: str) -> bool:
    return len(piece) > 1 and piece[0] == piece[-1] == '"'


_CALL = re.compile(r"(?:(\w+)\s*=\s*)?([^\s(),=]+\s*\(.*\)|(?<=\s|=)[^\s(),]+)")
_PIECE = re.compile(r"[^\s(),]+|[(),]")
#: What a symbol is: any number of calls, one without arguments, none, the outermost call.
_CALLS, _TOOL, _NOTHING, _ROOT = range(4)
_OPEN, _CLOSE = LinePart("(", _CALLS), LinePart(")", _CALLS)


def parse_call(line: str) -> tuple[str, list[str]] | None:
    """The name of the result (empty where it has none) and the pieces of a call; None for what is no call."""
    found = _CALL.fullmatch(line.strip())
    pieces = _PIECE.findall(found[2]) if found is not None else []
    if found is None or not _is_call(pieces):
        return None
    return found[1] or "", pieces


def _is_call(pieces: list[str]) -> bool:
    """Whether brackets and commas are where one call may have them."""
    depth, before = 0, ","
    for at, piece in enumerate(pieces):
        after_value = before not in ("(", ",")
        if piece in ("(", ")", ",") and not after_value:
            return False
        if piece == "(" and before == ")":
            return False
        if piece not in ("(", ")", ",") and after_value:
            return False
        depth += (piece == "(") - (piece == ")")
        if depth < 0 or (piece == "," and not depth) or (not depth and piece == ")" and at < len(pieces) - 1):
            return False
        before = piece
    return bool(pieces) and not depth and before not in ("(", ",")


def format_call(result: str, pieces: list[str]) -> str:
    """A call as it is printed."""
    return (f"{result} = " if result else "") + "".join(pieces).replace(",", ", ")


def find_call_candidates(cfg: CFG, result: str, pieces: list[str]) -> CandidateWords | None:
    """The words of the derivations that have this call; None where there are none.

    Raises:
        Undecided: there are too many ways to read it.
    """
    return _CallReader(cfg, result, [piece for piece in pieces if piece != ","]).find_candidates()


class _CallReader:
    def __init__(self, cfg: CFG, result: str, pieces: list[str]) -> None:
        self._cfg, self._result, self._pieces = cfg, result, pieces

    def find_candidates(self) -> CandidateWords | None:
        root = LinePart(self._cfg.start, _ROOT)
        table: dict[LinePart, PartWays] = {}
        todo = [root]
        while todo:
            part = todo.pop()
            if part in table:
                continue
            ways = table[part] = PartWays()
            if part.symbol in ("(", ")") or part.symbol in self._cfg.terminals:
                name = () if part.symbol in ("(", ")") else (part.symbol,)
                if part.way != _NOTHING:
                    ways.on = {
                        at: [PartBody(name, (), True)] for at, piece in enumerate(self._pieces) if piece == part.symbol
                    }
                continue
            for production in self._cfg.by_head[part.symbol]:
                ways.free += (PartBody(parts, parts) for parts in self._list_bodies(production, part.way))
            todo += (one for body in ways.free for one in body.parts)
        return LineChart(drop_dead_bodies(table), root, len(self._pieces)).build_candidates()

    def _list_bodies(self, production: Production, way: int) -> Iterator[tuple[LinePart, ...]]:
        head, body = production.head, production.body
        chosen = selection_members(head) is not None
        if parse_repetition(head) is not None:
            # It holds calls, and is none itself.
            yield from [tuple(LinePart(name, way) for name in body)] if way in (_CALLS, _NOTHING) else []
        elif way == _ROOT:
            # A selection is called by the name of what it selects for (root_label).
            if (
                len(body) == 1
                and body[0] not in self._cfg.terminals
                and not chosen
                and selection_members(body[0]) is None
            ):
                yield (LinePart(body[0], _ROOT),)
            elif self._result in ("", result_name(self._cfg.label(head))):
                yield from self._list_bodies(production, _TOOL if chosen else _CALLS)
        elif chosen and way == _TOOL and len(body) == 2:
            yield LinePart(body[0], _TOOL), LinePart(body[1], _NOTHING)
        elif len(body) < 2 or chosen:
            if body or way != _TOOL:
                yield tuple(LinePart(name, way) for name in body)
        elif way != _NOTHING:
            tool, *arguments = body
            yield (LinePart(tool, _TOOL), *(LinePart(name, _NOTHING) for name in arguments))
            if way == _CALLS:
                yield (LinePart(tool, _TOOL), _OPEN, *(LinePart(name, _CALLS) for name in arguments), _CLOSE)
