"""tau-bench's airline and retail domains under their written policies, as files of rules (``guard_rules/tau_*.guard``).

Airline, recorded conversations: how many break the policy, how many of those had failed (reward 0), what share of all
failures that explains, and which reference solutions break the written policy themselves. The rules were improved on
the conversations of tasks with even numbers; the others are reported apart.

What the airline knows and the conversation does not show is added to the reservations that the agent looked up, from
the flight table: whether the airline cancelled a flight of it, and whether one was delayed or has been flown.

Retail, of which no conversations are published: the reference actions of each task, played against the published tools
over their own database with a user who confirms, as they are (which are refused?) and with one clause of the policy
broken (is that call refused?).

Run: ``python benchmarks/guard_tau.py FOLDER`` with the folder of ``trajectories.jsonl`` and ``flights.json``;
``python benchmarks/guard_tau.py FOLDER --domain retail`` with the unpacked wheel of ``inspect-evals``
(``pip download inspect-evals==0.28.0 --no-deps``).
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import sys
import time
import types
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from formal_llm.guard import Call, Decision, Guard, GuardEvent, GuardRules, Result, Said
from formal_llm.guard.traces import Trace, read_traces
from formal_llm.guard.verifying import TraceReport, verify_trace

RULES = Path(__file__).with_name("guard_rules")
#: Calls that change the booking database.
WRITES = ("book_reservation", "cancel_reservation", "update_reservation")


@dataclass(frozen=True)
class Airline:
    """What the airline knows: the status of flights by day, and the reservations and profiles as they were at first."""

    flights: Mapping[str, Any]
    reservations: Mapping[str, Mapping[str, Any]]
    profiles: Mapping[str, Mapping[str, Any]]

    def known(self, reservation: Mapping[str, Any]) -> dict[str, Any]:
        """A reservation, with what the airline knows of its flights."""
        statuses = {self._status(flight) for flight in reservation.get("flights", ())}
        flown = bool(statuses & {"landed", "flying"})
        return {**reservation, "airline_cancelled": "cancelled" in statuses, "flown": flown,
                "delayed": "delayed" in statuses}  # fmt: skip

    def _status(self, flight: Mapping[str, Any]) -> str:
        days = self.flights.get(flight["flight_number"], {}).get("dates", {})
        return str(days.get(flight["date"], {}).get("status", ""))

    def enriched(self, trace: Trace) -> Trace:
        """A trace with what the airline knows."""
        return replace(trace, events=tuple(self._enrich(event) for event in trace.events))

    def _enrich(self, event: GuardEvent) -> GuardEvent:
        if isinstance(event, Result) and event.tool == "get_reservation_details":
            value = _object(event.value)
            return replace(event, value=self.known(value)) if value else event
        return event

    def solution(self, number: int, actions: Sequence[Mapping[str, Any]]) -> Trace:
        """A reference solution as a trace: what it changes is looked up and confirmed before, as the policy wants."""
        # Why the user wants it, is not in a solution: it is supposed to be a good reason.
        events: list[GuardEvent] = [Said("user", "It is for my health."), Said("user", "yes")]
        changed: dict[str, Mapping[str, Any]] = {}
        seen: set[str] = set()
        notes: list[str] = []

        def look(tool: str, key: str, found: Mapping[str, Mapping[str, Any]], name: str, whole: bool) -> None:
            if f"{tool} {name}" in seen:
                return
            seen.add(f"{tool} {name}")
            if name not in found:
                notes.append(f"{name} was looked up in no conversation")
                return
            value = self.known(found[name]) if whole else dict(found[name])
            events.extend([Call(tool, {key: name}), Result(tool, {key: name}, value)])

        for action in actions:
            given = action["kwargs"]
            if action["name"].startswith(WRITES) and "reservation_id" in given:
                look("get_reservation_details", "reservation_id", self.reservations, given["reservation_id"], True)
            user = given.get("user_id") or self.reservations.get(given.get("reservation_id"), {}).get("user_id")
            if user and action["name"].startswith(("book", "send", "update_reservation_baggages")):
                look("get_user_details", "user_id", self.profiles, user, False)
            if action["name"] == "get_reservation_details":
                look("get_reservation_details", "reservation_id", self.reservations, given["reservation_id"], True)
                continue
            if action["name"] == "get_user_details":
                look("get_user_details", "user_id", self.profiles, given["user_id"], False)
                continue
            value = None
            if "reservation_id" in given:
                kept = {name: given[name] for name in ("cabin", "passengers", "total_baggages") if name in given}
                value = changed[given["reservation_id"]] = {
                    **changed.get(given["reservation_id"], self.reservations.get(given["reservation_id"], {})), **kept
                }  # fmt: skip
            events.extend([Call(action["name"], given), Result(action["name"], given, value)])
        places = tuple(f"step {place}" for place in range(1, len(events) + 1))
        return Trace(f"task {number}", tuple(events), places, {}, tuple(dict.fromkeys(notes)))


def _object(value: object) -> dict[str, Any] | None:
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def airline(folder: Path, traces: Sequence[Trace]) -> Airline:
    """What the airline knows; reservations and profiles are those that were looked up before anything was changed."""
    reservations: dict[str, Mapping[str, Any]] = {}
    profiles: dict[str, Mapping[str, Any]] = {}
    for trace in traces:
        for event in trace.events:
            if isinstance(event, Call) and event.tool.startswith(WRITES):
                break
            if isinstance(event, Result) and (value := _object(event.value)):
                if event.tool == "get_reservation_details":
                    reservations.setdefault(str(event.arguments["reservation_id"]), value)
                elif event.tool == "get_user_details":
                    profiles.setdefault(str(event.arguments["user_id"]), value)
    return Airline(json.loads((folder / "flights.json").read_text()), reservations, profiles)


def measure_airline(folder: Path, show: bool) -> None:
    """Judge the recorded conversations of the airline domain, and its reference solutions."""
    traces = read_traces(folder / "trajectories.jsonl")
    known = airline(folder, traces)
    guard = Guard(GuardRules.from_file(RULES / "tau_airline.guard"))
    begun = time.process_time()
    reports = [verify_trace(guard, known.enriched(trace)) for trace in traces]
    spent = time.process_time() - begun
    _print_table(reports, guard)
    tasks = {trace.facts["task_id"]: trace.facts["actions"] for trace in traces}
    solutions = [
        verify_trace(guard, known.solution(number, actions))  # type: ignore[arg-type]
        for number, actions in sorted(tasks.items(), key=str)
    ]
    judged = [one for one in solutions if not one.notes]
    broken = [one for one in judged if not one.valid]
    print(f"\nreference solutions that break the written policy: {len(broken)} of {len(judged)}")
    for one in broken:
        print(f"  {one.trace.name}: {', '.join(dict.fromkeys(found.rule for found in one.violations))}")
    lawless = {int(one.trace.name.split()[1]) for one in broken}
    for title, half in (("even tasks, on which rules were improved", 0), ("odd tasks, not looked at", 1)):
        for left_out, without in ((set(), ""), (lawless, " but those")):
            some = [one for one in reports if one.trace.facts["task_id"] not in left_out]
            _print_share(f"{title}{without}", [one for one in some if int(str(one.trace.facts["task_id"])) % 2 == half])
    print(f"not judged: {len(solutions) - len(judged)}, which change what no conversation looked up")
    events = sum(len(trace.events) for trace in traces)
    print(f"\n{events} events in {spent:.2f} s of processor time: {1e6 * spent / events:.0f} µs each")
    if show:
        for report in [*reports, *broken]:
            if not report.valid:
                print(f"\nreward {report.trace.facts.get('reward')}: {report}")


def _print_table(reports: Sequence[TraceReport], guard: Guard) -> None:
    failed = [report for report in reports if report.trace.facts["reward"] != 1]
    print(f"{len(reports)} conversations, {len(failed)} of them failed; {len(guard.rules.names)} rules\n")
    print(f"{'rule':24} {'flagged':>8} {'failed':>7} {'of all failures':>16}")
    for name in guard.rules.names:
        flagged = [one for one in reports if any(name in found.rules for found in one.violations)]
        if flagged:
            _print_row(name, flagged, failed)
    data = [one for one in reports if any(set(found.rules) - {"confirmed", "one-call"} for found in one.violations)]
    _print_row("rules over data", data, failed)
    _print_row("all rules", [one for one in reports if not one.valid], failed)


def _print_share(title: str, reports: Sequence[TraceReport]) -> None:
    failed = [one for one in reports if one.trace.facts["reward"] != 1]
    flagged = [one for one in reports if not one.valid]
    right = sum(one in failed for one in flagged)
    precision, recall = 100 * right / len(flagged), 100 * right / len(failed)
    print(
        f"{title}: {right} of {len(flagged)} flagged failed ({precision:.0f}%), of {len(failed)} failures {recall:.0f}%"
    )


def _print_row(name: str, flagged: Sequence[TraceReport], failed: Sequence[TraceReport]) -> None:
    bad = sum(one in failed for one in flagged)
    print(f"{name:24} {len(flagged):8} {bad:7} {100 * bad / len(failed):15.0f}%")


# -- retail ---------------------------------------------------------------------------------------------------------


class Shop:
    """The retail shop: its tools as they are published, over its own database.

    Args:
        folder: the unpacked wheel.
    """

    def __init__(self, folder: Path) -> None:
        home = folder / "inspect_evals" / "tau2"
        data = home / "data" / "domains" / "retail"
        self.tasks = json.loads((data / "tasks.json").read_text())
        self.splits = json.loads((data / "split_tasks.json").read_text())
        self._tools = _load_tools(home)
        database = json.loads(gzip.decompress((data / "db.json.gz").read_bytes()))
        self.db = self._tools.db = type(self._tools).model_fields["db"].annotation.model_validate(database)

    def call(self, call: Call) -> Result:
        """What a tool returns, as a conversation shows it. It may change an order and a customer: see `restored`."""
        if call.tool not in SHOP_TOOLS:
            return Result(call.tool, call.arguments, "")
        try:
            value = getattr(self._tools, call.tool)(**call.arguments)
        except Exception as error:
            return Result(call.tool, call.arguments, f"Error: {error}", error=True)
        return Result(call.tool, call.arguments, value)

    @contextmanager
    def restored(self, script: Sequence[GuardEvent]) -> Iterator[None]:
        """Take back what the calls of a script change."""
        given = [event.arguments for event in script if isinstance(event, Call)]
        orders = {str(one["order_id"]) for one in given if one.get("order_id") in self.db.orders}
        users = {self.db.orders[one].user_id for one in orders}
        users |= {str(one["user_id"]) for one in given if "user_id" in one}
        kept = [(table, name, table[name])
                for table, names in ((self.db.orders, orders), (self.db.users, users)) for name in names]  # fmt: skip
        for table, name, value in kept:
            table[name] = value.model_copy(deep=True)
        try:
            yield
        finally:
            for table, name, value in kept:
                table[name] = value

    def owner(self, action: Call) -> str:
        """The customer whom an action is about."""
        order = self.db.orders.get(action.arguments.get("order_id"))
        return str(action.arguments.get("user_id") or (order.user_id if order else ""))

    def variants(self, product: str, *, available: bool = True) -> list[str]:
        """The items of a product that are available, or those that are not."""
        found = self.db.products[product].variants.values()
        return [one.item_id for one in found if one.available is available]

    def fitting(self, order: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments that fit another order, of those that are given."""
        item = order.items[0]
        arguments = {
            "order_id": order.order_id,
            "item_ids": [item.item_id],
            "new_item_ids": [one for one in self.variants(item.product_id) if one != item.item_id][:1],
            "payment_method_id": order.payment_history[0].payment_method_id,
        }
        return {name: value for name, value in arguments.items() if name in given}

    def look_up(self, action: Call) -> list[Call]:
        """What the policy wants to be looked up before an action."""
        given: Mapping[str, Any] = action.arguments
        found = []
        if order := self.db.orders.get(given.get("order_id")):
            found = [Call("get_order_details", {"order_id": order.order_id})]
            wanted = set(given.get("item_ids", ())) if "new_item_ids" in given else set()
            products = dict.fromkeys(item.product_id for item in order.items if item.item_id in wanted)
            found += [Call("get_product_details", {"product_id": one}) for one in products]
        return [Call("get_user_details", {"user_id": self.owner(action)}), *found]


