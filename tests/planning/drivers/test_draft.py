"""Draft and mend: always a word of the language, legal drafts taken as they are, few questions, all of it on record."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import (
    CFG,
    PDA,
    Answer,
    Budget,
    Flowchart,
    Limits,
    Plan,
    Planner,
    Prices,
    Question,
    RandomLLM,
    RecordedLLM,
    TaskPack,
    Walk,
)  # fmt: skip
from formal_llm.automata.languages.nearest_words import find_continuation
from formal_llm.errors import BudgetExceeded, NoValidPlan, WritesNoText
from formal_llm.llms.driven import resumed
from formal_llm.llms.text_request import TextRequest
from formal_llm.planning.drivers.draft import DraftRules, find_arguments
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.describing import describe_limits, describe_names, describe_rules
from formal_llm.planning.walks.events import Answered, Asked, Drafted
from formal_llm.planning.walks.pages import Pages
from tests import strategies
from tests.planning.drivers.writers import Drafter
from tests.planning.wandering import CHAIN, SEASONING, TOOLS, keeps

#: Budgets that bound what a random grammar can make of a random answerer.
STEPS = Budget(steps=40, backtracks=100, questions=60)
letters = st.sampled_from(strategies.LETTERS)
drafts = st.one_of(
    st.text(max_size=30),
    st.lists(letters, max_size=8).map(" ".join),
    st.lists(st.one_of(letters, st.text(max_size=4)), max_size=8).map("\n".join),
    st.lists(letters, max_size=6).map(json.dumps),
    st.lists(letters, max_size=6).map(
        lambda names: "\n".join(f"{n}. **Use {name}**" for n, name in enumerate(names, 1))
    ),
    st.sampled_from(['{"word": 3}', "[", "((((", "a(b(c", "```\na b\n```", "\ufeffa\r\nb\u2028c\x00"]),
)


def a_plan(cfg: CFG, seed: int) -> Plan:
    """A random plan within the steps that these tests allow."""
    try:
        return Planner(cfg, RandomLLM(seed), budget=STEPS).plan("t")
    except (NoValidPlan, BudgetExceeded):
        assume(False)
        raise


def write_draft(cfg: CFG, plan: Plan) -> str:
    """The draft of a plan: its names in the order of carrying out."""
    return json.dumps({"plan": list(plan.word[::-1] if cfg.order == "prefix" else plan.word)})


def is_word(cfg: CFG, word: tuple[str, ...]) -> bool:
    return cfg.accepts(word) and keeps(cfg, word)


@strategies.examples(20)
@given(
    st.one_of(strategies.limited_grammars(), strategies.tool_grammars()),
    st.lists(drafts, min_size=1, max_size=3),
    st.sampled_from(["on", "off"]),
    st.integers(0, 99),
)
def test_whatever_is_drafted_the_plan_is_a_word(cfg: CFG, texts: list[str], lookahead: str, seed: int) -> None:
    llm = Drafter(texts, seed)
    planner = Planner(cfg, llm, search="draft", lookahead=lookahead, budget=STEPS)  # type: ignore[arg-type]
    try:
        walk = planner.start("t")
        plan = planner.drive(walk)
    except (NoValidPlan, BudgetExceeded):
        assume(False)
        return
    assert is_word(cfg, plan.word)
    used = plan.usage
    assert used.questions == len(llm.asked) and used.drafts == len(llm.prompts) <= 1
    assert used.requests == used.questions + used.drafts
    if not used.backtracks:  # greedy would have asked at each of these choices
        assert used.questions + used.drafted == len(walk.snapshot()["journal"])  # type: ignore[arg-type]


@strategies.examples(20)
@given(st.one_of(strategies.limited_grammars(), strategies.tool_grammars()), st.integers(0, 999))
def test_a_legal_draft_is_taken_as_it_is(cfg: CFG, seed: int) -> None:
    wanted = a_plan(cfg, seed)
    assume(1 < len(wanted.word) <= 8)
    llm = Drafter([write_draft(cfg, wanted)])
    plan = Planner(cfg, llm, search="draft", budget=STEPS).plan("t")
    assert plan.word == wanted.word
    assert llm.asked == [] and len(llm.prompts) <= 1
    assert plan.usage.questions == 0 and plan.usage.requests == plan.usage.drafts == len(llm.prompts)


@strategies.examples(20)
@given(st.one_of(strategies.limited_grammars(), strategies.tool_grammars()), st.integers(0, 999), st.data())
def test_the_plan_is_as_near_to_the_draft_as_any_where_nothing_is_asked(
    cfg: CFG, seed: int, data: st.DataObject
) -> None:
    names = data.draw(st.lists(st.sampled_from([*cfg.terminals, "z"]), max_size=5))
    llm = Drafter([json.dumps(names)], seed)
    try:
        plan = Planner(cfg, llm, search="draft", budget=STEPS).plan("t")
    except (NoValidPlan, BudgetExceeded):
        assume(False)
        return
    assume(not llm.asked and llm.prompts)
    word = tuple(names[::-1] if cfg.order == "prefix" else names)
    free = find_arguments(cfg) if cfg.order == "prefix" else frozenset()
    table = Planner(cfg).table()
    nearest = [
        (found.distance, count_edits(one, plan.word, free))
        for one in (word, DraftRules(table).sort_selections(word))
        if (found := find_continuation(table.lookahead, table.automaton.start(), one, (), free)) is not None
    ]
    assert any(least == edits for least, edits in nearest)


def count_edits(word: tuple[str, ...], other: tuple[str, ...], free: frozenset[str]) -> int:
    """The edits between two words where some names may be inserted for nothing."""
    row = list(range(len(word) + 1))
    for name in other:
        price = 0 if name in free else 1
        above, row = row, [row[0] + price]
        for at, old in enumerate(word):
            row.append(min(above[at] + (old != name), above[at + 1] + price, row[-1] + 1))
    return row[-1]


# -- examples ----------------------------------------------------------------------------------------------------------


def numbers(walk: Walk) -> list[object]:
    """The rows of a walk's journal without what depends on the machine."""
    return [{key: row[key] for key in ("chosen", "asked")} for row in walk.snapshot()["journal"]]  # type: ignore[union-attr,index,call-overload]


