"""Clients that are awaited: for each event loop its own, closed with it; and a forked process has its own, too."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Planner
from formal_llm.llms.hosted.lanes import Lanes
from tests.llms.hosted import protocol_server as ps
from tests.llms.hosted.adapters import Adapter

RULES = CFG.from_string("S -> a S | b")


class Client:
    """A client that counts how many of its kind are open, and holds its loop as real ones do."""

    open = 0

    def __init__(self) -> None:
        Client.open += 1
        self.loop = asyncio.get_running_loop()

    async def close(self) -> None:
        await asyncio.sleep(0)
        assert self.loop is asyncio.get_running_loop()
        Client.open -= 1


@pytest.fixture
def lanes() -> Lanes:
    Client.open = 0
    return Lanes(Client)  # type: ignore[arg-type]


def test_clients_are_closed_with_their_loop(lanes: Lanes) -> None:
    loops = []

    async def use() -> None:
        async with lanes.client() as first, lanes.client() as second:
            assert first is second
        loops.append(weakref.ref(asyncio.get_running_loop()))
        assert Client.open == 1

    for _ in range(20):
        asyncio.run(use())
        assert Client.open == 0
    gc.collect()
    assert len(lanes._loops) == 0
    assert all(loop() is None for loop in loops)


def test_a_loop_that_closes_nothing_is_forgotten_with_the_next_one(lanes: Lanes) -> None:
    async def use() -> None:
        async with lanes.client():
            pass

    for _ in range(5):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(use())
        loop.close()
    assert len(lanes._loops) == 1
    asyncio.run(use())
    assert len(lanes._loops) == 0


def test_closing_by_hand_and_beginning_anew(lanes: Lanes) -> None:
    async def use() -> None:
        for _ in range(3):
            async with lanes.client():
                assert Client.open == 1
            await lanes.aclose()
            await lanes.aclose()
            assert Client.open == 0
            assert lanes.in_flight == []

    asyncio.run(use())


def test_closing_takes_no_client_away_from_others(lanes: Lanes) -> None:
    async def use() -> None:
        async with lanes.client() as first, lanes.client() as again:
            assert again is first
            await lanes.aclose()  # somebody else on this loop is done
            assert Client.open == 1
            async with lanes.client() as second:
                assert second is not first
                assert Client.open == 2
        assert Client.open == 1  # the first one was closed with its last request
        await lanes.aclose()
        assert Client.open == 0

    asyncio.run(use())


def test_batches_on_one_loop_do_not_close_each_others_connections(adapter: Adapter, server: ps.ProtocolServer) -> None:
    llm = adapter.make(server.url)
    server.script = [ps.ok(2, together=2), ps.ok(1, together=2), ps.ok(1), ps.ok(1), ps.ok(2)]

    async def both() -> None:
        planner = Planner(RULES, llm)
        outcomes = await asyncio.gather(planner.aplan_all(["t"]), planner.aplan_all(["u"]))
        words = [outcome.unwrap().word for (outcome,) in outcomes]
        assert sorted(map(len, words)) == [1, 4]

    asyncio.run(both())
    llm.client.close()


def test_lanes_of_loops_in_threads_do_not_meet(lanes: Lanes) -> None:
    inside = threading.Barrier(4)
    found: list[Any] = []

    async def use() -> None:
        async with lanes.client() as client:
            found.append(client)
            await asyncio.to_thread(inside.wait, 30)
            assert client.loop is asyncio.get_running_loop()  # type: ignore[attr-defined]

    threads = [threading.Thread(target=lambda: asyncio.run(use())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 4
    assert Client.open == 0


def test_a_client_of_the_users_stays_open() -> None:
    closed: list[int] = []

    class Own:
        async def close(self) -> None:
            closed.append(1)

    own = Own()
    lanes = Lanes(Client, own)  # type: ignore[arg-type]

    async def use() -> None:
        for _ in range(40):
            async with lanes.client() as client:
                assert client is own  # type: ignore[comparison-overlap]
        await lanes.aclose()

    asyncio.run(use())
    assert not closed


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def keeping(running_server: ps.ProtocolServer) -> Iterator[ps.ProtocolServer]:
    """A server that keeps connections open; clients are closed in the test."""
    server = ps.ProtocolServer(keep=True)
    server.start()
    yield server
    server.stop()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not tell what is open")
def test_plans_on_many_event_loops_leave_nothing_open(
    adapter: Adapter, keeping: ps.ProtocolServer, make_question: Any
) -> None:
    llm = adapter.make(keeping.url)
    counts = []
    for _ in range(5):
        keeping.script = [ps.ok(2), ps.ok(1)]

        async def use() -> None:
            assert (await llm.achoose(make_question())).number == 2
            assert (await llm.achoose(make_question())).number == 1

        asyncio.run(use())
        gc.collect()
        keeping.wait_until_left()  # its ends of the connections are descriptors of this process, too
        counts.append(descriptors())
    assert len(llm._lanes._loops) == 0
    assert len(set(keeping.connections)) == 5  # kept open between the questions of a loop
    assert counts[-1] <= counts[0]
    llm.client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_has_connections_of_its_own(
    adapter: Adapter, keeping: ps.ProtocolServer, make_question: Any
) -> None:
    llm = adapter.make(keeping.url)
    question = make_question()
    keeping.script = [ps.ok(2), ps.ok(1), ps.ok(3), ps.ok(2)]
    assert llm.choose(question).number == 2  # now it has a warm connection
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if [llm.choose(question).number, llm.choose(question).number] == [1, 3] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert llm.choose(question).number == 2
    first, *of_child, last = keeping.connections
    assert first == last
    assert len(set(of_child)) == 1
    assert of_child[0] != first
    llm.client.close()


def test_plans_that_are_awaited_one_by_one(adapter: Adapter, server: ps.ProtocolServer) -> None:
    llm = adapter.make(server.url)
    planner = Planner(RULES, llm)
    for _ in range(3):
        server.script = [ps.ok(2)]
        assert asyncio.run(planner.aplan("t")).word == ("b",)
    assert len(llm._lanes._loops) == 0
    llm.client.close()
