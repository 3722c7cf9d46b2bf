"""The guard as an endpoint: agents in TypeScript under rules with traps, and what the endpoint costs.

``python -m benchmarks.endpoint --runs 50`` lets agents (npm's ``openai`` and the AI SDK, plain and streamed) run under
the twenty rule sets of ``guard_traps.py``, each set behind two replicas that take turns. The model behind them knows
the rules, and calls at every second step what leads into a trap, whether it was offered or not, and several tools at
once. What was carried out is judged by a search that shares nothing with the guard. Needs node and npm, which fetches
the packages of ``endpoint_agents/package.json`` into ``--packages DIR``.

``python -m benchmarks.endpoint --cost`` compares requests through ``formal-llm guard --serve`` with direct ones:
the median of what one takes longer, and the requests for one second of CPU of the endpoint's process.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from benchmarks.guard_traps import SETS, Judge, RuleSet
from benchmarks.guards import guard_text
from formal_llm.guard import Call, Guard, GuardRules
from formal_llm.guard.endpoint.dialects import DIALECTS, Body, Dialect
from formal_llm.guard.endpoint.serving import Endpoint, EndpointSettings
from tests.guard.endpoint.agents import running

AGENTS = Path(__file__).parent / "endpoint_agents"


# -- the model ------------------------------------------------------------------------------------------------------


def write_answer(dialect: Dialect, model: str, text: str, calls: list[tuple[str, str]]) -> Body:
    """Write an answer of chat completions or Responses with a text, or with calls: ids and tools."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if dialect.path.endswith("completions"):
        message: Body = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {"id": id_, "type": "function", "function": {"name": tool, "arguments": "{}"}} for id_, tool in calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": model, "choices": [choice],
                "usage": usage}  # fmt: skip
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    items = [{"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "name": tool, "arguments": "{}",
              "status": "completed"} for id_, tool in calls]  # fmt: skip
    said = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}]
    return {"id": "r", "object": "response", "created_at": 1, "model": model, "status": "completed", "tools": [],
            "output": items or said, "parallel_tool_calls": True, "tool_choice": "auto", "error": None,
            "incomplete_details": None,
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                      "input_tokens_details": {"cached_tokens": 0},
                      "output_tokens_details": {"reasoning_tokens": 0}}}  # fmt: skip


class TrapModel:
    """A server whose model leads into traps where it can. Its name for a run is ``SET:RUN``."""

    def __init__(self) -> None:
        self.app = Starlette(routes=[Route(one.path, self._make_handler(one), methods=["POST"]) for one in DIALECTS])
        self.requests = 0

    def _make_handler(self, dialect: Dialect) -> Any:  # what Starlette calls
        async def handle(request: Request) -> Response:
            self.requests += 1
            body = json.loads(await request.body())
            answer = self.decide(dialect, body)
            if not body.get("stream"):
                return Response(json.dumps(answer), media_type="application/json")

            async def stream() -> Any:
                name = ""
                for name, data in dialect.write_rest(answer, 0, begun=False):
                    head = f"event: {name}\n" if name else ""
                    yield f"{head}data: {json.dumps(data)}\n\n"
                if not name:
                    yield "data: [DONE]\n\n"

            return StreamingResponse(stream(), media_type="text/event-stream")

        return handle

    def decide(self, dialect: Dialect, body: Body) -> Body:
        """Answer: by the seed of the run, the number of messages, and the rules."""
        name, _, run = str(body["model"]).partition(":")
        rules = SETS[int(name)]
        judge = Judge(rules)
        state = judge.start
        trace = dialect.read_past(body)
        for event in trace.events:
            if isinstance(event, Call):
                state = judge.step(state, event.tool) or state
        rng = random.Random(f"{run} {len(trace.events)} {len(json.dumps(body))}")
        if rng.random() < 0.25:
            return write_answer(dialect, str(body["model"]), "I am done.", [])
        chosen = [rng.choice(rules.names) for _ in range(rng.choice((1, 1, 2, 3)))]
        if rng.random() < 0.5:
            traps = [tool for tool in rules.names if (at := judge.step(state, tool)) and not judge.alive(at)]
            chosen[:1] = traps[:1] or chosen[:1]
        calls = [(f"call_{rng.randrange(10**9)}", tool) for tool in chosen]
        return write_answer(dialect, str(body["model"]), "", calls)


# -- agents ---------------------------------------------------------------------------------------------------------


def balance(addresses: list[str]) -> Starlette:
    """Build a balancer, which passes each request on to the next address."""
    turns = itertools.cycle(addresses)
    client = httpx2.AsyncClient(timeout=60)

    async def forward(request: Request) -> Response:
        made = client.build_request("POST", next(turns) + request.url.path, content=await request.body())
        answer = await client.send(made, stream=True)
        kind = answer.headers.get("content-type", "application/json")
        return StreamingResponse(answer.aiter_bytes(), answer.status_code, media_type=kind)

    return Starlette(routes=[Route("/{path:path}", forward, methods=["POST"])])


