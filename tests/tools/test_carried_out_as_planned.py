"""A plan keeps the rules, and so does what is carried out: its order, its gaps, and each call as often as planned."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from formal_llm import CFG, Planner, RandomLLM
from formal_llm.errors import AutomatonError, GrammarError, NoValidPlan, ToolError, ToolkitError
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools import Executor, Tool, Toolkit, tool
from formal_llm.tools.kinds import TEXT

# -- the defects of the first hour ------------------------------------------------------------------------------------


def test_a_backup_ends_before_the_migration_begins() -> None:
    log: list[str] = []

    @tool
    def backup(db: str) -> str:
        log.append("backup begins")
        time.sleep(0.02)
        log.append("backup ends")
        return "B"

    @tool
    def migrate(db: str) -> str:
        log.append("migrate begins")
        return "M"

    @tool
    def report(a: str, b: str) -> str:
        return a + b

    cfg = CFG.from_string(
        "%order prefix\n%rule backup before migrate\nReport -> report M B\nM -> migrate db\nB -> backup db"
    )
    plan = Planner(cfg, "test:first").plan("x")
    assert Toolkit([backup, migrate, report]).run(plan, {"db": "d"}).output == "MB"
    assert log == ["backup begins", "backup ends", "migrate begins"]


def test_two_mails_are_two_mails_and_a_second_run_sends_again() -> None:
    sent: list[str] = []

    @tool
    def send_mail(to: str) -> str:
        sent.append(to)
        return f"sent #{len(sent)} to {to}"

    @tool
    def both(a: str, b: str) -> str:
        return f"{a} & {b}"

    cfg = CFG.from_string("%order prefix\n%require 2 send_mail\nDone -> both Mail Mail\nMail -> send_mail address")
    plan, kit = Planner(cfg, "test:first").plan("Send two mails"), Toolkit([send_mail, both])
    assert sorted(kit.run(plan, {"address": "ada"}).output.split(" & ")) == ["sent #1 to ada", "sent #2 to ada"]
    kit.run(plan, {"address": "ada"})
    assert len(sent) == 4


class Simulated:
    """A clock that stands still but for those who sleep by it."""

    def __init__(self, now: float) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.time += seconds


TIMED = """
%clock time 8:00-20:00
%gap 2h backup -> migrate
%window migrate 9:00-12:00 14:00-18:00
Plan -> backup rest migrate
backup "Backup" time=30min
rest "Rest" time=2h30
migrate "Migrate" time=1h
"""


def timed_kit(clock: Simulated, log: list[tuple[str, float]], rest: float = 0) -> Toolkit:
    def make(name: str) -> Tool:
        def work() -> str:
            log.append((name, clock.time))
            clock.time += rest if name == "rest" else 600
            return name

        return Tool(name, (), TEXT, work)

    return Toolkit([make(name) for name in ("backup", "rest", "migrate")])


@pytest.mark.parametrize(
    ("begins", "rest", "migrates"),
    [
        (7 * 3600, 0, 10 * 3600 + 600),  # waits for 8:00; two hours after the backup has ended
        (9.5 * 3600, 0, 14 * 3600),  # at 11:40 an hour does not fit in before 12:00
        (9 * 3600, 7.5 * 3600, 16 * 3600 + 2400),  # the rest took longer than planned, and there is nothing to wait for
    ],
)
def test_gaps_and_windows_are_waited_for(begins: float, rest: float, migrates: float) -> None:
    clock, log = Simulated(begins), list[tuple[str, float]]()
    plan = Planner(CFG.from_string(TIMED), "test:first").plan("x")
    Executor(timed_kit(clock, log, rest), clock=clock).run(plan, {})
    assert log[0] == ("backup", max(begins, 8 * 3600))
    assert log[2] == ("migrate", migrates)


def test_what_is_late_is_not_begun_and_says_by_which_rule() -> None:
    clock, log = Simulated(15 * 3600), list[tuple[str, float]]()
    cfg = CFG.from_string(TIMED)
    plan = Planner(cfg, "test:first").plan("x")
    with pytest.raises(ToolError, match=r"migrate .*cannot begin any more at 18:40: %window migrate") as caught:
        Executor(timed_kit(clock, log, 3.5 * 3600), clock=clock).run(plan, {})
    assert (caught.value.reason, caught.value.position) == ("late", 2)
    assert [name for name, _ in log] == ["backup", "rest"]
    # Without waiting the order alone is kept; the schedule says when the steps would be.
    Executor(timed_kit(clock, log), wait=False).run(plan, {})
    assert [name for name, _ in log[2:]] == ["backup", "rest", "migrate"]
    assert [str(step) for step in plan.schedule] == [
        "8:00 to 8:30: backup", "8:30 to 11:00: rest", "11:00 to 12:00: migrate",
    ]  # fmt: skip


def test_a_plan_from_a_file_needs_its_rules_where_they_say_when_steps_may_be() -> None:
    clock, log = Simulated(8 * 3600), list[tuple[str, float]]()
    cfg = CFG.from_string(TIMED)
    again = Plan.from_json(Planner(cfg, "test:first").plan("x").to_json())
    executor = Executor(timed_kit(clock, log), clock=clock)
    with pytest.raises(ToolkitError, match="with_rules"):
        executor.run(again, {})
    executor.run(again.with_rules(cfg), {})
    assert len(log) == 3
    with pytest.raises(AutomatonError, match="no plan of these rules"):
        again.with_rules(CFG.from_string("Plan -> backup migrate"))


# -- random plans under random rules ----------------------------------------------------------------------------------

NAMES = ("a", "b", "c", "d", "e")
Word = list[str]
#: Sentences about two steps, and independently of them what they say of a sequence.
SENTENCES: dict[str, Callable[[Word, str, str], bool]] = {
    "{a} before {b}": lambda word, a, b: b not in word or a in word[: word.index(b)],
    "{a} before each {b}": lambda word, a, b: all(
        a in word[max((k + 1 for k in range(n) if word[k] == b), default=0) : n] for n in places(word, b)
    ),
    "{b} after each {a}": lambda word, a, b: all(b in word[n:] for n in places(word, a)),
    "{b} directly after each {a}": lambda word, a, b: all(word[n + 1 : n + 2] == [b] for n in places(word, a)),
    "never {b} after {a}": lambda word, a, b: a not in word or b not in word[word.index(a) :],
    "never {b} directly after {a}": lambda word, a, b: all(word[n + 1 : n + 2] != [b] for n in places(word, a)),
    "first {a} or {b}": lambda word, a, b: word[0] in (a, b),
    "at most 1 {a}": lambda word, a, b: word.count(a) <= 1,
}


def places(word: Word, name: str) -> Word:
    return [n for n, one in enumerate(word) if one == name]  # type: ignore[misc]


Rule = Callable[[Word], bool]


def random_rules(rng: random.Random, prefix: bool) -> tuple[CFG, list[Rule]]:
    """A grammar with rules about the order of steps, and what these say."""
    lines, rules = [f"%limit {rng.randint(1, 3)}", "%limit * doc"], list[Rule]()
    # In nested calls an input is a step, too, which may come between two calls.
    usable = [sentence for sentence in SENTENCES if not prefix or not ("directly" in sentence or "first" in sentence)]
    for sentence in rng.sample(usable, rng.randint(0, 2)):
        a, b = rng.sample(NAMES, 2)
        lines.append("%rule " + sentence.format(a=a, b=b))
        rules.append(partial(SENTENCES[sentence], a=a, b=b))
    lines.append(f"%require {rng.randint(1, 2)} {rng.choice(NAMES)}")
    if prefix:
        lines = ["%order prefix", *lines, "S -> join T T", *(f"T -> {name} T" for name in NAMES), "T -> doc"]
    else:
        lines = [line for line in lines if "doc" not in line] + ["S -> T S | T", "T -> " + " | ".join(NAMES)]
    return CFG.from_string("\n".join(lines)), rules


class Calls:
    """What was called, in the order of time: the name, the number of the call, and whether it began or ended."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int, bool]] = []
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def names(self, *, begun: bool) -> Word:
        return [name for name, _, begins in self.log if begins is begun]

    def make_tool(self, name: str, pure: bool, fails: float, rng: random.Random, inputs: int) -> Tool:
        delays, failures = [rng.random() * 0.002 for _ in range(3)], [rng.random() < fails for _ in range(3)]

        def begin() -> int:
            with self._lock:
                number = next(self._numbers)
                self.log.append((name, number, True))
            return number

        def end(number: int, values: Sequence[str]) -> str:
            if failures[number % 3]:
                raise ConnectionError
            with self._lock:
                self.log.append((name, number, False))
            return f"{name}({', '.join(values)})"

        def work(*values: str) -> str:
            number = begin()
            time.sleep(delays[number % 3])
            return end(number, values)

        async def awork(*values: str) -> str:
            number = begin()
            await asyncio.sleep(delays[number % 3])
            return end(number, values)

        return Tool(name, (TEXT,) * inputs, TEXT, rng.choice([work, awork]), version="1", pure=pure)