def _load_tools(home: Path) -> Any:
    """Import the published tools without what they import for models and agents."""
    from pydantic import BaseModel

    def add(name: str, **contents: object) -> None:
        module = types.ModuleType(name)
        module.__dict__.update(contents)
        sys.modules[name] = module

    add("inspect_ai")
    add("inspect_ai.tool", ToolError=type("ToolError", (Exception,), {}))
    add("inspect_ai.util", StoreModel=BaseModel)
    for name in ("", ".tau2", ".tau2.environment", ".tau2.retail"):
        add(f"inspect_evals{name}", __path__=[str(home.parent.joinpath(*name.split(".")))])
    add("inspect_evals.tau2.utils", **dict.fromkeys(("dump_file", "get_pydantic_hash", "load_file", "TAU2_DATA_DIR")))
    return importlib.import_module("inspect_evals.tau2.retail.RetailAgentTools").RetailAgentTools()


#: The tools of the shop; those whose names begin so change its database.
SHOP_TOOLS = (
    "cancel_pending_order", "exchange_delivered_order_items", "find_user_id_by_email", "find_user_id_by_name_zip",
    "get_order_details", "get_product_details", "get_user_details", "list_all_product_types",
    "modify_pending_order_address", "modify_pending_order_items", "modify_pending_order_payment", "modify_user_address",
    "return_delivered_order_items",
)  # fmt: skip
DEEDS = ("cancel", "exchange", "modify", "return")
CONFIRMED = Said("user", "Yes, please go ahead.")
HOLD_ON = Said("assistant", "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON.")


