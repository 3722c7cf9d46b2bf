"""Workers: answers in parts, and work that is given up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from formal_llm.studio.worker import _MOST as MOST
from formal_llm.studio.worker import Worker, Workers
from tests.studio.texts import TEA

#: A question that takes minutes: many plans that have to be told apart.
LONG = {
    "question": "compare", "ending": ".cfg",
    "text": "S -> S S | " + " | ".join(f"a{n}" for n in range(12)) + "\n",
    "other": "S -> S S S | " + " | ".join(f"a{n}" for n in range(12)) + "\n",
}  # fmt: skip
SHORT = {"question": "check", "text": TEA, "ending": ".cfg"}


async def parts(worker: Worker, asked: dict[str, object], seconds: float = 30) -> list[dict[str, object]]:
    return [json.loads(line) async for line in worker.ask(asked, seconds)]


def test_answers_come_in_parts_and_the_worker_stays() -> None:
    async def main() -> None:
        workers = Workers()
        try:
            worker = workers.worker("a")
            assert (await parts(worker, SHORT))[-1]["part"] == "end"
            process = worker._process
            assert (await parts(worker, {"question": "check", "text": "S - a"}))[0]["part"] == "problems"
            assert worker._process is process
            assert workers.worker("a") is worker
        finally:
            workers.close()
        assert process is not None
        assert not process.is_alive()

    asyncio.run(main())


def test_a_new_question_ends_the_work_on_the_one_before() -> None:
    async def main() -> None:
        workers = Workers()
        worker = workers.worker("a")
        try:
            await parts(worker, SHORT)
            process = worker._process
            first = asyncio.ensure_future(parts(worker, LONG))
            while not worker._busy:
                await asyncio.sleep(0)
            second = await parts(worker, SHORT)
            assert second[-1]["part"] == "end"
            assert (await first)[-1] == {"part": "given up", "reason": "something else was asked"}
            assert process is not None
            assert not process.is_alive()
        finally:
            workers.close()

    asyncio.run(main())


def test_many_pages_wait_for_their_turn_and_none_is_given_up() -> None:
    async def main() -> None:
        workers = Workers()
        try:
            asked = [parts(workers.worker(f"page {number}"), SHORT) for number in range(3 * MOST)]
            assert [found[-1]["part"] for found in await asyncio.gather(*asked)] == ["end"] * (3 * MOST)
            await parts(workers.worker("another"), SHORT)
            alive = [one for one in workers._workers.values() if one._process is not None]
            assert len(alive) <= MOST
        finally:
            workers.close()

    asyncio.run(main())


def test_what_takes_too_long_is_given_up() -> None:
    async def main() -> None:
        workers = Workers()
        try:
            worker = workers.worker("a")
            await parts(worker, SHORT)
            found = await parts(worker, LONG, 0.2)
            assert found[-1] == {"part": "given up", "reason": "it took longer than 0.2 seconds"}
            assert worker._process is None
            assert (await parts(worker, SHORT))[-1]["part"] == "end"
        finally:
            workers.close()

    asyncio.run(main())


def test_not_waiting_for_the_rest_ends_the_work() -> None:
    async def main() -> None:
        workers = Workers()
        try:
            worker = workers.worker("a")
            asking: AsyncIterator[bytes] = worker.ask(SHORT, 30)
            assert json.loads(await anext(asking))["part"] == "problems"
            process = worker._process
            await asking.aclose()  # type: ignore[attr-defined]
            assert process is not None
            assert not process.is_alive()
        finally:
            workers.close()

    asyncio.run(main())


def test_there_are_only_so_many_workers() -> None:
    workers = Workers()
    first = workers.worker("0")
    for number in range(1, 20):
        workers.worker(str(number))
    assert workers.worker("0") is not first
    workers.close()
