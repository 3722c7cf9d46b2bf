"""Plans per second with more and more walks in flight, against a server on this machine that takes 50 ms to answer.

Run: python benchmarks/throughput.py [--plans N] [--modes]

``ideal`` is what latency alone allows: walks in flight / (questions per plan x 50 ms). ``own`` is the CPU time of the
planner alone, measured with the same answers and no server; ``SDK and all`` is the CPU time of the process that plans.

``--modes`` compares ways to make the same requests at 64 in flight, in turns, the best of seven each: the SDK's typed
``create`` with its own HTTP client (how it was done before), its generic ``post`` with that client, ``post`` with
aiohttp (how it is done where aiohttp is installed), the same with a journal of all answers, and requests by aiohttp
alone, without the SDK's retries, bounds and errors.
"""

from __future__ import annotations

import argparse
import os
from contextlib import closing
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import aiohttp
import openai
from rich.console import Console
from rich.table import Table

from benchmarks.slow_server import slow_server
from formal_llm import Answer, Planner, Question, TaskPack
from formal_llm.llms.hosted.adapter import chat_data
from formal_llm.llms.hosted.openai import OpenAILLM
from formal_llm.planning.drivers.answer_journal import AnswerJournal
from formal_llm.planning.drivers.batch import Keeping

LATENCY = 0.05
JOURNALLED = "the same, journalled"
IN_FLIGHT = (1, 8, 64, 512)
ROUNDS = 7


def alone(plans: int) -> float:
    """Seconds of CPU per plan that planning takes without any client."""
    pack = TaskPack.load("openagi")

    def chosen(question: Question) -> str:
        question.messages  # noqa: B018  # a client looks at the prompt
        return str(len(question.options))

    planner = Planner(pack.cfg, chosen, wording=pack.wording)
    tasks = list(islice(cycle(pack.tasks), plans))
    planner.plan_all(tasks)  # what the planner learns of the grammar is learned
    begun = process_time()
    planner.plan_all(tasks)
    return (process_time() - begun) / plans


def measure(llm: OpenAILLM, plans: int, in_flight: int, keeping: Keeping | None = None) -> tuple[float, float, float]:
    """(plans per second, CPU seconds per plan, questions per plan)."""
    pack = TaskPack.load("openagi")
    planner = Planner(pack.cfg, llm, wording=pack.wording)
    planner.plan_all(pack.tasks, concurrency=64)  # connections of the client aside, everything is warm
    tasks = list(islice(cycle(pack.tasks), plans))
    begun, cpu = perf_counter(), process_time()
    outcomes = list(planner.plan_each(tasks, concurrency=in_flight, keeping=keeping))
    seconds, used = perf_counter() - begun, process_time() - cpu
    questions = sum(outcome.unwrap().usage.questions for outcome in outcomes)
    return plans / seconds, used / plans, questions / plans


class Typed(OpenAILLM):
    """The way before: the SDK's typed ``create``, with the SDK's own HTTP client."""

    def _create_completion(self, client: Any, messages: Any, request: dict[str, Any]) -> Any:
        made = client.chat.completions.create(model=self.model, messages=chat_data(messages), **request)
        return self._typed(made)

    async def _typed(self, made: Any) -> Any:
        # The objects of the SDK are read as data here, which adds 3 per cent to what this way took before.
        return (await made).model_dump(warnings=False)

    def _make_async_client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.client.base_url, api_key=self.client.api_key)


class Posted(OpenAILLM):
    """The SDK's generic ``post``, with the HTTP client that it has without aiohttp."""

    def _make_async_client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=self.client.base_url, api_key=self.client.api_key)


class Plain(OpenAILLM):
    """Requests by aiohttp alone."""

    _session: aiohttp.ClientSession | None = None

    async def achoose(self, question: Question) -> Answer:
        """One request."""
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        body = {"model": self.model, "messages": chat_data(question.messages), **self._restrict_choice(question)}
        body |= {"logprobs": True, "top_logprobs": 20}
        async with self._session.post(f"{self.client.base_url}chat/completions", json=body) as response:
            return self._read_answer(question, await response.json())

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
        self._session = None


def modes(url: str, plans: int) -> None:
    """The table of the ways to make requests."""
    own = min(alone(plans) for _ in range(ROUNDS))
    ways: dict[str, type[OpenAILLM]] = {
        "create (before)": Typed, "post": Posted, "post, aiohttp (now)": OpenAILLM, JOURNALLED: OpenAILLM,
        "aiohttp alone": Plain,
    }  # fmt: skip
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            llm = way("slow", base_url=url, api_key="none")
            with TemporaryDirectory() as folder, closing(AnswerJournal(Path(folder, "journal"), "r")) as journal:
                found[name].append(measure(llm, plans, 64, Keeping(journal if name == JOURNALLED else None)))
    table = Table(title=f"64 in flight, {plans} plans, best of {ROUNDS}; the planner alone: {own * 1000:.2f} ms a plan")
    for column in ("requests by", "plans/s", "questions", "CPU ms/plan", "a question", "of before"):
        table.add_column(column, justify="right")
    before = min(cpu for _, cpu, _ in found["create (before)"])
    for name, runs in found.items():
        rate, cpu, questions = min(runs, key=lambda run: run[1])
        table.add_row(
            name, f"{rate:,.1f}", f"{questions:.1f}", f"{cpu * 1000:.2f}", f"{cpu / questions * 1000:.2f}",
            f"{cpu / before:.0%}",
        )  # fmt: skip
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=1_000, help="plans at 64 in flight and above; fewer below")
    parser.add_argument("--modes", action="store_true", help="compare ways to make the same requests")
    given = parser.parse_args()
    plans = given.plans
    if given.modes:
        with slow_server(LATENCY) as url:
            modes(url, plans)
        return
    own = alone(plans)
    table = Table(title=f"OpenAGI, server with {LATENCY * 1000:.0f} ms latency, {os.cpu_count()} cores")
    for column in ("walks in flight", "plans/s", "ideal", "share of ideal", "CPU ms/plan: own", "SDK and all"):
        table.add_column(column, justify="right")
    with slow_server(LATENCY) as url:
        for in_flight in IN_FLIGHT:
            count = min(plans, max(10, in_flight * 20))
            rate, cpu, questions = measure(OpenAILLM("slow", base_url=url, api_key="none"), count, in_flight)
            ideal = in_flight / (questions * LATENCY)
            table.add_row(
                str(in_flight), f"{rate:,.1f}", f"{ideal:,.1f}", f"{rate / ideal:.0%}",
                f"{own * 1000:.2f}", f"{cpu * 1000:.2f}",
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