def write_script(shop: Shop, task: Mapping[str, Any]) -> list[GuardEvent]:
    """The reference actions of a task as a conversation: what they need is looked up, and confirmed, before."""
    actions = [Call(one["name"], one["arguments"]) for one in task["evaluation_criteria"]["actions"]]
    script: list[GuardEvent] = [Said("user", "Hello, I need help with my orders.")]
    if actions and not any(one.tool.startswith("find") for one in actions):
        owner = next((name for one in actions if (name := shop.owner(one))), "")
        if owner:
            script.append(Call("find_user_id_by_email", {"email": shop.db.users[owner].email}))
    for action in actions:
        if action.tool.startswith(DEEDS):
            script += [one for one in shop.look_up(action) if one not in script]
            script += [Said("assistant", f"Shall I do this: {action.tool} {action.arguments}?"), CONFIRMED]
        script.append(action)
        if action.tool.startswith("transfer"):
            script.append(HOLD_ON)
    return script


def play(guard: Guard, shop: Shop, script: Sequence[GuardEvent]) -> list[tuple[Call, Decision, bool]]:
    """Play a script under a guard; return its calls with the decisions, and whether the shop itself refused them."""
    state, calls = guard.start(), []
    with shop.restored(script):
        for event in script:
            if not isinstance(event, Call):
                state = state.after(event)
                continue
            decision = state.check(event)
            with shop.restored([event]) if event is script[-1] and not decision.runs else nullcontext():
                result = shop.call(event)
            calls.append((event, decision, result.error))
            if decision.runs:
                state = state.after(event)
                state = state if isinstance(event, AtOnce) else state.after(result)
    if script and not isinstance(script[-1], Call) and not (end := state.may_stop()).runs:
        calls.append((Call("the end"), end, False))
    return calls


