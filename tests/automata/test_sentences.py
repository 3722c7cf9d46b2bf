"""Sentences about order, in every notation: against a definition of each over all words, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, Limits, Lookahead, constraint, tool, verify
from formal_llm.automata.models.declare import KEYWORDS, Sentence
from formal_llm.automata.models.dfa import minimal_dfa
from formal_llm.automata.models.formula import EVERYTHING, reverse
from formal_llm.automata.notation.files import read_rules_text
from formal_llm.automata.notation.sentences import read_sentence, read_sentences, write_sentences
from formal_llm.errors import AutomatonError, NotationError, Undecided
from tests.oracles import all_words
from tests.strategies import examples

Word = tuple[str, ...]
LETTERS = "abc"
WORDS = list(all_words(LETTERS, 6))


def _each(word: Word, name: str) -> list[int]:
    return [at for at, step in enumerate(word) if step == name]


def _opened(word: Word, at: int, opening: str, closing: str) -> bool:
    """Whether the last of the two before a place is the opening one."""
    before = [step for step in word[:at] if step in (opening, closing)]
    return before[-1:] == [opening]


#: What each sentence means of a word in the order of carrying out.
MEANINGS: dict[str, Callable[[Word], bool]] = {
    "a before b": lambda w: all("a" in w[:at] for at in _each(w, "b")),
    "a or c before b": lambda w: all({"a", "c"} & {*w[:at]} for at in _each(w, "b")),
    "a before each b": lambda w: all("a" in w[max((0, *_each(w[:at], "b"))) : at] for at in _each(w, "b")),
    "a after each b": lambda w: all("a" in w[at:] for at in _each(w, "b")),
    "a or c after each b": lambda w: all({"a", "c"} & {*w[at:]} for at in _each(w, "b")),
    "a directly after each b": lambda w: all(w[at + 1 : at + 2] == ("a",) for at in _each(w, "b")),
    "never a after b": lambda w: all("a" not in w[at:] for at in _each(w, "b")),
    "never a directly after b": lambda w: ("b", "a") not in pairwise(w),
    "never a": lambda w: "a" not in w,
    "never a or b": lambda w: not {"a", "b"} & {*w},
    "at most 2 a": lambda w: w.count("a") <= 2,
    "at least 2 a": lambda w: w.count("a") >= 2,
    "exactly 2 a": lambda w: w.count("a") == 2,
    "at least 0 a": lambda w: True,
    "at most 2 a or b": lambda w: w.count("a") + w.count("b") <= 2,
    "at least 2 a or b": lambda w: w.count("a") + w.count("b") >= 2,
    "exactly 2 a or b": lambda w: w.count("a") + w.count("b") == 2,
    "first a": lambda w: w[:1] == ("a",),
    "first a or b": lambda w: w[:1] in (("a",), ("b",)),
    "last a": lambda w: w[-1:] == ("a",),
    "a if b": lambda w: "a" in w or "b" not in w,
    "at most one of a, b, c": lambda w: len({*w}) <= 1,
    "at least one of a, b": lambda w: bool({"a", "b"} & {*w}),
    "exactly one of a, b": lambda w: len({"a", "b"} & {*w}) == 1,
    "never a between b and c": lambda w: not any(_opened(w, at, "b", "c") for at in _each(w, "a")),
    "a only between b and c": lambda w: all(_opened(w, at, "b", "c") for at in _each(w, "a")),
    "only a after b": lambda w: all({*w[at + 1 :]} <= {"a"} for at in _each(w, "b")),
    "in this order: a, b, c": lambda w: list(w) == sorted(w),
    "in this order: b, a or c": lambda w: all("b" not in w[at:] for at, step in enumerate(w) if step in "ac"),
    "at most 3 steps": lambda w: len(w) <= 3,
    "at least 3 steps": lambda w: len(w) >= 3,
    "exactly 3 steps": lambda w: len(w) == 3,
}

#: Rules that allow all words, with a place for more.
NOTATIONS = {
    ".rules": "steps: a, b, c\n{rule}\n",
    ".cfg": "%order forward\n%rule {rule}  # said\nS -> a S | b S | c S | ε\n",
    ".pda": "%start p\n%accept p\n%rule {rule}  # said\np, a, ε -> p, ε\np, b, ε -> p, ε\np, c, ε -> p, ε\n",
    ".mmd": "flowchart TD\n%% %rule {rule}\ns([Start]) --> D{{More?}}\nD -->|a| a[A]\nD -->|b| b[B]\nD -->|c| c[C]\n"
    "a --> D\nb --> D\nc --> D\nD -->|no| e([End])\n",
    ".agent": '(define all (:states a b c) (:limits "%rule {rule}") (:behavior (until any empty)))',
}
PREFIX = {
    ".cfg": NOTATIONS[".cfg"].replace("forward", "prefix"),
    ".pda": "%order prefix\n" + NOTATIONS[".pda"],
}
ALL = [*((ending, text, 1) for ending, text in NOTATIONS.items()), *((one, text, -1) for one, text in PREFIX.items())]


def read(ending: str, text: str, rule: str) -> Any:
    return read_rules_text(text.format(rule=rule), f"some{ending}")


def spell(rules: Any, up_to: int) -> set[Word]:
    """The words up to a length that the walk of a planner can spell, answers to decisions left out."""
    automaton = Lookahead(rules.pda() if isinstance(rules, Flowchart) else rules).automaton
    found: set[Word] = set()
    todo, seen = [((), automaton.start())], set()
    while todo:
        word, configuration = todo.pop()
        if (word, configuration) in seen:
            continue
        seen.add((word, configuration))
        if automaton.accepting(configuration):
            found.add(word)
        for move in automaton.moves(configuration):
            silent = move.read is None or "=" in move.read
            after = word if silent else (*word, move.read)
            if len(after) <= up_to:
                todo.append((after, automaton.step(configuration, move)))
    return found


@pytest.mark.filterwarnings("ignore:.*the empty sequence is allowed")
@pytest.mark.parametrize("sentence", MEANINGS)
@pytest.mark.parametrize(("ending", "text", "way"), ALL, ids=[f"{one[0]}{'-' if one[2] < 0 else ''}" for one in ALL])
def test_each_sentence_means_what_it_says_in_every_notation(ending: str, text: str, way: int, sentence: str) -> None:
    rules, up_to = read(ending, text, sentence), 6 if way > 0 or ending == ".cfg" else 5
    expected = {word for word in WORDS if len(word) <= up_to and MEANINGS[sentence](word)}
    assert {word[::way] for word in spell(rules, up_to)} == expected


@pytest.mark.parametrize("sentence", MEANINGS)
def test_a_sentence_its_formula_and_its_reverse_agree(sentence: str) -> None:
    rule = read_sentence(sentence, dict.fromkeys(LETTERS, ""))
    dfa, backward = minimal_dfa(rule.formula(), LETTERS), minimal_dfa(reverse(rule.formula()), LETTERS)
    pda = read(".pda", NOTATIONS[".pda"], sentence)
    for word in WORDS:
        assert dfa.accepts(word) == backward.accepts(word[::-1]) == rule.accepts(word) == MEANINGS[sentence](word)
        assert pda.accepts(word) == MEANINGS[sentence](word)
    assert str(rule) == rule.text == sentence


# -- names ------------------------------------------------------------------------------------------------------------

LAUNDRY = """%order forward
S -> hang_up S | wash S | ε
hang_up "Hang it up"
wash "Wash it and rinse"
"""


@pytest.mark.parametrize("name", ["hang_up", "hang up", "Hang it up", "hang it  up", '"hang_up"', '"Hang it up"'])
def test_a_step_is_named_by_its_terminal_or_its_label(name: str) -> None:
    (rule,) = CFG.from_string(LAUNDRY + f"%rule WASH before {name}".replace("WASH", "wash")).limits.rules
    assert rule == Sentence("precedence", (("wash",), ("hang_up",)))
    assert rule.text == f"wash before {' '.join(name.split())}"


def test_two_steps_that_differ_in_capitals_stay_two() -> None:
    cfg = CFG.from_string("%order forward\nS -> a S | A S | ε\n%rule a before A")
    assert cfg.limits.rules == (Sentence("precedence", (("a",), ("A",))),)


names = st.one_of(
    st.sampled_from(
        [*KEYWORDS, "pay and go", "7", "7 days", "a, b", 'say "hi"', "x.y", "ask-manager", "Ärger", "(", "#"]
    ),
    st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=6),
)


@st.composite
def sentences(draw: st.DrawFn, steps: list[str]) -> Sentence:
    group = st.lists(st.sampled_from(steps), min_size=1, max_size=2, unique=True).map(tuple)
    two = ["choice", "order"] if len(steps) > 1 else []
    kind = draw(
        st.sampled_from(["precedence", "alternate_precedence", "response", "chain_response", "not_succession",
                         "not_chain_succession", "absence", "existence", "init", "end", "responded_existence", *two,
                         "not_between", "scope", "nothing_else_after", "length"])
    )  # fmt: skip
    number = draw(st.integers(1, 1 if kind == "choice" else 5))
    least, most = draw(st.sampled_from([(0, number), (number, None), (number, number)]))
    if kind not in ("existence", "length", "choice"):
        least, most = 0, None
    if kind in ("choice", "order"):
        return Sentence(kind, tuple((name,) for name in draw(st.permutations(steps))[:3]), least, most)
    size = {"absence": 1, "existence": 1, "init": 1, "end": 1, "not_between": 3, "scope": 3, "length": 0}.get(kind, 2)
    return Sentence(kind, tuple(draw(group) for _ in range(size)), least, most)


@pytest.mark.filterwarnings("ignore:.*no plan that keeps the rules")
@given(st.data())
@examples(60)
def test_what_is_written_reads_back(data: st.DataObject) -> None:
    steps = data.draw(st.lists(names, min_size=1, max_size=4, unique_by=lambda name: name.casefold().replace("_", " ")))
    rules = data.draw(st.lists(sentences(steps), max_size=4))
    for rule in rules:
        assert read_sentence(str(rule), dict.fromkeys(steps, "")) == rule
    plain = [rule for rule in rules if all(name.isidentifier() for name in steps)]
    limits = Limits()
    for rule in plain:
        limits &= Limits.from_sentence(rule)
    behaviour = Behaviour("rules", dict.fromkeys("_".join(name.split()) for name in steps), EVERYTHING, limits)
    try:
        assert read_sentences(write_sentences(behaviour)) == behaviour
    except NotationError as error:
        assert "no plan keeps" in error.problem


def test_every_notation_prints_its_rules() -> None:
    for ending, text in NOTATIONS.items():
        rules = read(ending, text, "last a")
        assert rules.limits.rules == (Sentence("end", (("a",),)),)
        assert type(rules).from_string(str(rules)).limits == rules.limits


def test_limits_on_uses_are_written_as_sentences() -> None:
    limits = Limits({"a": 0, "b": 2, "c": 3}, {"b": 2, "c": 1})
    behaviour = Behaviour("rules", "abc", EVERYTHING, limits)
    again = read_sentences(write_sentences(behaviour))
    assert [again.accepts(word) for word in WORDS] == [behaviour.accepts(word) for word in WORDS]


def test_what_no_sentence_says_is_not_written_as_one() -> None:
    with pytest.raises(ValueError, match="which no sentence says"):
        write_sentences(Behaviour.from_string("(define one (:states a) (:behavior a))"))


# -- verdicts ---------------------------------------------------------------------------------------------------------

REFUNDS = """steps: find order, ask manager, pay back, close
find order before pay back
At most 1 pay back
last close
"""


def test_a_verdict_names_the_sentence_and_the_place() -> None:
    rules = read_sentences(REFUNDS)
    early = verify(["ask_manager", "pay_back", "close"], rules)
    assert (early.position, early.constraints) == (1, ("find order before pay back",))
    twice = verify(["find_order", "pay_back", "pay_back", "close"], rules)
    assert (twice.position, twice.limits) == (2, ("At most 1 pay back",))
    open_ended = verify(["find_order"], rules)
    assert (open_ended.position, open_ended.constraints) == (1, ("last close",))
    assert verify(["find_order", "pay_back", "close"], rules)


def test_rules_that_clash_are_named() -> None:
    with pytest.raises(NotationError) as caught:
        read_sentences(REFUNDS + "last pay back\n", "refunds.rules")
    assert "'last close'; constraint 'last pay back'" in caught.value.problem and caught.value.line == 4
    cfg = CFG.from_string("%order forward\nS -> a S | b").with_rules("last a")
    assert not Lookahead(cfg).completable().possible


def test_over_typed_tools_a_sentence_speaks_of_the_order_of_carrying_out() -> None:
    @tool
    def backup(data: str) -> str:
        return data

    @tool
    def migrate(data: str) -> str:
        return data

    cfg = CFG.from_tools([backup, migrate]).with_rules("backup before migrate")
    assert verify(["migrate", "backup", "input_text"], cfg)  # migrate(backup(data))
    refused = verify(["backup", "migrate", "input_text"], cfg)
    assert not refused and refused.constraints == ("backup before migrate",)


def test_an_answer_to_a_decision_is_no_step_unless_a_rule_names_it() -> None:
    chart = "flowchart TD\n%% %rule {}\nA[Ask] --> D{{Paid?}}\nD -->|yes| S[Ship]\nD -->|no| R[Remind]\n"
    following = Flowchart.from_string(chart.format("never Remind directly after Ask"))
    assert spell(following, 9) == {("A", "S")}
    named = Flowchart.from_string(chart.format('never "D=no"'))
    assert spell(named, 9) == {("A", "S")}


@pytest.mark.parametrize("rule", ["a before b", "(not (next (until (and any (not (or a b))) b) (until any empty)))"])
def test_rules_are_an_argument_of_all_rules(rule: str) -> None:
    bare = {".cfg": "%rule {rule}  # said\n", ".pda": "%rule {rule}  # said\n", ".mmd": "%% %rule {rule}\n"}
    expected = {word for word in WORDS if len(word) <= 4 and MEANINGS["a before b"](word)}
    for ending, line in bare.items():
        rules = read_rules_text(NOTATIONS[ending].replace(line, "").format(), f"some{ending}").with_rules(rule)
        assert spell(rules, 4) == expected
    states = Behaviour("all", "abc", EVERYTHING).with_rules(rule)
    assert spell(states, 4) == expected == {word for word in WORDS if len(word) <= 4 and states.accepts(word)}
    assert spell(constraint(rule, ["a", "b", "c"]), 4) == expected


def test_a_constraint_of_a_sentence_is_reversed_where_words_run_backward() -> None:
    cfg = CFG.from_string(PREFIX[".cfg"].replace("%rule {rule}  # said\n", ""))
    assert spell(cfg & constraint("a before b", cfg), 4) == spell(cfg.with_rules("a before b"), 4)


def test_rules_that_are_too_large_name_themselves() -> None:
    with pytest.raises(Undecided, match="at most 30000 steps: the formula needs"):
        Lookahead(read_sentences("steps: a\nat most 30000 steps"))


def test_rules_about_order_need_rules_that_name_their_steps() -> None:
    rule = Limits.from_sentence(Sentence("end", (("a",),)))
    with pytest.raises(AutomatonError, match="unknown step: a in the rule last a"):
        Lookahead(CFG.from_string("%order forward\nS -> b"), rule)
    assert PDA.from_cfg(CFG.from_string("%order forward\nS -> a")).with_limits(rule).accepts("a")
