"""Notations: reading and writing rules as text."""
