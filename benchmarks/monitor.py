"""What an event costs under a monitor: microseconds of processor time for ``allowed`` and ``after`` together.

``python benchmarks/monitor.py`` prints a table. *Warm* is a second pass over the same traces, as in a process that
watches many runs under the same rules; *cold* is the first pass over them, with all that is worked out on the way.
"""

from __future__ import annotations

import argparse
import gc
import random
import tracemalloc
from collections.abc import Callable
from time import process_time

from formal_llm import CFG, Behaviour, Limits, SumLimit, Symbol, constraint
from formal_llm.agents import Monitor
from formal_llm.automata import PDA

NOT_BEFORE = "(or (always (not {1})) (next (until (and any (not {1})) {0}) (until any empty)))"


def react() -> Monitor:
    return Monitor(Behaviour.load("react"))


def react_limited() -> Monitor:
    return Monitor(Behaviour.load("react"), limits=Limits(at_most={"Act": 7}, at_least={"Act": 1}))


def nested() -> Monitor:
    return Monitor(CFG.from_string("%order forward\nS -> open S close S | call S | stop"))


def budget() -> Monitor:
    """Ten tools that cost 1 to 10 of a budget of 300, two of them needed at least twice."""
    tools = [f"t{number}" for number in range(10)]
    symbols = {name: Symbol(numbers={"cost": number + 1}) for number, name in enumerate(tools)}
    loops = [("q", name, None, "q") for name in tools]
    rules = PDA([*loops, ("q", "answer", None, "end")], start="q", accepting=["end"], symbols=symbols)
    return Monitor(rules, limits=Limits(at_least={"t8": 2, "t9": 2}, sums=(SumLimit("cost", 300),)))


def fifty() -> Monitor:
    """Fifty rules over 200 tools: twenty-five orders of two tools, twenty-five tools that are needed."""
    tools = [f"t{number}" for number in range(200)]
    rules = [constraint(NOT_BEFORE.format(f"t{n}", f"t{n + 1}"), tools) for n in range(0, 50, 2)]
    rules += [constraint(f"(eventually t{n})", tools) for n in range(100, 125)]
    return Monitor(rules)


def fifty_budget() -> Monitor:
    """Those, a third of them under one budget."""
    tools = [f"t{number}" for number in range(200)]
    symbols = {name: Symbol(numbers={"cost": 1}) for name in tools[:8]}
    rules = [constraint(NOT_BEFORE.format(f"t{n}", f"t{n + 1}"), tools) for n in range(0, 50, 2)]
    rules += [constraint(f"(eventually t{n})", tools) for n in range(100, 125)]
    first = rules[0]
    rules[0] = PDA(first.transitions, start=first.start_state, accepting=first.accepting_states, symbols=symbols)
    return Monitor(rules, limits=Limits(sums=(SumLimit("cost", 40),)))


CASES: dict[str, Callable[[], Monitor]] = {
    "react": react,
    "react, limits": react_limited,
    "nested calls": nested,
    "budget of 300, 10 tools": budget,
    "50 rules, 200 tools": fifty,
    "50 rules, 200 tools, a budget": fifty_budget,
}


def traces(monitor: Monitor, number: int, length: int) -> list[list[str]]:
    """Random legal traces that end when they must, or at this length."""
    rng = random.Random(0)
    found = []
    for _ in range(number):
        trace: list[str] = []
        now = monitor
        while len(trace) < length and (names := list(now.allowed())):
            trace.append(rng.choice(names))
            now = now.after(trace[-1])
        found.append(trace)
    return found


def per_event(monitor: Monitor, all_: list[list[str]], *, whole: bool) -> float:
    """Microseconds an event; with ``whole`` everything that is allowed is read, not only the event that comes."""
    gc.collect()
    begun = process_time()
    for trace in all_:
        now = monitor
        for name in trace:
            allowed = now.allowed()
            if whole:
                list(allowed.items())
            else:
                assert allowed[name].certain
            now = now.after(name)
    return 1e6 * (process_time() - begun) / sum(map(len, all_))


def memory(length: int) -> None:
    """What is kept of one long trace, beside the events themselves."""
    for name in ("react", "budget of 10^6"):
        if name == "react":
            monitor, round_ = react().after("Ques"), ["Tht", "Act", "Act-Inp", "Obs"]
        else:
            rules = CFG.from_string("%order forward\n%limit work <= 1000000\nS -> call S | stop\ncall work=1")
            monitor, round_ = Monitor(rules), ["call"]
        tracemalloc.start()
        begun = process_time()
        for number in range(length):
            monitor = monitor.after(round_[number % len(round_)])
        taken = 1e6 * (process_time() - begun) / length
        kept = tracemalloc.get_traced_memory()[0] / 1e6
        tracemalloc.stop()
        print(f"{name:32}{length:>9,} events{kept:>9.1f} MB{1e6 * kept / length:>8.0f} bytes an event{taken:>8.1f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="only cases whose name holds this text")
    parser.add_argument("--traces", type=int, default=50)
    parser.add_argument("--memory", type=int, default=0, metavar="EVENTS", help="measure the memory of one long trace")
    args = parser.parse_args()
    if args.memory:
        memory(args.memory)
        return
    print(f"{'rules':32}{'start ms':>10}{'cold µs':>10}{'warm µs':>10}{'warm, all read':>16}")
    for name, make in CASES.items():
        if args.only in name:
            begun = process_time()
            monitor = make()
            monitor.allowed()
            start = 1e3 * (process_time() - begun)
            all_ = traces(monitor, args.traces, 100)
            cold = per_event(make(), all_, whole=False)
            warm, whole = (per_event(monitor, all_, whole=whole) for whole in (False, True))
            print(f"{name:32}{start:>10.0f}{cold:>10.1f}{warm:>10.1f}{whole:>16.1f}")


if __name__ == "__main__":
    main()