def test_a_question_is_asked_where_the_draft_leaves_the_rules_and_says_what_it_wanted() -> None:
    llm = Drafter(["a b nothing b c"])
    plan = Planner(CHAIN, llm, search="draft").plan("t")
    assert len(llm.asked) == 1 and plan.usage.questions == 1 and plan.usage.drafts == 1
    assert "Your draft of the plan was: a, b, nothing, b, c." in llm.asked[0].prompt
    assert plan.word[:2] == ("a", "b")
    assert plan.usage.drafted + 1 == len(plan.word)
    assert plan.log_probability is None


def test_what_the_draft_has_a_place_for_later_comes_last_among_pages() -> None:
    class TakesTheFirst(Drafter):
        def choose(self, question: Question) -> Answer:
            return Answer((1,))

    rules = CFG.from_string("S -> T T T\nT -> a | b | c | d | e\n%limit 1")
    llm = TakesTheFirst(["a nothing b"])
    plan = Planner(rules, llm, search="draft", pages=Pages(options=3, order=lambda offer: offer.names)).plan("t")
    assert plan.word == ("a", "c", "b") and len(llm.asked) == 1


def test_the_rest_of_the_draft_is_taken_after_a_wrong_missing_or_needless_step() -> None:
    rules = CFG.from_string("S -> a A\nA -> b B | x C\nB -> c D | y\nC -> x\nD -> d | y")
    wanted = ("a", "b", "c", "d")

    class Knows(Drafter):
        def choose(self, question: Question) -> Answer:
            assert question.outlook is not None
            name = wanted[len(question.outlook.so_far)]
            return Answer((next(o.number for o in question.options if o.text.partition(",")[0] == name),))

    for text, asked in (("a b zzz d", 0), ("a b d", 1), ("a b zzz c d", 0), ("a zzz c d", 0), ("a b c d d", 0)):
        llm = Knows([text])
        plan = Planner(rules, llm, search="draft").plan("t")
        assert plan.word == wanted and len(llm.asked) == asked, text
        assert plan.usage.drafted + asked == len(plan.word) - 1


def test_what_the_rest_of_the_draft_needs_is_not_asked_for() -> None:
    rules = CFG.from_string("S -> x a A | y b B\nA -> k A | l A | e\nB -> m B | n B | e")
    llm = Drafter(["zzz b n m n e", "zzz a k l e"])
    assert Planner(rules, llm, search="draft").plan("t").word == ("y", "b", "n", "m", "n", "e")
    assert Planner(rules, llm, search="draft").plan("t").word == ("x", "a", "k", "l", "e")
    assert not llm.asked
    # Both options fit, and so would the draft without its bad step.
    llm = Drafter(["y b n zzz m n e"])
    Planner(rules, llm, search="draft").plan("t")
    assert len(llm.asked) == 1


