"""Agents whose behaviour is a specification."""
