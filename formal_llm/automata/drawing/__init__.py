"""Pictures of grammars, automata and flowcharts."""
