"""Letters of events."""

from __future__ import annotations

from formal_llm.agents.guard import Call, Result
from formal_llm.agents.guard.labels import Labeller, Seen, key
from formal_llm.agents.guard.reading import read_rules


def test_several_letters_and_their_values() -> None:
    labeller = Labeller(read_rules("p: t with c = amount\nbig: t[amount > 5]\ng: t*\nrule r: never p").letters)
    found = labeller.of(Call("t", {"amount": 7}))
    assert dict(found.letters) == {"p": {"c": 7}, "big": {}, "g": {}}
    missing = labeller.of(Call("t"))
    assert set(missing.unsure) == {"big"}
    assert len(missing.notes) == 2


def test_what_was_seen() -> None:
    labeller = Labeller(read_rules("a: x.result[ok] with k = value.id\nb: y[a(id)]\nrule r: never b").letters)
    seen = Seen()
    seen = seen.after(labeller.of(Result("x", {}, '{"id": "7"}'), seen), labeller.asked)
    assert set(labeller.of(Call("y", {"id": 7}), seen).letters) == {"b"}
    assert set(labeller.of(Call("y", {"id": 8}), seen).letters) == set()


def test_keys() -> None:
    assert key(5) == key("5") == key(5.0)
    assert key("05") != key(5)
