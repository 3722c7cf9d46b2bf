"""Scores of results, and the judge of plans."""
