"""Finished plans: trees, calls, steps, pictures."""
