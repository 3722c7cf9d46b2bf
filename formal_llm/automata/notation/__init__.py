"""Notations: what is written is read, what is read is written."""
