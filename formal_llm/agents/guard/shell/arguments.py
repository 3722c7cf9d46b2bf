"""The arguments of tools that run shell lines, with what those lines run."""

from __future__ import annotations

from collections.abc import Mapping

from formal_llm.agents.guard.shell.commands import shell_argv, shell_data
from formal_llm.planning.json_data import JSON

#: Tools of coding agents that run shell lines: Claude Code, Codex, OpenAI's, Anthropic's and others.
SHELL_TOOLS = frozenset(
    ("Bash", "bash", "shell", "local_shell", "shell_command", "exec_command", "container.exec", "execute_command",
     "run_command", "run_terminal_cmd", "run_shell_command", "terminal")
)  # fmt: skip
#: Where such tools have the line.
_ARGUMENTS = ("command", "cmd", "script", "action")


def add_shell_commands(tool: str, arguments: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The arguments of a call; for a tool that runs a shell line, with what :func:`shell_data` says of the line.

    A field of these names that the agent itself gave is replaced.
    """
    if tool not in SHELL_TOOLS:
        return arguments
    found = next((arguments[name] for name in _ARGUMENTS if name in arguments), None)
    if isinstance(found, Mapping):  # OpenAI's local shell: an action with its command
        found = found.get("command")
    if isinstance(found, str):
        return {**arguments, **shell_data(found)}
    if isinstance(found, list) and all(isinstance(word, str) for word in found):
        return {**arguments, **shell_argv([str(word) for word in found])}
    nothing = shell_data("")
    return {**arguments, **nothing, "unknown": ["there is no line to read"]} if found is not None else arguments
