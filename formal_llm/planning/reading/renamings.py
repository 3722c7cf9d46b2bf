"""What a symbol is where it, or what it only renames, is no step: a terminal, some of a selection, a repetition."""

from __future__ import annotations

from formal_llm.automata import CFG, Word
from formal_llm.automata.models.repetition import Repetition, repeated
from formal_llm.automata.models.symbols import members


class Renamings:
    """The symbols of a grammar, seen through productions that only rename them."""

    def __init__(self, cfg: CFG) -> None:
        self._cfg = cfg
        self._plain: dict[str, list[Word]] = {}
        self._repetitions: dict[str, list[Repetition]] = {}

    def plain(self, symbol: str) -> list[Word]:
        """The terminals that a symbol may be, each alone; those of a selection together; nothing."""
        if symbol in self._cfg.terminals or members(symbol):
            return [members(symbol) or (symbol,)]
        if symbol not in self._plain:
            self._look(symbol)
        return self._plain[symbol]

    def repetitions(self, symbol: str) -> list[Repetition]:
        """The repetitions that a symbol only renames."""
        if symbol not in self._plain:
            self._look(symbol)
        return self._repetitions[symbol]

    def _look(self, symbol: str) -> None:
        words: dict[Word, None] = {}
        several: dict[Repetition, None] = {}
        renamed = [symbol] if repeated(symbol) is None else []
        for name in renamed:  # it grows
            for body in (p.body for p in self._cfg.by_head[name] if not p.text and len(p.body) < 2):
                again = repeated(body[0]) if body else None
                if again is not None:
                    several[again] = None
                elif not body or body[0] not in self._cfg.nonterminals:
                    words[members(body[0]) or body if body else ()] = None
                elif body[0] not in renamed:
                    renamed.append(body[0])
        self._plain[symbol], self._repetitions[symbol] = list(words), list(several)
