"""The values: symbols, limits, grammars, automata, formulas, behaviours, flowcharts."""