def test_a_step_that_leaves_no_choice_stands_for_one_of_the_draft() -> None:
    rules = CFG.from_string("S -> a b c D\nD -> x D | y D | e")
    for text in ("a b c x y e", "a zzz c x y e", "zzz zzz zzz x y e", "b c x y e"):
        llm = Drafter([text])
        assert Planner(rules, llm, search="draft").plan("t").word == ("a", "b", "c", "x", "y", "e"), text
        assert not llm.asked, text


def test_what_cannot_be_read_is_on_record_and_falls_back_to_questions() -> None:
    events: list[object] = []
    llm = Drafter(["I am sorry, I cannot help with that."])
    plan = Planner(TOOLS, llm, search="draft", on_event=events.append).plan("t")
    drafted = [event for event in events if isinstance(event, Drafted)]
    assert len(drafted) == 1 and drafted[0].taken == 0 and drafted[0].problem
    assert drafted[0].text.startswith("I am sorry")
    assert plan.usage.drafts == 1 and plan.usage.drafted == 0 and plan.usage.questions == len(llm.asked) > 0
    assert "draft" not in llm.asked[0].prompt


def test_a_selection_is_taken_from_a_draft_in_any_order() -> None:
    llm = Drafter(["cook chili salt serve"])
    plan = Planner(SEASONING, llm, search="draft").plan("t")
    assert plan.word == ("cook", "salt", "chili", "serve") and not llm.asked
    llm = Drafter(["cook chili sugar serve"])  # the whole set is asked for, not a part of it taken
    Planner(SEASONING, llm, search="draft").plan("t")
    assert len(llm.asked) == 1 and llm.asked[0].several


def test_flowcharts_ask_only_for_the_decisions_that_a_draft_leaves_open() -> None:
    pda = PDA.from_string("""
        %start s
        %accept e
        s, yes, ε -> p, ε "Yes" decide "Is it hot?"
        s, no, ε -> q, ε "No" decide "Is it hot?"
        p, drink, ε -> e, ε
        q, drink, ε -> e, ε
        q, eat, ε -> e, ε
    """)
    llm = Drafter(["1. eat"])
    assert Planner(pda, llm, search="draft").plan("t").word == ("no", "eat") and not llm.asked
    llm = Drafter(["1. drink"])
    assert Planner(pda, llm, search="draft").plan("t").word[1] == "drink"
    assert len(llm.asked) == 1 and "Is it hot?" in llm.asked[0].prompt
    llm = Drafter(["Is it hot? No\ndrink"])
    assert Planner(pda, llm, search="draft").plan("t").word == ("no", "drink") and not llm.asked


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"plan": ["caption", "translate"]}', ("translate", "caption")),
        ('["caption", "translate"]', ("translate", "caption")),
        ('```json\n{"plan": ["caption"]}\n```', ("caption",)),
        ("1. caption\n2. foo\n- Translate", ("translate", "foo", "caption")),
        ("caption, translate", ("translate", "caption")),
        ("Use caption; Translate", ("translate", "caption")),
        ('{"plan": [3, "caption"]}', ("caption",)),
        ("[]", ()),
    ],
)
def test_a_draft_is_json_or_names(text: str, names: tuple[str, ...]) -> None:
    draft = DraftRules(ChoiceTable.of(TOOLS)).read_draft(text)
    assert draft.names == names and not draft.problem


def test_labels_with_blanks_are_names_too() -> None:
    rules = CFG.from_string('S -> a b\na "Boil the water"\nb "Wash, and dry"')
    read = DraftRules(ChoiceTable.of(rules)).read_draft
    assert read("boil the water, b").names == ("a", "b")
    assert read("1. Boil the water\n2. Wash, and dry").names == ("a", "b")


@pytest.mark.parametrize("text", ["", " \n", "I cannot help with that.", "[[[", "\x00"])
def test_what_names_no_step_is_no_draft(text: str) -> None:
    draft = DraftRules(ChoiceTable.of(TOOLS)).read_draft(text)
    assert not draft.names and draft.problem


# -- who writes --------------------------------------------------------------------------------------------------------


def test_who_only_chooses_is_refused_with_the_way_out() -> None:
    for llm in ("builtin", RandomLLM(1), lambda _: 1):
        with pytest.raises(WritesNoText, match="search='greedy'"):
            Planner(CHAIN, llm, search="draft")


# -- on record ---------------------------------------------------------------------------------------------------------


