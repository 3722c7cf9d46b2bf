"""A toolkit checks itself against a grammar before anything runs, and tells planning what it lacks."""

from __future__ import annotations

import copy
import pickle

import pytest

from formal_llm import CFG, PDA, Flowchart, Limits, Planner
from formal_llm.errors import ResourceNotFound, ToolkitError
from formal_llm.packs.openagi.toolkits import TOOLKITS
from formal_llm.tools import IMAGE, TEXT, Tool, Toolkit, tool
from formal_llm.tools.toolkit import OWN_TOOLKITS, applied_terminals, toolkit_named
from tests.tools.picture_tools import KINDS, PACK, toolkit

ALL = toolkit()


def fake(name: str, inputs: tuple[object, ...], output: object) -> Tool:
    return Tool(name, inputs, output, lambda *values: values[0])  # type: ignore[arg-type]


def test_all_of_openagi_fits() -> None:
    ALL.check(PACK.cfg, KINDS)
    ALL.check(PACK.cfg, KINDS, inputs=["input_image", "input_text"])
    ALL.check(PACK.cfg)
    assert applied_terminals(PACK.cfg) == set(PACK.cfg.terminals) - {"input_image", "input_text"}
    assert len(ALL) == 15
    assert "denoising" in ALL
    assert ALL["denoising"].inputs == (IMAGE,)


def test_terminals_without_tool() -> None:
    less = ALL.without("denoising", "captioning")
    with pytest.raises(ToolkitError) as caught:
        less.check(PACK.cfg, KINDS)
    assert caught.value.problems == ("no tool for the step denoising", "no tool for the step captioning")
    less.check(PACK.cfg, KINDS, missing=True)
    less.check(PACK.cfg, KINDS, missing=["denoising", "captioning"])
    with pytest.raises(ToolkitError, match="captioning"):
        less.check(PACK.cfg, KINDS, missing=["denoising"])
    with pytest.raises(ToolkitError, match="no tool for the step input_text"):
        ALL.check(PACK.cfg, KINDS, inputs=["input_image"])
    typo = Toolkit([*ALL.without("denoising"), fake("denoisin", (IMAGE,), IMAGE)])
    with pytest.raises(ToolkitError, match="did you mean denoisin"):
        typo.check(PACK.cfg, KINDS)


def test_kinds_that_contradict_the_productions() -> None:
    wrong = Toolkit(
        [
            *ALL.without("captioning", "text_to_image", "question_answering"),
            fake("captioning", (TEXT,), TEXT),
            fake("text_to_image", (TEXT,), TEXT),
            fake("question_answering", (TEXT,), TEXT),
        ]
    )
    with pytest.raises(ToolkitError) as caught:
        wrong.check(PACK.cfg, KINDS)
    problems = "\n".join(caught.value.problems)
    assert "T -> B I: captioning(text) -> text takes a text, I is an image" in problems
    assert "I -> C T: text_to_image(text) -> text gives a text, I is an image" in problems
    assert "T -> F T T: question_answering(text) -> text takes 1 inputs, here it gets 2" in problems
    assert str(caught.value).startswith("the tools do not fit:\n  ")
    with pytest.raises(ToolkitError, match="T -> input_text: T is a text, input_text is an image"):
        ALL.check(PACK.cfg, {**KINDS, "input_text": "image"})
    with pytest.raises(ToolkitError, match="kind of Q is declared"):
        ALL.check(PACK.cfg, {**KINDS, "Q": "image"})


def test_two_of_a_name() -> None:
    with pytest.raises(ToolkitError, match="two tools are called a"):
        Toolkit([fake("a", (), TEXT), fake("a", (), TEXT)])
    with pytest.raises(ToolkitError, match="a is a tool and an input"):
        Toolkit([fake("a", (), TEXT)], inputs={"a": TEXT})