def break_policy(shop: Shop, script: list[GuardEvent], deed: Call) -> Iterator[tuple[str, list[GuardEvent]]]:
    """Break one clause of the policy each: from what comes before a deed to conversations that end with another."""
    owner = shop.owner(deed)
    given: Mapping[str, Any] = deed.arguments
    stranger = next(one for one in shop.db.users.values() if one.user_id not in str(script))

    def changed(**arguments: Any) -> Call:
        return replace(deed, arguments={**given, **arguments})

    found = [one for one in script if not (isinstance(one, Call) and one.tool.startswith("find"))]
    yield "nobody is authenticated", [*found, deed]
    yield "a second customer", [*script, deed, CONFIRMED, Call("find_user_id_by_email", {"email": stranger.email})]
    yield "a profile of another customer", [*script, Call("get_user_details", {"user_id": stranger.user_id})]
    yield "not confirmed", [*script[:-1], Said("user", "Wait, what would that cost?"), deed]
    yield "declined", [*script[:-1], Said("user", "No, please don't."), deed]
    yield "two calls at once", [*script, AtOnce("list_all_product_types"), deed]
    order = shop.db.orders.get(given.get("order_id"))
    if order is None:
        return
    about = [one for one in script if isinstance(one, Call) and one.arguments.get("order_id") == order.order_id]
    if all(one.tool == "get_order_details" for one in about):
        yield "not looked up", [*(one for one in script if one not in about), deed]
    wanted = "pending" if "pending" in deed.tool else "delivered"
    for name, right_owner in (("wrong status", True), ("an order of another customer", False)):
        others = (one for one in shop.db.orders.values() if (one.user_id == owner) is right_owner)
        if other := next((one for one in others if (one.status == wanted) is not right_owner), None):
            moved = replace(deed, arguments={**given, **shop.fitting(other, given)})
            yield name, [*script[:-2], *(one for one in shop.look_up(moved)[1:] if one not in script), CONFIRMED, moved]
    if "reason" in given:
        yield "wrong reason", [*script, changed(reason="found it cheaper")]
    if "item_ids" in given:
        yield "an item that was not ordered", [*script, changed(item_ids=["1008292230"])]
        yield "payment of nobody", [*script, changed(payment_method_id="credit_card_0000000")]
    if "new_item_ids" in given:
        old, more = given["item_ids"][0], given["new_item_ids"][1:]
        product = next(item.product_id for item in order.items if item.item_id == old)
        other = next(name for name in shop.db.products if name not in str(script))
        lookup = [*script[:-2], Call("get_product_details", {"product_id": other}), CONFIRMED]
        yield "another product", [*lookup, changed(new_item_ids=[shop.variants(other)[0], *more])]
        yield "the same item", [*script, changed(new_item_ids=[old, *more])]
        if gone := shop.variants(product, available=False):
            yield "an item that is not available", [*script, changed(new_item_ids=[gone[0], *more])]
        yield "twice", [*script, deed, CONFIRMED, deed]
    paid, methods = order.payment_history[0], shop.db.users[owner].payment_methods.values()
    unused = [one for one in methods if one.id != paid.payment_method_id]
    if deed.tool.startswith("return") and (cards := [one.id for one in unused if one.source != "gift_card"]):
        yield "refund elsewhere", [*script, changed(payment_method_id=cards[0])]
    if wanted == "pending":
        short = [one.id for one in unused if one.source == "gift_card" and one.balance < paid.amount]
        for name, method in (("payment as before", [paid.payment_method_id]), ("too little on the gift card", short)):
            payment = {"order_id": order.order_id, "payment_method_id": method[0] if method else ""}
            yield from [(name, [*script, Call("modify_pending_order_payment", payment)])] if method else []


