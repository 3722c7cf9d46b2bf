"""The language of guards: letters, conditions over events, and rules, read from text and compiled to machines.

Begin with :mod:`~formal_llm.guard.rules.rule_set` (what rules are) and :mod:`~formal_llm.guard.rules.reading`.
"""