def test_limits_go_around_what_is_missing() -> None:
    less = ALL.without("denoising", "captioning")
    assert less.limits(PACK.cfg) == Limits({"denoising": 0, "captioning": 0})
    assert ALL.limits(PACK.cfg) == Limits()
    assert ALL.limits(PACK.cfg, ["input_image"]) == Limits({"input_text": 0})
    assert ALL.limits(PDA.from_cfg(PACK.cfg), ["input_image"]) == Limits({"input_text": 0})
    hand = PDA([("x", "a", None, "x"), ("x", "b", None, "x")], start="x", accepting=["x"])
    assert Toolkit([fake("a", (), TEXT)]).limits(hand) == Limits({"b": 0})


def test_tools_without_inputs_and_classes_of_classes() -> None:
    cfg = CFG.from_string("%order prefix\nT -> C T | now | doc\nC -> A | b\nA -> a1 | a2")
    kit = Toolkit([fake("now", (), TEXT), *(fake(name, (TEXT,), TEXT) for name in ("a1", "a2", "b"))])
    kit.check(cfg, {"T": "text", "doc": "text"})
    assert applied_terminals(cfg) == {"a1", "a2", "b"}
    assert kit.without("a2").limits(cfg) == Limits({"a2": 0})
    with pytest.raises(ToolkitError, match=r"T -> now: now\(\) -> image gives an image, T is a text"):
        Toolkit([*kit.without("now"), fake("now", (), IMAGE)]).check(cfg, {"T": "text"})


def test_a_toolkit_runs_plans_with_the_usual_settings() -> None:
    cfg = CFG.from_string("%order prefix\nT -> upper doc")
    kit = Toolkit([Tool("upper", (TEXT,), TEXT, str.upper, pure=True)])
    assert kit.run(Planner(cfg).plan("t"), {"doc": "a"}).output == "A"
    assert kit.run(Planner(cfg).plan("t"), {"doc": "a"}).steps[0].state == "cached"
    for again in (pickle.loads(pickle.dumps(kit)), copy.deepcopy(kit), kit.without()):
        assert again == kit
        assert hash(again) == hash(kit)
        assert again.run(Planner(cfg).plan("t"), {"doc": "b"}).output == "B"
    assert kit != kit.without("upper")
    assert kit != Toolkit([*kit], inputs={"doc": TEXT})


def test_a_toolkit_goes_where_plans_are_carried_out() -> None:
    cfg = CFG.from_string("%order prefix\nT -> lower doc | upper doc")
    solution = Planner(cfg).solve("t", {"doc": "a"}, Toolkit([Tool("upper", (TEXT,), TEXT, str.upper)]))
    assert (solution.plan.word, solution.result.output) == (("upper", "doc"), "A")


def test_limits_of_other_rules() -> None:
    chart = Flowchart.from_mermaid("flowchart TD\n  start([Start]) --> a[Do a] --> stop([End])")
    (step,) = chart.pda().terminals
    assert Toolkit([]).limits(chart) == Limits({step: 0})
    assert Toolkit([fake(step, (), TEXT)]).limits(chart) == Limits()

    class Anything:
        def start(self) -> int:
            return 0

        moves = step = accepting = start

    with pytest.raises(ToolkitError, match="a Anything does not say what its terminals are"):
        Toolkit([]).limits(Anything())  # type: ignore[arg-type]


def test_own_toolkits_are_found_by_name() -> None:
    kit = Toolkit([])
    assert toolkit_named("classical", {"classical": lambda: kit}) is kit
    with pytest.raises(ResourceNotFound, match=r"no toolkit 'clasical'\. Did you mean 'classical'"):
        toolkit_named("clasical", {"classical": lambda: kit})


def test_no_plugin_may_have_the_name_of_a_toolkit_of_ours() -> None:
    assert set(TOOLKITS) <= set(OWN_TOOLKITS)


def test_kinds_that_fit_are_no_problem() -> None:
    @tool
    def half(number: float | None) -> float:
        return (number or 0) / 2

    @tool
    def count(text: str) -> int:
        return len(text)

    cfg = CFG.from_string("%order prefix\nN -> half C\nC -> count doc")
    Toolkit([half, count]).check(cfg, {"N": "float", "C": "int", "doc": "text"})
    with pytest.raises(ToolkitError, match="gives a float, N is a text"):
        Toolkit([half, count]).check(cfg, {"N": "text"})
