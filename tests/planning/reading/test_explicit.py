"""Plans in JSON, and words."""

from __future__ import annotations

import json

import pytest

from formal_llm import CFG, PDA, Planner, RandomLLM
from formal_llm.errors import NotationError
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.reading.candidates import has_word
from formal_llm.planning.reading.explicit import (
    find_call_candidates,
    find_tree_candidates,
    format_call,
    is_derivation,
    parse_call,
    read_json,
    read_names,
)

CALLS = CFG.from_string('S -> f S S | g S | x some(y, z) "Mix" | x')


def plan(seed: int = 1) -> Plan:
    return Planner(CALLS, RandomLLM(seed)).plan("")


def test_what_json_says_besides_the_tree_is_looked_at() -> None:
    for seed in range(10):
        made = plan(seed)
        assert read_json(made.to_json()) == made
        assert is_derivation(made.tree, CALLS)
        data = json.loads(made.to_json())
        for part in ("word", "steps", "call"):
            with pytest.raises(NotationError, match=f"contradicts itself: its {part} and its tree"):
                read_json(json.dumps({**data, part: [["x"]]}))


def test_a_tree_that_is_no_derivation() -> None:
    made = Planner(CALLS, RandomLLM(2)).plan("")
    other = CFG.from_string("S -> f S S | g S | x y")
    assert not is_derivation(made.tree, other)


def test_a_flat_tree_is_that_of_a_run() -> None:
    pda = PDA.from_string(
        '%start p\n%accept r\np, a, ε -> q, ε "Go"\np, a, ε -> s, ε "Run"\nq, b, ε -> r, ε\ns, c, ε -> r, ε'
    )
    made = Planner(pda, RandomLLM(0)).plan("").tree
    told = find_tree_candidates(made, pda)
    assert told is not None
    assert has_word(told)
    made.children[0].text = "Run" if made.children[0].text == "Go" else "Go"
    told = find_tree_candidates(made, pda)
    assert told is not None
    assert not has_word(told)


def test_names() -> None:
    assert read_names(["a b", "c"], {"a", "b", "c"}) == ("a", "b", "c")
    assert read_names(["a b", "d"], {"a", "b", "c"}) is None
    assert read_names(["a", "b"], {"a", "b"}) is None  # one a line: that is a list of steps


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
