"""What batches cost: rounds, requests and processor time of many plans, question by question and with one look a plan.

    python benchmarks/batches.py [--tasks 1000]

The providers are local servers of their protocols (``tests/llms/hosted/batch_server.py``), which answer at once.
"""

from __future__ import annotations

import argparse
import time
from typing import Literal

from formal_llm import TaskPack
from formal_llm.llms.hosted.anthropic import AnthropicLLM
from formal_llm.llms.hosted.batches import BatchedLLM, BatchWatch
from formal_llm.llms.hosted.openai import OpenAILLM
from tests.llms.hosted.batch_server import BatchServer
from tests.llms.hosted.protocol_server import ok


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000)
    count: int = parser.parse_args().tasks
    pack = TaskPack.load("openagi")
    tasks = [pack.tasks[number % len(pack.tasks)] for number in range(count)]
    searches: tuple[Literal["greedy", "exact"], ...] = ("greedy", "exact")
    print(f"{count} tasks        | batches | requests | plans | CPU ms a request")
    for provider in ("openai", "anthropic"):
        for search in searches:
            with BatchServer(lambda _, __: ok(1), looks=0) as server:
                adapter: OpenAILLM | AnthropicLLM
                if provider == "openai":
                    adapter = OpenAILLM("m", base_url=f"{server.url}/v1", api_key="none-is-needed")
                else:
                    adapter = AnthropicLLM("m", base_url=server.url, api_key="none-is-needed")
                with BatchedLLM(adapter, BatchWatch(interval=(0.01, 0.01))) as llm:
                    planner = pack.planner(llm, search=search)
                    before = time.thread_time()  # of this thread: the server has its own
                    outcomes = planner.plan_all(tasks)
                    spent = time.thread_time() - before
                plans = sum(outcome.plan is not None for outcome in outcomes)
                requests = len(server.bodies)
                each = 1_000 * spent / requests
                print(f"{provider:9} {search:6} | {len(server.batches):7} | {requests:8} | {plans:5} | {each:.1f}")


if __name__ == "__main__":
    main()
