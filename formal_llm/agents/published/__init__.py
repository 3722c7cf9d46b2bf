"""The published agents: what in them is more than their ``.agent`` files and their tools."""
