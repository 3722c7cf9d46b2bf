"""The pace at which a host is asked, with a simulated clock; with a server see ``tests/cli/test_batch.py``."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest

from formal_llm.llms.hosted import pace as pace_module
from formal_llm.llms.hosted.pace import Pace, PaceLimits, find_pace, limit_pace, read_pause

BEGUN = monotonic()


@pytest.fixture(autouse=True)
def without_paces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with no pace, and with the real pauses."""
    monkeypatch.setattr(pace_module, "_PACES", {})


class Host:
    """A host that answers so many requests a second, and clients that each have one request in flight."""

    def __init__(self, allowed: float, pace: Pace | None = None, latency: float = 0.05) -> None:
        self.now, self.allowed, self.latency = 0.0, allowed, latency
        self.pace = pace or Pace(clock=lambda: self.now)
        self.left, self.since = max(allowed, 1.0), 0.0
        self.answered = self.refused = 0

    def is_allowed(self) -> bool:
        self.left = min(self.left + (self.now - self.since) * self.allowed, max(self.allowed, 1.0))
        self.since = self.now
        if self.left < 1:
            return False
        self.left -= 1
        return True

    def simulate(self, requests: int, clients: int, wait: float | None = None) -> float:
        """Make requests until so many were answered; return the seconds that it took."""
        events = [(0.0, number, 0, 0) for number in range(clients)]  # time, client, turns lost, status that arrives
        while self.answered < requests:
            self.now, client, lost, status = heapq.heappop(events)
            if status:
                self.pace.note_response(status, {}, wait if status == 429 else None)
                self.answered += status == 200
                self.refused += status == 429
            seconds = self.pace.take_turn(100, lost)
            if seconds:
                heapq.heappush(events, (self.now + seconds, client, lost + 1, 0))
            else:
                status = 200 if self.is_allowed() else 429
                heapq.heappush(events, (self.now + (self.latency if status == 200 else 0.001), client, 0, status))
        return self.now


@pytest.mark.parametrize("allowed", [2.0, 10.0, 100.0])
@pytest.mark.parametrize("clients", [4, 32, 128])
@pytest.mark.parametrize("wait", [None, 1.0])
def test_the_rate_of_a_host_is_found_and_few_requests_are_refused(
    allowed: float, clients: int, wait: float | None
) -> None:
    host = Host(allowed)
    requests = int(allowed * 200)
    seconds = host.simulate(requests, clients, wait)
    assert host.refused <= clients + 0.05 * requests
    assert seconds <= 1.3 * requests / min(allowed, clients / host.latency)


def test_a_host_without_a_limit_is_not_slowed_down() -> None:
    host = Host(1e9)
    assert host.simulate(10_000, 64) == pytest.approx(10_000 / 64 * 0.05, rel=0.02)
    assert host.pace.rate is None


def test_a_given_rate_is_kept_from_the_start() -> None:
    host = Host(10.0)
    host.pace = Pace(PaceLimits(rps=8.0), clock=lambda: host.now)
    assert host.simulate(400, 32) == pytest.approx(50, rel=0.05)
    assert host.refused == 0


def test_tokens_a_minute() -> None:
    host = Host(1e9)
    host.pace = Pace(PaceLimits(tpm=1_500), clock=lambda: host.now)
    assert host.simulate(61, 8) == pytest.approx(60, rel=0.05)  # 25 tokens a request


def test_all_wait_while_a_host_wants_to_be_left_alone() -> None:
    now = 0.0
    pace = Pace(clock=lambda: now)
    assert pace.take_turn() == 0
    pace.note_response(429, {}, 7.0)
    assert pace.take_turn() == pytest.approx(7.0)
    now = 5.0
    pace.note_response(429, {})  # sent before the pause
    assert pace.take_turn() == pytest.approx(2.0)
    now = 7.0
    assert pace.take_turn() == 0


def test_refusals_in_a_row_are_followed_by_longer_pauses() -> None:
    now, pauses = 0.0, []
    pace = Pace(clock=lambda: now)
    for _ in range(9):
        pace.note_response(429, {})
        pauses.append(pace.take_turn())
        now += pauses[-1]
        assert pace.take_turn() == 0
    assert pauses == [min(pace_module.SHORTEST * 2**n, pace_module.LONGEST) for n in range(9)]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0), ({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "3s"}, 0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "3s"}, 3),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0.5s"}, 360.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2.5"}, 2.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "soon"}, 0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9" * 400}, 0),
        ({"anthropic-ratelimit-input-tokens-remaining": "0",
          "anthropic-ratelimit-input-tokens-reset": (datetime.now(UTC) + timedelta(hours=1)).isoformat()}, 3600),
        ({"anthropic-ratelimit-requests-remaining": "0",
          "anthropic-ratelimit-requests-reset": "2020-01-01T00:00:00Z"}, 0),
    ],
)  # fmt: skip
def test_what_hosts_report_of_their_limits(headers: Mapping[str, str], seconds: float) -> None:
    passed = monotonic() - BEGUN if seconds == 3600 else 0  # since the header was written
    assert read_pause(headers) == pytest.approx(seconds - passed, abs=60 if passed else 1e-9)


def test_one_pace_for_a_host_and_its_bounds() -> None:
    one = find_pace("http://localhost:1234/v1/chat")
    assert one is find_pace("http://user:secret@localhost:1234/v1/completions")
    assert one is not find_pace("http://localhost:1235/v1/chat")
    with limit_pace(rps=3):
        assert find_pace("http://localhost:1234").rate == 3
    assert find_pace("http://localhost:1234").rate is None
    with pytest.raises(ValueError, match="above 0"), limit_pace(rps=0):
        pass
