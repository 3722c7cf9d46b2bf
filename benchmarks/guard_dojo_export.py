"""AgentDojo's ground truth as traces: what its pipeline without a model does for each task, as JSON lines.

Each line is a conversation in the form of OpenAI's chat: the request, the calls of the reference solution and what they
returned. Lines of user tasks come from a clean world. Lines of attacks come from a world with the goal of an injection
task at every place that AgentDojo lets an attacker write to: first the solution of a user task, then that of the
injection task, whose calls begin at ``attack_from`` (the number of the message, from 1).

This imports AgentDojo alone, so that it can run in an environment of its own.

Run: ``python benchmarks/guard_dojo_export.py traces.jsonl`` where ``pip install agentdojo`` was run.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

VERSION = "v1.2.2"


class Recorder(FunctionsRuntime):  # type: ignore[misc]  # the package is not there where types are checked
    """Runs functions, and keeps what they were given and returned."""

    def __init__(self, functions: Any) -> None:
        super().__init__(functions)
        self.calls: list[tuple[str, dict[str, Any], Any, str | None]] = []

    def run_function(self, env: Any, function: str, kwargs: Any, raise_on_error: bool = False) -> Any:
        """Run a function."""
        value, error = super().run_function(env, function, kwargs, raise_on_error)
        self.calls.append((function, plain(dict(kwargs)), plain(value), error))
        return value, error


def plain(value: Any) -> Any:
    """A value as JSON."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def solve(task: Any, prompt: str, runtime: Recorder, env: Any) -> list[dict[str, Any]]:
    """The messages of a task's solution."""
    runtime.calls = []
    GroundTruthPipeline(task).query(prompt, runtime, env)
    messages: list[dict[str, Any]] = []
    for function, given, value, error in runtime.calls:
        name = f"c{id(task) % 1000}-{len(messages)}"
        call = {"id": name, "type": "function", "function": {"name": function, "arguments": json.dumps(given)}}
        content = error if error is not None else value if isinstance(value, str) else json.dumps(value)
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": name, "content": content})
    return messages


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out")
    out = parser.parse_args().out
    with Path(out).open("w") as file:
        for suite_name, suite in get_suites(VERSION).items():
            runtime = Recorder(suite.tools)
            places = suite.get_injection_vector_defaults()
            for name, task in suite.user_tasks.items():
                env = task.init_environment(suite.load_and_inject_default_environment({}))
                asked = [{"role": "user", "content": task.PROMPT}]
                row = {"suite": suite_name, "user_task": name}
                found = asked + solve(task, task.PROMPT, runtime, env)
                file.write(json.dumps({**row, "messages": found}) + "\n")
                for attack_name, attack in suite.injection_tasks.items():
                    injected = dict.fromkeys(places, attack.GOAL)
                    try:
                        env = task.init_environment(suite.load_and_inject_default_environment(injected))
                        found = asked + solve(task, task.PROMPT, runtime, env)
                        begin = len(found) + 1
                        found = found + solve(attack, attack.GOAL, runtime, env)
                    except Exception as error:  # a solution that the injected text breaks
                        print(f"left out: {suite_name} {name} {attack_name}: {error}")
                        continue
                    row = {"suite": suite_name, "user_task": name, "injection_task": attack_name, "attack_from": begin}
                    file.write(json.dumps({**row, "messages": found}) + "\n")


if __name__ == "__main__":
    main()
