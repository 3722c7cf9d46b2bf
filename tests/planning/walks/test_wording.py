"""Wording: the text of questions."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

from formal_llm import (
    CFG,
    PDA,
    Answer,
    Behaviour,
    Flowchart,
    Limits,
    Planner,
    Question,
    ScriptedLLM,
    Source,
    TaskPack,
    Walk,
    Wording,
    constraint,
)
from formal_llm.errors import NotationError
from formal_llm.llms.doubles import Person
from formal_llm.llms.llm import LLM
from formal_llm.llms.wrappers import SureLLM
from formal_llm.planning.walks.wording import NAMED, adapt_wording, fill_template, shortened

TOOLS = CFG.from_string(
    """
    %order prefix
    T "text" -> B I | F T T | text
    I "image" -> A I | image
    A -> colorize | denoise
    B -> classify
    F -> answer
    image "the input image"
    text "the input text"
    colorize "Colorization"
    classify "Image Classification"
    answer "Question Answering"
    """
)


def prompt(walk: Walk) -> str:
    assert walk.question is not None
    return walk.question.prompt


def test_the_default_prompt_standing_alone() -> None:
    walk = Walk(TOOLS, "Answer the question about the photo")
    walk.answer(2)
    walk.answer(1)
    assert prompt(walk) == (
        "Task description: Answer the question about the photo\n"
        "\n"
        "Current progress:\n"
        "Step n: Use Question Answering;\n"
        "Step n-1: Use Image Classification;\n"
        "Step n-2: ?\n"
        "\n"
        'To get the input image of "Image Classification", we have the following choices:\n'
        '1: the output of "Colorization"\n'
        '2: the output of "denoise"\n'
        "3: the input image\n"
        "\n"
        "Answer with the number of your choice, an integer from 1 to 3, and nothing else."
    )


def test_arguments_of_the_same_kind_are_told_apart() -> None:
    walk = Walk(TOOLS)
    assert "To get the output text, we" in prompt(walk)
    walk.answer(2)
    assert 'To get the first input text of "Question Answering", we' in prompt(walk)
    walk.answer(3)
    assert 'To get the second input text of "Question Answering", we' in prompt(walk)


def test_a_renaming_is_looked_through() -> None:
    walk = Walk(CFG.from_string('%order prefix\nS -> T\nT "text" -> f T | x'))
    assert "To get the output text," in prompt(walk)


def test_options_that_would_read_the_same_are_told_apart() -> None:
    cfg = CFG.from_string('%order prefix\nS -> f X | f Y | f\nX "lemons" -> x | xx\nY "limes" -> y | yy\nf "Squeeze"')
    walk = Walk(cfg)
    assert walk.question is not None
    texts = [option.text for option in walk.question.options]
    assert texts == ['the output of "Squeeze" from lemons', 'the output of "Squeeze" from limes', "Squeeze"]
    twins = Walk(CFG.from_string('S -> a | b\na "Go"\nb "Go"'))
    assert twins.question is not None
    assert [option.text for option in twins.question.options] == ["Go [a]", "Go [b]"]


def test_production_texts_and_empty_bodies() -> None:
    walk = Walk(CFG.from_string('S -> a b "Do both" | c d | ε | Q\nQ "the rest" -> x Q | y'))
    assert walk.question is not None
    assert [option.text for option in walk.question.options] == ["Do both", "c, d", "nothing", "the rest"]


@pytest.mark.parametrize(("rules", "texts"), [
    ("S -> a* b", ["another a", "no more a"]),
    ("S -> a? b", ["a", "no a"]),
    ("S -> T* b\nT -> c d", ["another T", "no more T"]),
    ("S -> T* b\nT -> c | d", ["c", "d", "no more T"]),
    ("S -> T? b\nT -> c | d", ["c", "d", "no T"]),
])  # fmt: skip
def test_the_options_of_repetitions(rules: str, texts: list[str]) -> None:
    walk = Walk(CFG.from_string(rules))
    assert walk.question is not None
    assert [option.text for option in walk.question.options] == texts


def test_the_forward_order() -> None:
    cfg = CFG.from_string('Day -> breakfast Rest\nRest "the rest of the day" -> work Rest | home')
    walk = Walk(cfg, "t")
    walk.answer(1)
    assert "Step 1: Use breakfast;\nStep 2: Use work;\nStep 3: ?" in prompt(walk)
    assert "the next part, the rest of the day" in prompt(walk)


def last(question: Question) -> int:
    return len(question.options)


def test_the_order_is_that_of_the_rules() -> None:
    cfg = CFG.from_string("S -> wash S | dry | iron")
    pda = PDA.from_string("%accept q\np, a, ε -> q, ε")
    flow = Flowchart.from_string("flowchart TD\n a([Start]) --> b[do it] --> c([End])")
    behaviour = Behaviour.from_string("(define b (:states Act Ans) (:behavior (next Act Ans)))")
    finite = PDA([("s", name, None, "s") for name in cfg.terminals], start="s", accepting=["s"])
    said: list[tuple[Source, str]] = [
        (cfg, "forward"), (cfg.with_order("forward"), "forward"), (cfg.with_order("prefix"), "prefix"),
        (PDA.from_cfg(cfg.with_order("prefix")), "prefix"), (cfg.with_order("prefix") & finite, "prefix"),
        (finite & cfg.with_order("prefix"), "prefix"), (cfg & finite, "forward"),
        (cfg.with_order("prefix").with_start("S").with_limits(Limits(default=2)), "prefix"),
        (pda, "forward"), (PDA.from_string(f"%order prefix\n{pda}"), "prefix"), (flow, "forward"),
        (behaviour, "forward"),
    ]  # fmt: skip
    for source, order in said:
        for wording in (None, Wording(), Wording(system="Be brief."), Wording.from_mapping({"step": "{text}!"})):
            assert Planner(source, last, wording=wording).plan("t").order == order
            assert Walk(source, "t", wording=wording).partial.order == order


def test_a_forward_grammar_is_asked_planned_and_printed_forward() -> None:
    cfg = CFG.from_string("Day -> breakfast Rest\nRest -> work Rest | home")
    walk = Walk(cfg, "t")
    walk.answer(1)
    assert "Step 1: Use breakfast;\nStep 2: Use work;\nStep 3: ?" in prompt(walk)
    assert str(Planner(cfg, "test:script=1,2").plan("t")) == "Step 1: Use breakfast\nStep 2: Use work\nStep 3: Use home"
    assert str(Planner(cfg.with_order("prefix"), "test:script=1,2").plan("t")).startswith("Step 1: Use work on home")


def test_a_hand_written_automaton() -> None:
    pda = PDA(
        [("q", "a", None, "q"), ("q", None, None, "r"), ("r", "b", None, "r"), ("r", "c", None, "s")],
        start="q",
        accepting=["s"],
    )
    walk = Walk(pda, "t")
    assert walk.question is not None
    assert [option.text for option in walk.question.options] == ["a", "go on to r"]
    assert "To get the next part, a step" in prompt(walk)


def test_a_selection_asks_for_numbers() -> None:
    walk = Walk(CFG.from_string('S -> cook some(salt, pepper)\nsalt "sea salt"'))
    assert "separated by commas" in prompt(walk)
    assert walk.question is not None
    assert [option.text for option in walk.question.options] == ["sea salt", "pepper"]


def test_templates_can_be_replaced() -> None:
    wording = Wording(
        prompt="{task}|{progress}|{target}|{options}|{instruction}", instruction="1..{count}", step="{text}"
    )
    walk = Walk(TOOLS, "X", wording=wording)
    walk.answer(2)
    assert prompt(walk).startswith("X|Step n: Use Question Answering\nStep n-1: ?|the first input text")
    assert prompt(walk).endswith("|1..3")


@pytest.mark.parametrize(
    ("field", "value"),
    [("prompt", "{tusk}"), ("target", "{task}"), ("instruction", "{}"), ("step", "{label}")],
)
def test_a_template_that_cannot_be_filled_is_told_when_it_is_made(field: str, value: str) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        Wording(**{field: value})  # type: ignore[arg-type]


def test_braces_in_tasks_and_labels_are_text() -> None:
    walk = Walk(CFG.from_string('S -> a | b\na "{task} {0} {x.__class__}"'), "use {options}")
    assert "Task description: use {options}" in prompt(walk)
    assert "{x.__class__}" in prompt(walk)


def test_a_wording_file(tmp_path: Path) -> None:
    file = tmp_path / "wording.toml"
    file.write_text('system = "Plan well."\nexamples = [["Which?", "2"]]\n', encoding="utf-8")
    wording = Wording.from_file(file)
    assert (wording.system, wording.examples) == ("Plan well.", (("Which?", "2"),))
    file.write_text("sytem = 'x'", encoding="utf-8")
    with pytest.raises(NotationError, match="did you mean system"):
        Wording.from_file(file)
    file.write_text("system = ", encoding="utf-8")
    with pytest.raises(NotationError, match="not TOML"):
        Wording.from_file(file)
    with pytest.raises(NotationError, match="there is no such file"):
        Wording.from_file(tmp_path / "none.toml")


def test_the_rules_can_be_told_to_the_model() -> None:
    wording = Wording(system="You plan trips.").with_rules()
    assert wording.with_rules() is wording
    cfg = CFG.from_string('S "trip" -> go S | stay\n%limit 1\ngo "Go on"')
    never = constraint("(not (eventually (next go go)))", cfg, name="no two legs in a row")
    llm = ScriptedLLM([2])
    Planner(cfg, llm, limits=Limits({"go": 3}), wording=wording, constraints=[never]).plan("t")
    role, said, *_ = llm.questions[0].messages[0]
    assert role == "system"
    assert said.startswith("You plan trips.")
    written = said[said.index("%start") :]
    grammar, _, more = written.partition("# and: ")
    assert more == "no two legs in a row"
    told = CFG.from_string(grammar)
    assert told == cfg.with_limits(cfg.limits & Limits({"go": 3}))
    llm = ScriptedLLM([2])
    assert Planner(cfg, llm).plan("t").word == ("stay",)
    assert [message.role for message in llm.questions[0].messages] == ["user"]


def test_the_rules_of_an_automaton_by_hand() -> None:
    pda = PDA.from_string("%start p\n%accept r\np, a, ε -> p, ε\np, b, ε -> r, ε\n%limit 2 a\n")
    llm = ScriptedLLM([2])
    Planner(pda, llm, wording=Wording(system="For {task}:\n{rules}")).plan("a test")
    said = llm.questions[0].messages[0].content
    assert said.startswith("For a test:\n")
    assert PDA.from_string(said.partition("\n")[2]).transitions == pda.transitions
    assert "%limit 2 a" in said


def test_names_in_braces_are_filled_in() -> None:
    assert fill_template("{a} and {b}, {a}", {"a": 1, "b": "{a}"}) == "1 and {a}, 1"


def test_an_unknown_name_is_told_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"unknown placeholder \{c\}; there are: \{a\}, \{b\}"):
        fill_template("{c}", {"a": 1, "b": 2})


def test_they_are_short_and_offer_the_same() -> None:
    pack = TaskPack.load("openagi")
    task = pack.task(0)
    first = pack.planner("test:first").start(task).question
    prompts = [first.prompt] if first else []
    for name in NAMED:
        asked = pack.planner("test:first", wording=shortened(pack.wording, name)).start(task).question
        assert first is not None and asked is not None and len(asked.options) == len(first.options)
        assert task.description in asked.prompt
        for one, other in zip(asked.options, first.options, strict=True):
            assert one.text in other.text
        prompts.append(asked.prompt)
    assert sorted(prompts, key=len, reverse=True) == prompts and len(set(prompts)) == 3
    assert "1: Colorization" in prompts[1] and "Colorization" not in prompts[2]


@pytest.mark.parametrize("name", NAMED)
def test_plans_stay_the_same(name: str) -> None:
    pack = TaskPack.load("openagi")
    wording = shortened(pack.wording, name)
    for conversation in (False, True):
        words = [
            Planner(pack.source, "test:random=3", wording=one).plan(pack.task(9)).word
            for one in (pack.wording, Wording(**{**vars(wording), "conversation": conversation}))
        ]
        assert words[0] == words[1]


class ByText(LLM):
    """An LLM whose options are scored by their texts."""

    wording = "unlisted"

    def answer(self, question: Question) -> Answer:
        return Answer((1,), dict.fromkeys(range(1, len(question.options) + 1), 1 / len(question.options)))


def test_who_reads_short_questions_best_is_asked_so_where_nobody_said_how() -> None:
    pack, llm = TaskPack.load("openagi"), ByText()
    assert pack.planner(llm).wording == shortened(pack.wording, "unlisted") == adapt_wording(pack.wording, llm)
    assert pack.planner(llm, wording=pack.wording).wording == pack.wording
    assert pack.planner("test:first").wording == pack.wording
    assert Planner(pack.source, llm).wording == shortened(Wording(), "unlisted")
    assert Planner(pack.source, llm, wording=Wording()).wording.prompt == Wording().prompt
    assert SureLLM(llm, 0.5).wording == "unlisted" and SureLLM("test:first", 0.5).wording == ""


def test_a_person_who_is_asked_then_sees_the_options() -> None:
    writes = StringIO()
    pack = TaskPack.load("openagi")
    pack.planner(SureLLM(ByText(), 0.9, Person(StringIO("1\n" * 99), writes))).plan(pack.task(9))
    assert "1: Colorization" in writes.getvalue() and "would choose 1" in writes.getvalue()


def test_what_stands_beside_the_questions_stays() -> None:
    own = Wording(system="Be brief.", conversation=True, examples=(("1?", "1"),))
    found = shortened(own)
    assert (found.system, found.conversation, found.examples) == ("Be brief.", True, own.examples)
    with pytest.raises(ValueError, match="there are: terse, unlisted"):
        shortened(own, "shorter")
