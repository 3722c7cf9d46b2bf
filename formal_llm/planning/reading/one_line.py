"""A plan on one line: its steps, with `` / `` or commas between them."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.automata import Source
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import turn_word
from formal_llm.errors import visible
from formal_llm.planning.plans.vocabulary import SLASH, Vocabulary, order_of, write_word
from formal_llm.planning.reading.explicit import looks_like_json, read_names
from formal_llm.planning.reading.phrases import MovePhrases, Naming
from formal_llm.planning.reading.prose import StepPhrases, find_step, is_rule

#: How many separators the name of one step may hold, and how many steps are looked for on a line.
_WIDEST, _MOST = 12, 500


def split_steps(row: str, phrases: StepPhrases) -> list[str] | None:
    """The steps that a line lists; None where it is one step, or half of what it lists is unknown.

    The name of a step may hold a separator: as few parts as possible are unknown, and then as few as possible there.
    """
    if find_step(row, phrases) is not None:
        return None
    for separator in (SLASH, ","):
        pieces = row.split(separator)
        if 1 < len(pieces) <= _MOST:
            parts = _join_pieces(pieces, separator, phrases)
            if 2 * sum(phrases.whole(part) for part in parts) > len(parts):
                return parts
    return None


def _join_pieces(pieces: Sequence[str], separator: str, phrases: StepPhrases) -> list[str]:
    """The parts of a line, each of one piece or several."""
    end = len(pieces)
    #: For each piece the best way from there: how many parts are unknown, how many there are, the parts.
    best: list[tuple[int, int, list[str]]] = [(0, 0, [])] * (end + 1)
    for begin in reversed(range(end)):
        ways = []
        for behind in range(begin + 1, min(end, begin + _WIDEST) + 1):
            part, (unknown, count, parts) = separator.join(pieces[begin:behind]).strip(), best[behind]
            known = phrases.whole(part)
            if known or behind == begin + 1:
                ways.append((unknown + (not known), count + 1, [part, *parts]))
        best[begin] = min(ways)
    return best[0][2]


class PlanLine:
    """Writes plans of rules on one line, from which they are read back.

    Steps are written by their labels, and a decision by its question with the answer; where the step behind it has the
    same label as the answer, the decision is left out. Plans of a grammar, and plans whose labels would not be read
    back, are written by the names of their terminals.

    Args:
        rules: the rules, with all their constraints.
    """

    def __init__(self, rules: Source) -> None:
        automaton, self._order = as_automaton(rules), order_of(rules)
        self._base = base_with_clock(automaton) if isinstance(automaton, PDA) else None
        if self._base is None or self._base.cfg is not None:
            self._base = None
            return
        self._moves = MovePhrases(self._base)
        self._phrases = self._moves.collect_phrases()
        self._labels = {name: self._base.label(name) for name in self._base.terminals}
        self._questions = {
            move.read: move.question for move in self._base.transitions if move.decision and move.read is not None
        }
        # Only decisions distinguish shared labels.
        shared = len(set(self._labels.values())) < len(self._labels)
        named = Naming(Vocabulary(self._base), self._labels)
        # Steps without a terminal, and labels that are the names of others, are not written.
        silent = any(move.text and move.read is None and not move.decision for move in self._base.transitions)
        self._clash = (
            silent
            or (shared and not self._questions)
            or any(not set(named.names.get(form, [])) <= set(labelled) for form, labelled in named.labels.items())
        )

    def write_plan(self, word: Sequence[str]) -> str:
        """A plan on one line."""
        if self._base is None or not word:
            return write_word(word, self._order)
        parts: list[tuple[str, str]] = []
        for name, behind in zip(word, (*word[1:], ""), strict=True):
            label, question = self._labels[name], self._questions.get(name)
            if question is None:
                parts.append((name, label))
            elif label != self._labels.get(behind) or behind in self._questions:
                colon = "" if question[-1:] in ("", "?", ":") else ":"
                parts.append((name, f"{question}{colon} {label}".strip()))
        parts = list(turn_word(parts, self._order))
        line = SLASH.join(text for _, text in parts)
        return line if self._is_read_back(line, parts) else write_word(word, self._order)

    def _is_read_back(self, line: str, parts: Sequence[tuple[str, str]]) -> bool:
        """Whether a line is read as these parts, and each of them as any transition that reads its terminal."""
        assert self._base is not None
        texts = [text for _, text in parts]
        if self._clash or visible(line) != line or is_rule(line) or looks_like_json(line):
            return False
        if read_names([line], self._labels) is not None:
            return False
        if texts != ([line] if self._phrases.whole(line) else split_steps(line, self._phrases)):
            return False
        return all(set(self._moves.reading[name]) <= set(self._moves.find_transitions(text)) for name, text in parts)
