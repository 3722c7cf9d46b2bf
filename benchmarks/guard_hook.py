"""What a hook costs: processor time of whole processes, from start to answer, and of what they are made of.

What it shows, as medians in seconds of processor time: an empty Python, the import of the library, one event answered
by ``formal-llm guard --hook``; and inside a process that is warm, one event of a session that already has so many.

Run: ``python benchmarks/guard_hook.py [--runs N]``
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from formal_llm.guard import Guard, GuardRules
from formal_llm.guard.hooks.hook import answer_event

RULES = 'edit: Edit\npush: Bash[runs(commands, "git push")]\nrule few: at most 3 push\nrule look: edit before push\n'


def event(number: int) -> bytes:
    row = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": f"{number}"}
    return json.dumps({**row, "tool_input": {"command": "cd x && git status | head -3"}}).encode()


def spent(command: list[str], data: bytes) -> float:
    """The processor time of a process, in seconds."""
    before = os.times()
    subprocess.run([sys.executable, *command], input=data, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rules.guard").write_text(RULES)
        hook = ["-m", "formal_llm", "guard", "--hook", str(folder / "rules.guard"), "--state", str(folder / "state")]
        for called, command in (
            ("an empty Python", ["-c", "pass"]),
            ("import formal_llm", ["-c", "import formal_llm"]),
            ("one hook", hook),
        ):
            found = [spent(command, event(number)) for number in range(runs)]
            print(f"{called:32} {statistics.median(found):8.3f} s")
        guard = Guard(GuardRules.from_string(RULES))
        done = 0
        for length in (10, 100, 1000):
            while done < length:
                answer_event(event(done), lambda: guard, folder / "warm")
                done += 1
            begun = time.process_time()
            answer_event(event(done), lambda: guard, folder / "warm")
            done += 1
            print(f"the event after {length:5} others, warm {time.process_time() - begun:7.3f} s")


if __name__ == "__main__":
    main()
