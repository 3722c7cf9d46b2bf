"""Reading nested calls: which derivations have these calls?

The names and brackets of "translation(captioning(input_image))" are a word of a grammar, made of that of the plans: a
production of several symbols is a tool and what it is applied to, in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from formal_llm.automata import CFG, Production
from formal_llm.automata.models.repetition import repeated
from formal_llm.automata.models.symbols import members
from formal_llm.planning.plans.tree import result_name
from formal_llm.planning.reading.candidates import CandidateWords
from formal_llm.planning.reading.line_chart import LineChart, LinePart, PartBody, PartWays, drop_dead_bodies

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
    """Whether brackets and commas stand where they can in one call."""
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
        chosen = members(head) is not None
        if repeated(head) is not None:
            # It holds calls, and is none itself.
            yield from [tuple(LinePart(name, way) for name in body)] if way in (_CALLS, _NOTHING) else []
        elif way == _ROOT:
            # A selection is called as what it stands for (root_label).
            if len(body) == 1 and body[0] not in self._cfg.terminals and not chosen and members(body[0]) is None:
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
