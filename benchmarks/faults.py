"""Every fault of the hostile server with every adapter, waiting and awaited: what comes of it is ours, and in time.

    python benchmarks/faults.py [--faults NAME,NAME] [--adapters NAME,NAME]

A case is a fault, an adapter, a way of asking (a choice, a text, a streamed text) and whether it is awaited. It may end
in an answer or in an error of this library. Foreign errors and keys in errors are listed, and the command fails if
there are any. Late ends are listed, too; a busy machine has some.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import product
from typing import Any

from formal_llm.llms.hostile_server import FAULTS, MILLION, HostileServer

from formal_llm.errors import FormalLLMError
from formal_llm.llms.hosted import pace
from formal_llm.llms.question import Question
from tests.llms.hosted.adapters import ADAPTERS, Adapter

#: The seconds of a question, and those after which an end is late.
DEADLINE, LATE = 0.8, 1.6
KEY = "a-key-that-nobody-may-see"
QUESTION = Question("Which one?", ["red", "green", "blue"])


async def stream_awaited(llm: Any) -> None:
    async for _ in llm.astream("Write."):
        pass


WAYS: dict[str, tuple[Callable[[Any], object], Callable[[Any], Awaitable[object]]]] = {
    "choice": (lambda llm: llm.choose(QUESTION), lambda llm: llm.achoose(QUESTION)),
    "text": (lambda llm: llm.generate("Write."), lambda llm: llm.agenerate("Write.")),
    "stream": (lambda llm: list(llm.stream("Write.")), stream_awaited),
}


def ask(server: HostileServer, adapter: Adapter, way: str, *, awaited: bool) -> tuple[str, str]:
    """Ask once; return the kind of the end, and what is wrong with it."""
    llm = adapter.make(
        server.url, api_key=KEY, timeout=DEADLINE / 2, deadline=DEADLINE, max_retries=1, max_bytes=2 * MILLION
    )

    async def ask_awaited() -> object:
        try:
            return await WAYS[way][1](llm)
        finally:
            await llm.aclose()

    begun, problem, kind = time.monotonic(), "", "answer"
    try:
        _ = asyncio.run(ask_awaited()) if awaited else WAYS[way][0](llm)
    except FormalLLMError as error:
        kind = type(error).__name__
        if KEY in "".join(traceback.format_exception(error)):
            problem = "shows the key"
    except Exception as error:
        kind, problem = "foreign", f"{type(error).__name__}: {error}"[:120]
    finally:
        llm.client.close()
    if not problem and (seconds := time.monotonic() - begun) > LATE:
        problem = f"late: {seconds:.1f} s"
    return kind, problem


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--adapters", default=",".join(map(str, ADAPTERS)))
    given = parser.parse_args()
    adapters = [adapter for adapter in ADAPTERS if adapter.name in given.adapters.split(",")]
    ends: Counter[str] = Counter()
    wrong: list[str] = []
    late = 0
    for fault in given.faults.split(","):
        for adapter, way, awaited in product(adapters, WAYS, (False, True)):
            if way != "choice" and not adapter.writes:
                continue
            pace._PACES.clear()  # what a server refused in one case slows down no other
            with HostileServer(fault) as server:
                kind, problem = ask(server, adapter, way, awaited=awaited)
            ends[kind] += 1
            if problem:
                print(f"{fault}, {adapter}, {way}, {'awaited' if awaited else 'waiting'}: {problem}", file=sys.stderr)
                late += (is_late := problem.startswith("late"))
                wrong += [] if is_late else [problem]
    print(f"{ends.total()} cases: " + ", ".join(f"{count} {kind}" for kind, count in ends.most_common()))
    print(f"foreign errors: {ends['foreign']}; keys shown: {len(wrong) - ends['foreign']}; late: {late}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
