"""Finished plans: trees, calls, steps, pictures, and reading them back from text."""
