"""Hooks of coding agents: each event runs in a separate process, so the earlier events are kept on disk."""
