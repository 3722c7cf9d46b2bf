"""Decide sums and limits exactly where the filters of the search cannot: linear and integer programs, and prices.

Two modules use this package, and no others. :mod:`~formal_llm.automata.lookahead.search` asks a
:class:`~formal_llm.automata.lookahead.exact.linear_program.LinearProgram` or an
:class:`~formal_llm.automata.lookahead.exact.integer_program.IntegerProgram` about a single state, and
:mod:`~formal_llm.automata.lookahead.shortest` takes lower bounds of costs from
:class:`~formal_llm.automata.lookahead.exact.prices.CostEstimate`. Begin with ``integer_program``: its docstring
explains how a plan becomes an integer program.
"""
