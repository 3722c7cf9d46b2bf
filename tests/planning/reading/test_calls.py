"""Nested calls: the brackets say what each tool is applied to."""

from __future__ import annotations

import pytest

from formal_llm import CFG
from formal_llm.planning.reading.calls import call_of, shown, told_by_call

ETL = CFG.from_string('R "the report" -> render T\nT -> join T T | load_csv events | load_sql orders')


def told(text: str) -> tuple[str, ...] | None:
    call = call_of(text)
    found = told_by_call(ETL, *call) if call is not None else None
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
    assert call_of(text) is None


def test_a_call_is_shown_as_it_is_printed() -> None:
    assert shown(*(call_of("a = f(x,g( y ))") or ("", []))) == "a = f(x, g(y))"


def test_selections_and_what_is_nothing() -> None:
    cfg = CFG.from_string("S -> pan some(salt, oil) N\nN -> ε | spoon")
    for text, word in (("pan(salt, oil)", "pan salt oil"), ("pan(oil, spoon)", "pan oil spoon")):
        found = told_by_call(cfg, *(call_of(text) or ("", [])))
        assert found is not None
        assert found.sample == tuple(word.split())
    assert told_by_call(cfg, *(call_of("pan(oil, salt)") or ("", []))) is None
