"""What a hook costs: processor time from start to answer, beside an empty Python in the same run.

What it shows, as medians in milliseconds: an empty Python; a hook that answers by itself (``--alone``), as the first of
a user does; a hook that asks the process of the user, and what that process spends on it. All of them for the rule
files of ``grammars/guard`` and one of a hundred rules, after so many events of the session.

Run: ``python benchmarks/guard_hook.py [--runs N]``; with ``PYTHONDONTWRITEBYTECODE`` unset, since installed modules are
compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from formal_llm.guard import Call, Guard, GuardRules
from formal_llm.guard.audit import AuditLog, build_row
from formal_llm.guard.hooks.hook import answer_event, find_session_file
from formal_llm.guard.shell.commands import add_effects

ROOT = Path(__file__).parent.parent
EVENTS, NOW = (0, 300, 3_000), datetime.now(UTC)


def hundred_rules() -> str:
    """A hundred rules over fifty tools, among them conditions, keys, sums and times."""
    lines = [f"t{number}: T{number} with k = key, cost = cost" for number in range(50)]
    lines += [f'c{number}: Bash[runs(commands, "program{number}") and not t{number}(cwd)]' for number in range(10)]
    kinds = (
        ": {0} before {1}",
        " for each k: at most 3 {0} since {1}",
        ": never {0} after {1}",
        ": {1} after each {0}",
    )
    lines += [f"rule r{one}{kinds[one % 4].format(f't{one % 45}', f't{one % 45 + 1}')}" for one in range(90)]
    lines += [f"rule x{number}: at most 2 c{number} within 1h" for number in range(10)]
    return "\n".join([*lines, ""])


def event(number: int) -> bytes:
    row = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": f"{number}"}
    return json.dumps({**row, "tool_input": {"command": "cd x && git status | head -3"}}).encode()


def spent(command: list[str], data: bytes) -> float:
    """The processor time of a process, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], input=data, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def spent_so_far(process: int) -> float:
    """The processor time of a running process, in milliseconds."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    empty = statistics.median(spent(["-c", "pass"], b"") for _ in range(runs))
    print(f"an empty Python: {empty:.1f} ms\n{'rules':<32}{'events':>8}{'alone':>9}{'asking':>9}{'process':>9}")
    with tempfile.TemporaryDirectory() as name:
        os.environ["XDG_RUNTIME_DIR"] = name
        large = Path(name, "a hundred rules.guard")
        large.write_text(hundred_rules())
        for rules in (*sorted((ROOT / "grammars" / "guard").glob("*.guard")), large):
            for events in EVENTS:
                measure(rules, events, runs, Path(name))
        (lock,) = Path(name).rglob("*.lock")
        os.kill(int(lock.read_text()), signal.SIGTERM)


def measure(rules: Path, events: int, runs: int, folder: Path) -> None:
    """Print what a hook costs with these rules after so many events."""
    state, guard = folder / f"{rules.stem}{events}", Guard(GuardRules.from_file(rules))
    answer_event(event(-1), lambda: guard, state, rules=rules)
    with AuditLog(find_session_file(state, "s", rules), guard.fingerprint).held() as held:
        given = {"command": "cd x && git status | head -3"}
        calls = [Call("Bash", add_effects("Bash", given), f"{number}", at=NOW) for number in range(events)]
        held.append(*map(build_row, calls))
    hook = ["-m", "formal_llm", "guard", "--hook", str(rules), "--state", str(state)]
    alone = [spent([*hook, "--alone"], event(events + number)) for number in range(max(3, runs // 4))]
    spent(hook, event(events + 100))  # this one starts the process, or lets it read the session
    while not list(folder.rglob("*.sock")):
        time.sleep(0.05)
    (lock,) = folder.rglob("*.lock")
    before = spent_so_far(int(lock.read_text()))
    asking = [spent(hook, event(events + 200 + number)) for number in range(runs)]
    process = (spent_so_far(int(lock.read_text())) - before) / runs
    line = (
        f"{rules.stem:<32}{events:>8}{statistics.median(alone):>9.1f}{statistics.median(asking):>9.1f}{process:>9.1f}"
    )
    print(line, flush=True)


if __name__ == "__main__":
    main()
