"""Hooks of coding agents: each event is a process of its own, so what happened so far is kept on disk."""
