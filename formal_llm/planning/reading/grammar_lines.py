"""Reading the lines of a plan of a grammar: all the words that they may stand for, or why there are none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from formal_llm.automata import CFG, Word
from formal_llm.planning.plans.steps import Order
from formal_llm.planning.reading.candidates import CandidateWords
from formal_llm.planning.reading.line_grammar import LineGrammar, Manner
from formal_llm.planning.reading.phrases import ProductionPhrases
from formal_llm.planning.reading.prose import ReadingProblem, StepLine


class GrammarLines:
    """The words that lines tell of a grammar.

    Args:
        cfg: the grammar.
        lines: the steps, from first to last.
        order: whether the derivation runs from the last step to the first, as that of a backward plan does.
        strict: whether only what is printed is understood.

    Attributes:
        told: the words; empty where there are none.

    Raises:
        Undecided: there are too many ways to read the lines.
    """

    def __init__(self, cfg: CFG, lines: Sequence[StepLine], order: Order, *, strict: bool) -> None:
        self._cfg, self._lines = cfg, lines
        says = ProductionPhrases(cfg)
        self._order = order
        manner: Manner = "printed" if strict or all(map(says.is_printed, lines)) else "free"
        found = self._find_candidates(manner, strict=strict)
        inputs = any(map(says.has_inputs, lines))
        if not found and not strict and inputs and order == "forward":
            # Only backward plans say what a step is applied to; who writes it means it.
            self._order = "backward"
            found = self._find_candidates(manner, strict=False)
        elif not found and not strict and not inputs and order == "backward":
            elided = LineGrammar(cfg, lines[::-1], nested=True, manner="elided").chart.build_candidates()
            found = [elided] if elided is not None else []
        self.told = tuple(self._restore_line_order(told) for told in found)

    def _find_candidates(self, manner: Manner, *, strict: bool) -> list[CandidateWords]:
        self._readings = list(self._list_readings(manner, strict=strict))
        found = (reading.chart.build_candidates() for reading in self._readings)
        return [told for told in found if told is not None]

    def _list_readings(self, manner: Manner, *, strict: bool) -> Iterator[LineGrammar]:
        if self._order == "forward":
            yield LineGrammar(self._cfg, self._lines, nested=False, manner=manner)
            return
        yield LineGrammar(self._cfg, self._lines[::-1], nested=True, manner=manner)
        bent = strict or manner == "printed"
        yield LineGrammar(self._cfg, self._lines[::-1], nested=False, manner=manner, bent=bent)

    def _restore_line_order(self, told: CandidateWords) -> CandidateWords:
        """What is told, with the lines counted as they stand."""
        if self._order == "forward":
            return told
        return replace(told, lines={move: len(self._lines) - 1 - line for move, line in told.lines.items()})

    def explain_failure(self) -> ReadingProblem:
        """Why there are no words: the first line that cannot follow, in the order of the derivation."""
        backward = self._order == "backward"
        reading = max(self._readings, key=lambda one: one.chart.longest)
        longest = reading.chart.longest
        lines = self._lines[::-1] if backward else self._lines
        line = lines[min(longest, len(lines) - 1)]
        side = "before" if backward else "after"
        if longest == len(lines):
            problem = f"no plan is told like this: a step is missing {side} this one"
        elif longest:
            problem = f"no plan has this step right {side} step {lines[longest - 1].number}"
        else:
            problem = f"no plan {'ends' if backward else 'begins'} with this step"
        return ReadingProblem(problem, line, tuple(reading.chart.could))

    def guess_word(self) -> Word | None:
        """The terminals of the steps, one after the other, where that is a word, and none of the grammar's."""
        for reading in self._readings:
            word = reading.collect_own_terminals()
            if word is not None and not self._cfg.accepts(word):
                return word
        return None