def check_random_plan(seed: int) -> str:
    """Carry a random plan out; returns what kind of run it was."""
    rng = random.Random(seed)
    prefix = rng.random() < 0.5
    try:
        cfg, rules = random_rules(rng, prefix)
        plan = Planner(cfg, RandomLLM(seed)).plan("t")
    except (GrammarError, NoValidPlan):
        return "no plan"
    calls, fails = Calls(), rng.choice([0, 0, 0.15])
    pure = {name for name in (*NAMES, "join") if rng.random() < rng.choice([0, 0.5, 1])}
    tools = [calls.make_tool(name, name in pure, fails, rng, int(prefix)) for name in NAMES]
    tools.append(calls.make_tool("join", "join" in pure, fails, rng, 2))
    order = [name for name in (plan.word[::-1] if prefix else plan.word) if name != "doc"]
    assert all(rule(order) for rule in rules), (order, cfg)
    ends: list[int] = []
    try:
        result = Executor(Toolkit(tools)).run(
            plan, {"doc": "x"} if prefix else {},
            on_progress=lambda one: ends.append(one.position) if one.event != "started" else None,
        )  # fmt: skip
    except ToolError as error:
        failed, steps = error.position, error.result.steps[:: -1 if prefix else 1]
        before = [step for step in steps if step.name != "doc"]
        at = next(n for n, step in enumerate(before) if step.position == failed)
        # What is not pure was called if it comes before the failure, and in the order of the plan.
        begun = [name for name in calls.names(begun=True) if name not in pure]
        planned = [step.name for step in before[: at + 1] if step.name not in pure]
        assert begun == planned, (begun, order)
        return "failed"
    assert result.error is None
    begun, ended = Counter(calls.names(begun=True)), [plan.word[position] for position in ends]
    planned_calls = Counter(order)
    for name in planned_calls:
        assert begun[name] == planned_calls[name] or (name in pure and 1 <= begun[name] <= planned_calls[name])
    assert begun.keys() == planned_calls.keys()
    seen = [ended] if begun != planned_calls else [ended, calls.names(begun=True), calls.names(begun=False)]
    for word in seen:
        assert Counter(word) == planned_calls
        assert all(rule(word) for rule in rules), (word, order, str(cfg))
        assert [name for name in word if name not in pure] == [name for name in order if name not in pure]
    # What is not pure runs alone.
    running: set[int] = set()
    together = False
    for name, number, begins in calls.log:
        if begins:
            assert name in pure or not running
            running.add(number)
            together = together or len(running) > 1
        else:
            running.discard(number)
    return "side by side" if together else "one by one"


def test_random_plans_are_carried_out_as_planned() -> None:
    kinds = Counter(check_random_plan(seed) for seed in range(150))
    assert all(kinds[kind] >= 5 for kind in ("side by side", "one by one", "failed")), kinds