def judge_runs(rules: RuleSet, output: str) -> Counter[str]:
    """Count what the runs of an agent did."""
    counts: Counter[str] = Counter()
    judge = Judge(rules)
    for line in output.splitlines():
        run = json.loads(line)
        counts["runs"] += 1
        counts[f"runs of {run['agent']}"] += 1
        state, trapped, broken = judge.start, False, False
        for tool in run["calls"]:
            counts["calls"] += 1
            after = judge.step(state, tool)
            broken |= after is None
            state = after or state
            trapped |= not judge.alive(state)
        counts["rules broken"] += broken
        counts["traps entered"] += trapped
        if "error" in run:
            counts["ended by an error"] += 1
            counts["errors that are no refusal"] += "cannot" not in run["error"]
            if "cannot" not in run["error"]:
                print(run["error"], file=sys.stderr)
        elif run.get("answer") is not None:
            counts["answered"] += 1
            counts["answered too early"] += not judge.met(state)
            if not judge.met(state):
                print(f"{rules.name}: {line}", file=sys.stderr)
    return counts


def run_agents(runs: int, packages: Path) -> None:
    """Run the agents, and print what they did."""
    packages.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "agent.ts"):
        shutil.copy(AGENTS / name, packages / name)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=packages, check=True, timeout=300)
    model = TrapModel()
    counts: Counter[str] = Counter()
    with running(model.app) as upstream:
        for number, rules in enumerate(SETS):
            guard = Guard(GuardRules.from_string(guard_text(rules)), tools=rules.names)
            settings = EndpointSettings(openai=upstream)
            with ExitStack() as stack:
                replicas = [stack.enter_context(running(Endpoint(guard, settings).build_app())) for _ in range(2)]
                address = stack.enter_context(running(balance(replicas)))
                made = subprocess.run(
                    ["node", "--import", "tsx", "agent.ts", f"{address}/v1", str(number), str(runs), *rules.names],
                    cwd=packages, check=True, capture_output=True, text=True, timeout=600,
                )  # fmt: skip
            counts += judge_runs(rules, made.stdout)
            print(f"{rules.name}: done", file=sys.stderr)
    for name in ("traps entered", "rules broken", "answered too early", "errors that are no refusal"):
        counts.setdefault(name, 0)
    print("| what | count |\n| --- | ---: |")
    for name, count in [*counts.items(), ("requests to the model", model.requests)]:
        print(f"| {name} | {count:,} |")


# -- cost -----------------------------------------------------------------------------------------------------------


def build_conversation(rounds: int) -> Body:
    """Build a request after some rounds of calls."""
    tools = [{"type": "function", "function": {"name": name}} for name in SETS[0].names]
    messages: list[Body] = [{"role": "user", "content": "run 1"}]
    for number in range(rounds):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": '{"order": 7}'}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "order 7 is open " * 10})
    return {"model": "plain", "messages": messages, "tools": tools}


async def _answer_plainly(request: Request) -> Response:
    await request.body()
    answer = write_answer(DIALECTS[0], "plain", "", [("call_1", "approve")])
    return Response(json.dumps(answer), media_type="application/json")


async def _load(url: str, body: Body, count: int, together: int) -> list[float]:
    times: list[float] = []
    left = iter(range(count))
    data = json.dumps(body).encode()

    async def work(client: httpx2.AsyncClient) -> None:
        for _ in left:
            begun = time.perf_counter()
            answer = await client.post(url, content=data)
            times.append(time.perf_counter() - begun)
            assert answer.status_code == 200, answer.text

    async with httpx2.AsyncClient(timeout=60) as client:
        await asyncio.gather(*(work(client) for _ in range(together)))
    return times


def _read_cpu(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def measure_cost(count: int) -> None:
    """Print what requests through the endpoint cost."""
    app = Starlette(routes=[Route(DIALECTS[0].path, _answer_plainly, methods=["POST"])])
    print("| messages | direct, median ms | through, median ms | more, ms | requests for a second of CPU |")
    print("| ---: |" + " ---: |" * 4)
    with running(app) as upstream, TemporaryDirectory() as folder:
        rules = Path(folder, "shop.guard")
        rules.write_text(guard_text(SETS[0]))
        port = 18_080
        command = [sys.executable, "-m", "formal_llm", "guard", str(rules), "--serve", "--port", str(port)]
        process = subprocess.Popen([*command, "--openai", upstream], stderr=subprocess.DEVNULL)
        url = f"http://127.0.0.1:{port}{DIALECTS[0].path}"
        try:
            for rounds in (0, 10, 100):
                body = build_conversation(rounds)
                for _ in range(100):
                    try:
                        asyncio.run(_load(url, body, 20, 1))  # warm
                        break
                    except httpx2.ConnectError:
                        time.sleep(0.1)
                direct = asyncio.run(_load(upstream + DIALECTS[0].path, body, count, 1))
                through = asyncio.run(_load(url, body, count, 1))
                before = _read_cpu(process.pid)
                asyncio.run(_load(url, body, count, 8))
                cpu = _read_cpu(process.pid) - before
                one, other = statistics.median(direct) * 1000, statistics.median(through) * 1000
                print(f"| {1 + 2 * rounds} | {one:.1f} | {other:.1f} | {other - one:.1f} | {count / cpu:,.0f} |")
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=0, help="runs for each rule set")
    parser.add_argument("--packages", type=Path, default=Path("build/endpoint_agents"))
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--count", type=int, default=500, help="requests for each figure of --cost")
    asked = parser.parse_args()
    if asked.runs:
        run_agents(asked.runs, asked.packages)
    if asked.cost:
        measure_cost(asked.count)
    if not (asked.runs or asked.cost):
        parser.error("name --runs N, or --cost")


if __name__ == "__main__":
    main()
