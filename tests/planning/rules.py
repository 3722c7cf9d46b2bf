"""Rules that the tests of reading and of verifying share."""

from formal_llm import CFG

DAY = CFG.from_string('Day -> eat Day | Day2\nDay2 -> wash_up sleep\neat "Eat"\nwash_up "Wash up"\n%limit 2 eat')


def under(source, constraints):
    """A grammar or automaton with constraints on top."""
    for one in constraints:
        source = source & one
    return source
