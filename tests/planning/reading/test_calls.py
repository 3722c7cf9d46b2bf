"""Nested calls: the brackets say what each tool is applied to."""

from __future__ import annotations

import pytest

from formal_llm import CFG
from formal_llm.planning.reading.calls import find_call_candidates, format_call, parse_call

ETL = CFG.from_string('R "the report" -> render T\nT -> join T T | load_csv events | load_sql orders')


def told(text: str) -> tuple[str, ...] | None:
    call = parse_call(text)
    found = find_call_candidates(ETL, *call) if call is not None else None
    return None if found is None else found.sample


@pytest.mark.parametrize(
    "text",
    [
        "render(join(load_csv(events), load_sql(orders)))",
        "the_report = render(join(load_csv(events), load_sql(orders)))",
        "render( join (load_csv(events),load_sql(orders)) )",
    ],
)
def test_the_brackets_of_a_plan(text: str) -> None:
    assert told(text) == ("render", "join", "load_csv", "events", "load_sql", "orders")


@pytest.mark.parametrize(
    "text",
    [
        "render(join, load_csv(events), load_sql(orders))",
        "render(join(load_csv, events, load_sql(orders)))",
        "render(join(load_csv(events)), load_sql(orders))",
        "render(join(load_csv(events, load_sql(orders))))",
        "other = render(join(load_csv(events), load_sql(orders)))",
        "render(load_csv(orders))",
    ],
)
def test_the_same_names_with_other_brackets_are_no_plan(text: str) -> None:
    assert told(text) is None


@pytest.mark.parametrize("text", ["f(x", "f(x))", "f(,x)", "f(x,)", "f()", "f(x)(y)", "f(x), g(y)", "f", "f(x) y"])
def test_what_is_no_call(text: str) -> None:
    assert parse_call(text) is None


def test_a_call_is_shown_as_it_is_printed() -> None:
    assert format_call(*(parse_call("a = f(x,g( y ))") or ("", []))) == "a = f(x, g(y))"


def test_selections_and_what_is_nothing() -> None:
    cfg = CFG.from_string("S -> pan some(salt, oil) N\nN -> ε | spoon")
    for text, word in (("pan(salt, oil)", "pan salt oil"), ("pan(oil, spoon)", "pan oil spoon")):
        found = find_call_candidates(cfg, *(parse_call(text) or ("", [])))
        assert found is not None
        assert found.sample == tuple(word.split())
    assert find_call_candidates(cfg, *(parse_call("pan(oil, salt)") or ("", []))) is None
