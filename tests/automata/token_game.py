"""BPMN played with tokens, as the standard describes it: an oracle that knows nothing of charts.

A state is a bag of items. ``go``: a token before a node; ``wait``: one that came to a parallel gateway by a flow;
``busy``: a task that has begun; ``sub``: a subprocess with a bag of its own. A step counts when it begins. An event
that interrupts nothing happens once at most while its task or subprocess is busy, as the reader assumes.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

Bag = tuple[tuple, ...]  # type: ignore[type-arg]  # items of several shapes
Word = tuple[str, ...]
TASKS = ("task", "receiveTask")
#: A bag with more items is of a process in which tokens heap up.
MOST = 9


class HeapError(Exception):
    """Tokens heap up."""


class TokenGame:
    """A process that is played."""

    def __init__(self, text: str) -> None:
        self.process = next(one for one in ElementTree.fromstring(text).iter() if _kind(one) == "process")
        self.node = {one.get("id", ""): one for one in self.process.iter() if one.get("id")}
        self.flows = [one for one in self.process.iter() if _kind(one) == "sequenceFlow"]

    def words(self, longest: int) -> set[Word]:
        """The steps of all plays that end, up to a length."""
        found: set[Word] = set()
        todo: list[tuple[Word, Bag]] = [((), self.begin(self.process))]
        seen = set(todo)
        for word, bag in todo:
            if not bag:
                found.add(word)
            for letter, after in self.moves(self.process, bag):
                new = (word if letter in (None, "!") else (*word, letter)), after
                if len(new[0]) <= longest and new not in seen:
                    seen.add(new)
                    todo.append(new)
        return found

    # -- what is where --------------------------------------------------------------------------------------------

    def begin(self, scope: ElementTree.Element) -> Bag:
        starts = [one for one in scope if _kind(one) == "startEvent"]
        return tuple(("go", one.get("id")) for one in starts)

    def out(self, key: str) -> Bag:
        """Tokens on all flows out of a node."""
        return tuple(self.on(flow) for flow in self.flows if flow.get("sourceRef") == key)

    def on(self, flow: ElementTree.Element) -> tuple:  # type: ignore[type-arg]
        target = flow.get("targetRef", "")
        if _kind(self.node[target]) == "parallelGateway":
            return ("wait", target, flow.get("id"))
        return ("go", target)

    def borders(self, key: str) -> list[ElementTree.Element]:
        return [one for one in self.node.values() if one.get("attachedToRef") == key]

    def thrown_inside(self, key: str) -> bool:
        """Whether an end event in a subprocess throws an error (subprocesses that catch their own are looked past)."""
        for one in self.node[key]:
            if _kind(one) == "endEvent" and "errorEventDefinition" in map(_kind, one):
                return True
            catches = [b for b in self.borders(one.get("id", "")) if "errorEventDefinition" in map(_kind, b)]
            if _kind(one) == "subProcess" and not catches and self.thrown_inside(one.get("id", "")):
                return True
        return False

    # -- moves ----------------------------------------------------------------------------------------------------

    def moves(self, scope: ElementTree.Element, bag: Bag) -> Iterator[tuple[str | None, Bag]]:
        """What may happen next, and the bag after it; ``!`` is an error that nothing here catches."""
        if len(bag) > MOST:
            raise HeapError
        for number, item in enumerate(bag):
            rest = bag[:number] + bag[number + 1 :]
            for letter, items in self.item_moves(item, rest):
                yield letter, tuple(sorted(items, key=repr))

    def item_moves(self, item: tuple, rest: Bag) -> Iterator[tuple[str | None, Bag]]:  # type: ignore[type-arg]
        key = item[1]
        match item[0]:
            case "go":
                yield from self.arrive(key, rest)
            case "wait":
                needed = [("wait", key, f.get("id")) for f in self.flows if f.get("targetRef") == key]
                bag = [item, *rest]
                if item == needed[0] and all(one in bag for one in needed):
                    for one in needed:
                        bag.remove(one)
                    yield None, (*bag, *self.out(key))
            case "busy":
                yield from self.leave(key, rest)
                yield from self.interruptions(item, rest)
            case "sub":
                if not item[3]:
                    yield from self.leave(key, rest)
                yield from self.inner_moves(item, rest)
                yield from self.interruptions(item, rest)

    def leave(self, key: str, rest: Bag) -> Iterator[tuple[str | None, Bag]]:
        yield None, (*rest, *self.out(key))
        if any(_kind(one) == "standardLoopCharacteristics" for one in self.node[key]):
            yield from self.perform(key, rest)

    def arrive(self, key: str, rest: Bag) -> Iterator[tuple[str | None, Bag]]:
        node = self.node[key]
        kind, definitions = _kind(node), list(map(_kind, node))
        if kind in (*TASKS, "subProcess"):
            loop = [one for one in node if _kind(one) == "standardLoopCharacteristics"]
            if loop and loop[0].get("testBefore") == "true":
                yield None, (*rest, *self.out(key))
            yield from self.perform(key, rest)
        elif kind in ("exclusiveGateway", "eventBasedGateway"):
            for token in self.out(key):
                yield None, (*rest, token)
            if not self.out(key):
                yield None, rest
        elif "terminateEventDefinition" in definitions:
            yield None, ()
        elif kind == "endEvent" and "errorEventDefinition" in definitions:
            yield "!", ()
        else:
            yield None, (*rest, *self.out(key))

    def perform(self, key: str, rest: Bag) -> Iterator[tuple[str | None, Bag]]:
        if _kind(self.node[key]) == "subProcess":
            yield None, (*rest, ("sub", key, frozenset(), self.begin(self.node[key])))
        else:
            yield key, (*rest, ("busy", key, frozenset()))

    def inner_moves(self, item: tuple, rest: Bag) -> Iterator[tuple[str | None, Bag]]:  # type: ignore[type-arg]
        _, key, fired, inside = item
        for letter, bag in self.moves(self.node[key], inside):
            if letter != "!":
                yield letter, (*rest, ("sub", key, fired, bag))
                continue
            caught = [one for one in self.borders(key) if "errorEventDefinition" in map(_kind, one)]
            if caught:
                yield None, (*rest, *self.out(caught[0].get("id", "")))
            else:
                yield "!", ()

    def interruptions(self, item: tuple, rest: Bag) -> Iterator[tuple[str | None, Bag]]:  # type: ignore[type-arg]
        key, fired = item[1:3]
        for event in self.borders(key):
            name = event.get("id", "")
            error = "errorEventDefinition" in map(_kind, event)
            if error and item[0] == "sub" and self.thrown_inside(key):
                continue
            if event.get("cancelActivity") != "false":
                yield None, (*rest, *self.out(name))
            elif name not in fired:
                yield None, (*rest, (item[0], key, fired | {name}, *item[3:]), *self.out(name))


def _kind(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