def test_drafts_are_kept_recorded_and_replayed(tmp_path) -> None:  # type: ignore[no-untyped-def]
    first = Drafter(["a nothing b c"])
    with (
        RecordedLLM(first, tmp_path / "c.sqlite") as kept,
        RecordedLLM(kept, tmp_path / "r.jsonl", again=True) as recorded,
    ):
        plan = Planner(CHAIN, recorded, search="draft").plan("t")
        second = Planner(CHAIN, recorded, search="draft").plan("t")
        assert kept.stats.hits == kept.stats.misses == plan.usage.requests
    assert second == plan and second.usage.requests == 0 and second.usage.drafts == 1
    replay = RecordedLLM(None, tmp_path / "r.jsonl")
    assert Planner(CHAIN, replay, search="draft").plan("t") == plan
    assert Planner(CHAIN, replay, search="draft").plan("t") == plan and replay.left == 0


@strategies.examples(15)
@given(strategies.tool_grammars(), st.lists(drafts, min_size=1, max_size=2), st.integers(0, 99), st.data())
def test_a_walk_goes_on_from_its_snapshot_as_if_nothing_had_been(
    cfg: CFG, texts: list[str], seed: int, data: st.DataObject
) -> None:
    llm = Drafter(texts, seed)
    planner = Planner(cfg, llm, search="draft", budget=STEPS)
    try:
        walk = planner.start("t")
    except NoValidPlan:
        assume(False)
        return

    def go_on(walk: Walk, most: int, texts: Drafter, rng: random.Random) -> list[object]:
        asked: list[object] = []
        steps = planner.steps(walk)
        try:
            question = next(steps)
            while len(asked) < most:
                asked.append(question.content)
                if isinstance(question, TextRequest):
                    given = texts.ask(question)
                else:
                    given = question.check(RandomLLM(rng.randrange(1 << 30)).ask(question))
                question = resumed(steps, given)
        except (StopIteration, BudgetExceeded, NoValidPlan):
            pass
        steps.close()
        return asked

    whole = go_on(walk, 99, Drafter(texts), random.Random(seed))
    stop = data.draw(st.integers(0, len(whole)))
    rng, writer, part = random.Random(seed), Drafter(texts), planner.start("t")
    begun = go_on(part, stop, writer, rng)
    restored = planner.resume(json.dumps(part.snapshot()))
    rest = go_on(restored, 99, writer, rng)
    assert [*begun, *rest] == whole
    assert restored.word == walk.word
    assert numbers(restored) == numbers(walk)


def test_drafts_count_apart_and_within_budgets() -> None:
    prices = Prices(input=1e6, output=0)
    plan = Planner(CHAIN, Drafter(["a b c"]), search="draft", prices=prices, budget=Budget(questions=0)).plan("t")
    assert (plan.usage.questions, plan.usage.drafts, plan.usage.drafted, plan.usage.requests) == (0, 1, 3, 1)
    assert (plan.usage.input_tokens, plan.usage.output_tokens, plan.usage.cost) == (100, 10, 100.0)
    for budget in (Budget(questions=0), Budget(requests=1), Budget(tokens=50), Budget(cost=99)):
        llm = Drafter(["a zzz c"])
        with pytest.raises(BudgetExceeded) as caught:
            Planner(CHAIN, llm, search="draft", prices=prices, budget=budget).plan("t")
        assert caught.value.plan.word == ("a",) and caught.value.plan.usage.drafts == 1 and not llm.asked
    with pytest.raises(BudgetExceeded):
        Planner(CHAIN, llm := Drafter(["a c"]), search="draft", budget=Budget(requests=0)).plan("t")
    assert not llm.prompts


def test_many_plans_at_once_awaited_from_threads_and_together() -> None:
    class Awaited(Drafter):
        async def answer(self, request):  # type: ignore[no-untyped-def]
            return Drafter.answer(self, request)

    class Together(Drafter):
        at_once = 3

    for kind in (Drafter, Awaited, Together):
        planner = Planner(CHAIN, kind(["a b zzz c"]), search="draft")
        outcomes = planner.plan_all(["t"] * 5, concurrency=3, budget=Budget(questions=100))
        assert [outcome.unwrap().word[:2] for outcome in outcomes] == [("a", "b")] * 5
        assert all(outcome.usage.drafts >= 1 for outcome in outcomes)
        assert len(list(planner.plan_each(["t"] * 2))) == 2
    assert asyncio.run(Planner(CHAIN, Awaited(["c"]), search="draft").aplan("t")).word == ("c",)
    assert asyncio.run(Planner(CHAIN, Drafter(["c"]), search="draft").aplan("t")).word == ("c",)
    shared = Planner(CHAIN, Drafter(["c"]), search="draft").plan_all(["t"] * 4, budget=Budget(requests=2, questions=1))
    assert [outcome.plan is not None for outcome in shared] == [True, True, False, False]


