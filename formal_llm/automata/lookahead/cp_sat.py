"""The rows of :mod:`formal_llm.automata.lookahead.program`, decided by CP-SAT of OR-Tools (the extra ``solver``).

It counts in whole numbers, and decides what HiGHS leaves open: sums of many amounts that must be hit exactly. One model
is kept; a question changes the domains of its variables and of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from ortools.sat.python import cp_model

from formal_llm.automata.lookahead.program import MOST_SUM, FlowProgram, FlowRows, Question
from formal_llm.automata.lookahead.verdicts import TRIES

#: The tries in a second of deterministic time, and for a call.
_RATE, _CALL = 2 * TRIES, 100


class SolverProgram(FlowProgram):
    """The program over CP-SAT.

    Effort is its deterministic time (about half of what it takes), so that the same question gets the same answer on
    every machine, and a little for each call.
    """

    def __init__(self, rows: FlowRows) -> None:
        super().__init__(rows)
        self._model = cp_model.CpModel()
        self._counts = [self._model.new_int_var(0, 1, "") for _ in rows.ways]
        self._height = 0
        self._solver = cp_model.CpSolver()
        parameters = self._solver.parameters
        parameters.num_workers, parameters.cp_model_presolve, parameters.random_seed = 1, False, 0

    def _solve(self, question: Question, least: Sequence[int], most: Sequence[int]) -> Sequence[float] | None:
        for row in self.rows.rows[self._height :]:
            weighted = cp_model.LinearExpr.weighted_sum([self._counts[n] for n in row], list(row.values()))
            self._model.add_linear_constraint(weighted, 0, 1)
        self._height = len(self.rows.rows)
        proto = self._model.proto
        for n, bounds in enumerate(zip(least, most, strict=True)):
            domain = proto.variables[n].domain
            domain[0], domain[1] = bounds
        for n, (low, high) in enumerate(zip(question.low, question.high, strict=True)):
            domain = proto.constraints[n].linear.domain
            domain[0], domain[1] = -MOST_SUM if low is None else low, MOST_SUM if high is None else high
        # The second bound is a safety net: now and then deterministic time runs slower than the clock.
        self._solver.parameters.max_deterministic_time = self.left / _RATE
        self._solver.parameters.max_time_in_seconds = 10 * self.left / TRIES + 1
        status = self._solver.solve(self._model)
        response = self._solver.response_proto
        self.tries += _CALL + _RATE * float(response.deterministic_time)
        if status == cp_model.INFEASIBLE:
            return ()
        return list(response.solution) if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
