"""Inputs for the tasks: made from pictures and texts at hand."""