def test_events_tell_of_the_request_the_draft_and_the_questions() -> None:
    events: list[object] = []
    Planner(CHAIN, Drafter(["a zzz c"]), search="draft", on_event=events.append).plan("t")
    kinds = [type(event) for event in events if isinstance(event, (Asked, Answered, Drafted))]
    assert kinds[:5] == [Asked, Answered, Drafted, Asked, Answered]


def test_rules_that_leave_nothing_to_choose_need_no_draft() -> None:
    llm = Drafter(["x"])
    plan = Planner(CFG.from_string("S -> a b"), llm, search="draft").plan("t")
    assert (
        plan.word == ("a", "b")
        and not llm.prompts
        and plan.usage == plan.usage.__class__(seconds=plan.usage.seconds, verdicts=plan.usage.verdicts)
    )


def test_a_tool_that_failed_is_asked_around() -> None:
    walk = Walk(TOOLS, "t")
    llm = Drafter(["caption, translate"])
    planner = Planner(TOOLS, llm, search="draft")
    assert planner.drive(walk).word == ("translate", "caption", "image")
    walk.rule_out(1)
    plan = planner.drive(walk)
    assert plan.word != ("translate", "caption", "image") and TOOLS.accepts(plan.word)


def test_every_pack_of_ours_takes_a_draft() -> None:
    for name in ("openagi", "daily", "cooking", "risk"):
        pack = TaskPack.load(name)
        task = next(iter(pack.tasks))
        wanted = pack.planner(RandomLLM(3)).plan(task)
        llm = Drafter([" ".join(wanted.word[::-1] if wanted.order == "prefix" else wanted.word)])
        plan = pack.planner(llm, search="draft").plan(task)
        assert plan.word == wanted.word and not llm.asked, name


TRIP = CFG.from_string("""
    %limit 1
    %limit 2 train
    %limit 0 plane
    %limit cost <= 300
    Trip "the trip" -> train Stay | plane
    Stay -> hotel | some(tent, friends)
    train "By train" "slow" cost=40
    hotel cost=120
""")


def test_a_grammar_is_told_by_its_symbols_and_what_they_are_made_of() -> None:
    table = ChoiceTable.of(TRIP)
    assert describe_names(table).splitlines() == [
        "- train: By train, slow, cost=40", "- hotel: cost=120", "- tent", "- friends",
    ]  # fmt: skip
    assert describe_rules(table).splitlines()[1:] == [
        '- Trip "the trip": train Stay | plane', "- Stay: hotel | some(tent, friends)",
    ]  # fmt: skip
    assert describe_limits(table).splitlines() == [
        "- each name at most once, where nothing else is said", "- never: plane", "- at most 2 times: train",
        "- cost <= 300",
    ]  # fmt: skip


def test_what_is_required_and_what_is_free_is_told() -> None:
    table = ChoiceTable.of(CFG.from_string("S -> a S | b"), limits=Limits({"a": None}, {"a": 2}, default=3))
    assert "- as often as you like: a" in describe_limits(table) and "- at least 2 times: a" in describe_limits(table)


def test_a_chart_is_told_by_its_places_its_questions_and_its_selections() -> None:
    chart = Flowchart.from_string("""
        flowchart TD
        s([Start]) --> hot{"Is it hot?"}
        hot -->|Yes| swim["Go swimming"]
        hot -->|No| bring{{"What to bring?"}}
        bring -->|A hat| walk["Go for a walk"]
        bring -->|A coat| walk
        swim --> e([End])
        walk --> e
    """)
    table = ChoiceTable.of(chart)
    assert "- hot=yes: Is it hot? Yes" in describe_names(table)
    rules = describe_rules(table)
    assert "- from hot: hot=yes -> swim, hot=no -> bring" in rules
    assert "one or more of bring=a_hat, bring=a_coat -> walk" in rules
    assert "some(" not in rules


def test_constraints_are_named_and_a_stack_of_ones_own_is_told_in_the_notation() -> None:
    pda = PDA.from_string("s, a, ε -> s, x\ns, b, x -> s, ε\n%start s\n%accept s")
    assert "s, b, x -> s, ε" in describe_rules(ChoiceTable.of(pda))
    once = PDA([("0", "a", None, "1")], start="0", accepting=["1"], name="a comes once")
    assert "- and: a comes once" in describe_rules(ChoiceTable.of(CFG.from_string("S -> a"), constraints=[once]))
