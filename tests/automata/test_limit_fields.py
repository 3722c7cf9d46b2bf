"""Every kind of limit is kept by all that copies, combines, prints or reads limits.

A new field of :class:`Limits` makes these tests fail until it has a sample here, and then until all of that keeps it.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import pytest

from formal_llm import CFG, PDA, Behaviour, Flowchart, Limits, Planner, RandomLLM, SumLimit, Task, constraint
from formal_llm.agents import Monitor
from formal_llm.automata import Clock, Gap, Span, Timetable, Window
from formal_llm.automata.models.declare import Sentence
from formal_llm.automata.models.formula import next_, not_
from formal_llm.automata.notation.limit_lines import read_line
from formal_llm.planning.drivers.results import record
from formal_llm.planning.packs import apply_limits
from tests.oracles import all_words

#: For each field a value.
SAMPLES: dict[str, Any] = {
    "at_most": {"a": 2},
    "at_least": {"b": 1},
    "default": 3,
    "sums": (SumLimit("cost", 5, 1),),
    "times": Timetable(
        Clock("time", Span("8:00", "10:00")),
        (Window("a", (Span("8:00", "9:30"),)), Window("b", (Span(None, "9:45"),))),
        (Gap("15min", ("a",), ("b",)), Gap.between("15min", "a")),
    ),
    "rules": (Sentence("precedence", (("b",), ("a",))), Sentence("formula", given=not_(next_("a", "a")))),
}
#: The same in the file of a task pack.
PACKED: Mapping[str, Any] = {
    "at_most": {"a": 2},
    "at_least": {"b": 1},
    "default": 3,
    "sums": {"cost": {"at_most": 5, "at_least": 1}},
    "times": SAMPLES["times"].lines(),
    "rules": ["b before a", "(not (next a a))"],
}
ALL = Limits(**SAMPLES)
CHART = """flowchart TD
{limits}
    %% %numbers a time=15min cost=1
    %% %numbers b time=15min cost=2
    which{{Which?}} -->|one| a[A] --> more{{More?}}
    which -->|other| b[B] --> more
    more -->|yes| which
    more -->|no| done([Done])
"""
each = pytest.mark.parametrize("field", SAMPLES)


def one(field: str) -> Limits:
    return Limits(**{field: SAMPLES[field]})


def written(bounds: Limits) -> list[CFG | PDA | Flowchart | Behaviour]:
    """Rules of each notation under these limits, read from a text."""
    lines, numbers = bounds.lines(), "a time=15min cost=1\nb time=15min cost=2"
    head = "\n".join(lines)
    quoted = " ".join(f'"{line}"' for line in lines)
    states = "(a (:numbers (time 15min) (cost 1))) (b (:numbers (time 15min) (cost 2)))"
    return [
        CFG.from_string(f"%order forward\n{head}\nS -> T | T S\nT -> a | b\n{numbers}"),
        PDA.from_string(f"{head}\n%start p\n%accept q\np, a, ε -> q, ε\np, b, ε -> q, ε\nq, ε, ε -> p, ε\n{numbers}"),
        Flowchart.from_string(CHART.format(limits="\n".join(f"    %% {line}" for line in lines))),
        Behaviour.from_string(
            f"(define x (:states {states}) (:limits {quoted}) (:behavior (and (not empty) (always any))))"
        ),
    ]


def test_each_field_has_a_sample() -> None:
    assert set(SAMPLES) == set(PACKED) == {field.name for field in fields(Limits) if field.compare}


@each
def test_of_values(field: str) -> None:
    bounds = one(field)
    assert bounds
    assert bounds != Limits()
    assert bounds & Limits() == Limits() & bounds == bounds & bounds == bounds
    assert ALL & bounds == bounds & ALL == ALL
    assert hash(copy.deepcopy(bounds)) == hash(pickle.loads(pickle.dumps(bounds))) == hash(bounds)
    there, back = {"a": "x", "b": "y"}, {"x": "a", "y": "b"}
    assert bounds.renamed(there).renamed(back) == bounds
    assert getattr(ALL.renamed(there), field) == getattr(bounds.renamed(there), field)
    assert bounds.without_times == (bounds if field != "times" else Limits())
    assert bounds.without_rules == (bounds if field != "rules" else Limits())


@each
def test_what_is_dropped_is_dropped_alone(field: str) -> None:
    numbers = {"a": {"cost": 1}, "b": {"cost": 2}}
    lines = [bound.line for bound in ALL.bounds("ab", numbers)]
    for line in lines:
        left = ALL.without(line)
        assert [bound.line for bound in left.bounds("ab", numbers)] == [other for other in lines if other != line]
        touched = {"%require": "at_least", "%limit": "sums" if "cost" in line else "at_most"}[line.split()[0]]
        assert field == touched or getattr(left, field) == getattr(ALL, field)


@each
def test_of_lines(field: str) -> None:
    read = Limits()
    for line in one(field).lines():
        read &= CFG.from_string(f"%order forward\n{line}\nS -> a S | b").limits if field == "rules" else read_line(line)
    assert read == one(field)


@each
def test_of_notations_and_changed_rules(field: str) -> None:
    for bounds in (one(field), ALL):
        cfg, pda, chart, behaviour = rules = written(bounds)
        assert isinstance(cfg, CFG)
        assert isinstance(pda, PDA)
        assert isinstance(chart, Flowchart)
        changed = [*rules, cfg.with_start("S"), cfg.with_labels({"a": "A"}), cfg.with_order("prefix")]
        changed += [chart.fill({}), chart.pda(), PDA.from_cfg(cfg).with_limits(cfg.limits), pda.with_limits(pda.limits)]
        any_word = constraint("(always any)", cfg)
        changed += [cfg & any_word, any_word & cfg, any_word & behaviour, any_word & pda]
        assert {made.limits for made in changed} == {bounds}
        assert [type(made).from_string(str(made)) for made in rules] == rules


@each
def test_of_packs(field: str) -> None:
    free = written(Limits())[0]
    assert isinstance(free, CFG)
    assert apply_limits(free, {field: PACKED[field]}).limits == one(field)
    assert apply_limits(apply_limits(free, PACKED), {}).limits == ALL


@each
def test_of_several_rules(field: str) -> None:
    rules = [constraint("(always any)", written(Limits())[0]), constraint("(not (next b b b))", ["a", "b"])]
    alone, apart = Monitor(rules[0] & rules[1], limits=one(field)), Monitor(rules, limits=one(field))
    kept = [alone.verify(word, repair=False).valid for word in all_words("ab", 4)]
    assert [apart.verify(word, repair=False).valid for word in all_words("ab", 4)] == kept
    assert any(kept)
    assert not all(kept)


@each
def test_of_records(field: str) -> None:
    rules = written(Limits())[0]
    (outcome,) = Planner(rules, RandomLLM(1)).plan_all([Task("t", limits=one(field))])
    kept = record(outcome)
    assert kept is not None
    shown = kept["limits"]
    assert isinstance(shown, dict)
    assert shown[field]
