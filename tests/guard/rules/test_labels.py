"""Letters of events."""

from __future__ import annotations

from formal_llm.guard import Call, Result
from formal_llm.guard.rules.labels import Labeller, LetterHistory, make_key
from formal_llm.guard.rules.reading import read_rules


def test_several_letters_and_their_values() -> None:
    labeller = Labeller(read_rules("p: t with c = amount\nbig: t[amount > 5]\ng: t*\nrule r: never p").letters)
    found = labeller.label_event(Call("t", {"amount": 7}))
    assert dict(found.letters) == {"p": {"c": 7}, "big": {}, "g": {}}
    missing = labeller.label_event(Call("t"))
    assert set(missing.unsure) == {"big"}
    assert len(missing.notes) == 2


def test_what_was_seen() -> None:
    labeller = Labeller(read_rules("a: x.result[ok] with k = value.id\nb: y[a(id)]\nrule r: never b").letters)
    seen = LetterHistory()
    seen = seen.with_event(labeller.label_event(Result("x", {}, '{"id": "7"}'), seen), labeller.asked, labeller.until)
    assert set(labeller.label_event(Call("y", {"id": 7}), seen).letters) == {"b"}
    assert set(labeller.label_event(Call("y", {"id": 8}), seen).letters) == set()


def test_what_was_seen_of_each_letter_that_is_asked_for() -> None:
    text = "a: x with k = k\nb: y with k = k\nc: z[a(k) or b(k)]\nrule r: never c"
    labeller = Labeller(read_rules(text).letters)
    for tool, letter in (("x", "a"), ("y", "b")):
        seen = LetterHistory().with_event(labeller.label_event(Call(tool, {"k": 7})), labeller.asked, labeller.until)
        assert [one for one in "ab" if seen.has_happened(one, (7,))] == [letter]
        assert not seen.has_happened(letter, (8,))
        assert set(labeller.label_event(Call("z", {"k": 7}), seen).letters) == {"c"}


def test_keys() -> None:
    assert make_key(5) == make_key("5") == make_key(5.0)
    assert make_key("05") != make_key(5)