class AtOnce(Call):
    """A call in the same answer as the next one: its result comes later."""


def measure_retail(folder: Path, show: bool) -> None:
    """Play the reference actions of the retail domain under the guard, as they are and with one clause broken."""
    shop = Shop(folder)
    tools = (*SHOP_TOOLS, "calculate", "transfer_to_human_agents")
    guard = Guard(GuardRules.from_file(RULES / "tau_retail.guard"), tools)
    begun = time.process_time()
    for split in ("train", "test"):
        _measure_split(guard, shop, split, show)
    print(f"\n{time.process_time() - begun:.1f} s of processor time")


def _measure_split(guard: Guard, shop: Shop, split: str, show: bool) -> None:
    tasks = [one for one in shop.tasks if one["id"] in shop.splits[split]]
    number, refused = 0, []
    counts: dict[str, Counter[str]] = {}
    for task in tasks:
        script = write_script(shop, task)
        played = play(guard, shop, script)
        number += len(played)
        if stopped := [(call, decision) for call, decision, _ in played if not decision.runs]:
            refused.append(f"  task {task['id']}: {stopped[0][1].reason}")
            continue
        made = [call for call, _, failed in played if call.tool.startswith(DEEDS) and not failed]
        for place, deed in enumerate(script):
            for name, broken in break_policy(shop, script[:place], deed) if deed in made else ():
                call, decision, failed = play(guard, shop, broken)[-1]
                results = {"tried": 1, "stopped": not decision.runs, "by the shop": failed}
                counts.setdefault(name, Counter()).update(results)
                if show and decision.runs:
                    print(f"  not stopped: {name}: {call}")
    print(f"\n{split}: {len(tasks)} tasks, {number} calls; tasks with a refused call: {len(refused)}")
    print(*refused, sep="\n")
    print(f"\n{'what breaks the policy':32} {'tried':>6} {'stopped':>8} {'by the shop':>12}")
    for name, row in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        print(f"{name:32} {row['tried']:6} {row['stopped']:8} {row['by the shop']:12}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder of the domain's data")
    parser.add_argument("--domain", choices=("airline", "retail"), default="airline")
    parser.add_argument("--show", action="store_true", help="print every violation, or all that is not stopped")
    given = parser.parse_args()
    measure = measure_airline if given.domain == "airline" else measure_retail
    measure(given.folder, given.show)


if __name__ == "__main__":
    main()
