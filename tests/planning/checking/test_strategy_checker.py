"""The checker of strategies: what it must refuse, rule by rule; random ones are in ``drivers/test_strategies.py``."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, PDA, Limits, Planner
from formal_llm.planning.checking.strategy_checker import NotProved, check

GRAMMAR = CFG.from_string("%start S\n%world W\nS -> a W | c\nW -> b | c S | ε\n%limit 2 a\n%require 1 a\n")
FINAL = PDA([("q", "a", None, "w"), ("w", "b", None, "e"), ("e", "c", None, "w")], start="q", accepting=["w", "e"],
            world=["w"], limits=Limits({"c": 1}))  # fmt: skip


def proof(rules: CFG | PDA, **settings: Any) -> tuple[dict, dict]:
    strategy = Planner(rules, lambda question: 1, **settings).strategy("")
    return deepcopy(strategy.compiled_rules()), deepcopy(strategy.certificate())


def test_it_needs_nothing_of_this_library() -> None:
    text = Path(check.__code__.co_filename).read_text(encoding="utf-8")
    assert "import formal_llm" not in text
    assert "from formal_llm" not in text
    assert text.count("\n") <= 200


@pytest.mark.parametrize("rules", [GRAMMAR, FINAL])
def test_what_is_proved(rules: CFG | PDA) -> None:
    assert check(*proof(rules)).startswith("proved: every branch")


@pytest.mark.parametrize("rules", [GRAMMAR, FINAL])
def test_each_answer_needs_its_branch_and_no_other(rules: CFG | PDA) -> None:
    compiled, certificate = proof(rules)
    for node in certificate["nodes"]:
        for at in range(len(node)):
            kept = list(node)
            if len(node) > 1:
                node[:] = kept[:at] + kept[at + 1 :]
                with pytest.raises(NotProved, match="there is no branch for that"):
                    check(compiled, certificate)
                node[:] = [*kept, kept[at]]
                with pytest.raises(NotProved, match="and the world can answer"):
                    check(compiled, certificate)
            node[:] = kept
    assert check(compiled, certificate)


def test_where_the_world_does_not_decide_there_is_one_branch() -> None:
    compiled, certificate = proof(CFG.from_string("%start S\n%world W\nS -> a T\nT -> W x | y\nW -> b | c\n"))
    own = next(node for node in certificate["nodes"] if len(node) == 1)
    own.append(own[0])
    with pytest.raises(NotProved, match="where the world does not decide"):
        check(compiled, certificate)


def test_limits_and_constraints_hold_in_every_branch() -> None:
    _, certificate = proof(GRAMMAR)
    strategy = Planner(GRAMMAR, lambda question: 1).strategy("")
    assert strategy.verify(GRAMMAR).valid
    assert "%limit 1 a is broken: the sum is 2" in strategy.verify(GRAMMAR.with_limits(Limits({"a": 1}))).reason
    assert "%require 2 a is broken" in strategy.verify(GRAMMAR.with_limits(Limits(at_least={"a": 2}))).reason
    few = PDA([("q", name, None, "q") for name in "ab"], start="q", accepting="q", name="few")
    assert strategy.verify(GRAMMAR & few).reason == "constraint 'few' does not allow c"
    ends = PDA([("q", name, None, "p") for name in "abc"] + [("p", name, None, "q") for name in "abc"], start="q",
               accepting="q", name="even")  # fmt: skip
    assert strategy.verify(GRAMMAR & ends).reason == "constraint 'even' does not accept"
    with pytest.raises(NotProved, match="about other rules"):
        check(strategy.compiled_rules(CFG.from_string("S -> a")), certificate)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(claim="plan"), "unknown formats"),
        (lambda data: data["start"].update(node=99), "node 99 does not come before"),
        (lambda data: data["start"].update(node=-1), "node -1 does not come before"),
        (lambda data: data["nodes"][-1][0].update(node=len(data["nodes"]) - 1), "does not come before"),
        (lambda data: data["start"].update(run=[-1]), "no number of a move"),
        (lambda data: data["start"].update(run=[77]), "not as it should be"),
        (lambda data: data["start"].update(run=[2]), "cannot take 'W' from the stack"),
        (lambda data: data["start"].update(run=[0, 2]), "there is no branch for that"),
        (lambda data: data.pop("nodes"), "not as it should be"),
    ],
)
def test_what_is_damaged_is_refused(change: Any, said: str) -> None:
    compiled, certificate = proof(GRAMMAR)
    change(certificate)
    with pytest.raises(NotProved, match=said):
        check(compiled, certificate)
