"""Reading plans: the four forms, what is refused, and that what is printed is read back."""

from __future__ import annotations

import json

import pytest

from formal_llm import (
    CFG,
    PDA,
    Flowchart,
    Limits,
    Planner,
    RandomLLM,
    Verifier,
    constraint,
    read_plan_text,
    verify_text,
)
from formal_llm.errors import NotationError, Undecided
from formal_llm.planning.reading import find_names

LAUNDRY = CFG.from_string("Plan -> wash dry fold")
CHART = Flowchart.from_mermaid(
    "flowchart TD\n a[Wash] --> b{Sunny?}\n b -->|yes| c[Dry outside]\n b -->|no| d[Dry inside]"
)
DESK = CFG.from_string("%order prefix\nT -> build P P\nP -> saw wood | glue wood | saw P")
ETL = CFG.from_string('%order prefix\nR "the report" -> render T\nT -> join T T | load_csv events | load_sql orders')


@pytest.mark.parametrize(
    ("text", "valid"),
    [("wash dry", True), ("wash / dry", True), ("dry / wash", False), ("dry wash", False), ("wash, dry", None),
     ("dry, wash", None)],
)  # fmt: skip
def test_steps_in_one_row_have_one_order(text: str, valid: bool | None) -> None:
    verifier = Verifier(CFG.from_string("Plan -> wash dry"))
    if valid is None:
        with pytest.raises(NotationError, match="unknown step") as caught:
            verify_text(text, verifier)
        assert caught.value.line == 1
    else:
        assert verify_text(text, verifier).valid == valid


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("wash\ndry - never\nfold", 2),
        ("wash\ndry\nfold (skip this one)", 3),
        ("wash // no\ndry\nfold", 1),
        ("wash\ndry\nfold; or better not", 3),
        ("Here is my plan:\nwash\ndry\nfold", 1),
        ("wash\n**dry**\nfold", 2),
        ("wash\ndyr\nfold", 2),
    ],
)
def test_what_is_no_step_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(NotationError) as caught:
        verify_text(text, Verifier(LAUNDRY))
    assert caught.value.line == line


@pytest.mark.parametrize(
    "text",
    [
        "wash dry fold",
        "wash\ndry\nfold",
        "1. Wash\n2) use dry\n3: FOLD",
        "- wash\n- [ ] dry\n* fold\n\n",
        "Step 1: Use wash\r\nStep 2: Use dry\r\nStep 3: Use fold",
        '["wash", "dry", "fold"]',
        '{"plan": ["wash", "dry", "fold"]}',
    ],
)
def test_the_forms(text: str) -> None:
    assert read_plan_text(text, LAUNDRY) == ("wash", "dry", "fold")


def test_decisions_of_a_chart_may_be_left_out() -> None:
    verifier = Verifier(CHART)
    assert verify_text("Wash\nDry inside", verifier).valid
    assert verify_text("Wash\nSunny? no\nDry inside", verifier).valid
    assert not verify_text("Wash\nSunny? yes\nDry inside", verifier).valid


GLUE, SAW = "Use glue on wood", "Use saw on wood"
BUILD = "Use build on the result of step {} and the result of step {}"


def test_steps_are_judged_by_the_data_flow_that_they_declare() -> None:
    for first, second in ((GLUE, SAW), (SAW, GLUE)):
        for one, two in ((1, 2), (2, 1)):
            text = f"1. {first}\n2. {second}\n3. {BUILD.format(one, two)}"
            tools = {1: first.split()[1], 2: second.split()[1]}
            assert read_plan_text(text, DESK) == ("build", tools[one], "wood", tools[two], "wood")
    for text, line in (
        (f"{GLUE}\nUse glue on the result of step 1\n{SAW}\n{BUILD.format(2, 3)}", 2),
        (f"{GLUE}\n{SAW}\n{BUILD.format(1, 1)}", 3),
        (f"{BUILD.format(2, 3)}\n{GLUE}\n{SAW}", 1),
        (f"{GLUE}\n{SAW}", 1),
        (f"{GLUE}\n{GLUE}\n{BUILD.format(2, 1)}".replace("glue on wood", "glue on saw"), 1),
    ):
        found = verify_text(text, Verifier(DESK))
        assert (found.valid, found.line) == (False, line), found.reason


def test_steps_in_another_order_than_the_calls_under_rules_about_order_are_refused() -> None:
    rules = DESK & constraint("(eventually glue)", DESK, name="glued")
    assert verify_text(f"{SAW}\n{GLUE}\n{BUILD.format(2, 1)}", Verifier(rules)).valid
    with pytest.raises(NotationError, match="write the plan as nested calls"):
        verify_text(f"{GLUE}\n{SAW}\n{BUILD.format(1, 2)}", Verifier(rules))


@pytest.mark.parametrize(
    "text",
    [
        "render(join(load_csv(events), load_sql(orders)))",
        "the_report = render(join(load_csv(events), load_sql(orders)))",
        "render( join (load_csv(events),load_sql(orders)) )",
    ],
)
def test_the_brackets_of_a_plan(text: str) -> None:
    assert read_plan_text(text, ETL) == ("render", "join", "load_csv", "events", "load_sql", "orders")
    assert verify_text(text, Verifier(ETL)).valid


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
    assert not verify_text(text, Verifier(ETL)).valid


@pytest.mark.parametrize("text", ["f(x", "f(x))", "f(,x)", "f(x,)", "f()", "f(x)(y)", "f(x), g(y)", "f(x) y"])
def test_what_is_no_call(text: str) -> None:
    with pytest.raises(NotationError) as caught:
        read_plan_text(text, CFG.from_string("%order prefix\nS -> f S S | g S | x | y"))
    assert caught.value.line == 1


def test_selections_and_what_is_nothing() -> None:
    cfg = CFG.from_string("%order prefix\nS -> pan some(salt, oil) N\nN -> ε | spoon | T\nT -> stir E\nE -> ε")
    for text, word in (
        ("pan(salt, oil)", "pan salt oil"), ("pan(oil, spoon)", "pan oil spoon"), ("pan(oil, stir)", "pan oil stir"),
        ("Step 1: Use stir\nStep 2: Use pan on oil and the result of step 1", "pan oil stir"),
    ):  # fmt: skip
        assert verify_text(text, Verifier(cfg)).valid
        assert read_plan_text(text, cfg) == tuple(word.split())
    assert not verify_text("pan(oil, salt)", Verifier(cfg)).valid


def test_sharing_and_long_calls_do_not_blow_up() -> None:
    twice = "{n}. build on the result of step {before} and the result of step {before}"
    lines = ["1. saw on wood", *(twice.format(n=n, before=n - 1) for n in range(2, 30))]
    assert verify_text("\n".join(lines), Verifier(DESK), repair=False).line == 2
    chain = CFG.from_string("%order prefix\nS -> f S | x")
    assert read_plan_text("f(" * 100 + "x" + ")" * 100, chain) == ("f",) * 100 + ("x",)
    wide = CFG.from_string("%order prefix\nS -> f A A A A\nA -> x A | ε")
    with pytest.raises(Undecided, match="too many ways"):
        read_plan_text(f"f({', '.join('x' * 150)})", wide)


def test_what_json_says_besides_the_tree_counts() -> None:
    plan = Planner(ETL, RandomLLM(2)).plan("")
    data = json.loads(plan.to_json())
    assert verify_text(plan.to_json(), Verifier(ETL)).valid
    for part in ("word", "steps", "call"):
        with pytest.raises(NotationError, match=f"contradicts itself: its {part} and its tree"):
            read_plan_text(json.dumps({**data, part: [["x"]]}), ETL)
    other = CFG.from_string(
        '%order prefix\nR "the report" -> render J\nJ -> join T T\nT -> load_csv events | load_sql orders'
    )
    one = Planner(CFG.from_string("%order prefix\nS -> f S | x"), RandomLLM(0)).plan("")
    assert "no derivation" in verify_text(plan.to_json(), Verifier(other)).reason
    assert not verify_text(one.to_json(), Verifier(ETL)).valid
    pda = PDA.from_string(
        '%start p\n%accept r\np, a, ε -> q, ε "Go"\np, a, ε -> s, ε "Run"\nq, b, ε -> r, ε\ns, c, ε -> r, ε'
    )
    made = Planner(pda, RandomLLM(0)).plan("").to_json()
    assert verify_text(made, Verifier(pda)).valid
    turned = made.replace('"Go"', '"x"').replace('"Run"', '"Go"').replace('"x"', '"Run"')
    turned = turned.replace("Step 1: Go", "Step 1: x").replace("Step 1: Run", "Step 1: Go").replace("1: x", "1: Run")
    assert not verify_text(turned, Verifier(pda)).valid


# -- charts and automata ----------------------------------------------------------------------------------------------

REFUND = Flowchart.from_mermaid(
    """flowchart TD
    start([A customer wants money back]) --> paid{Is the invoice paid?}
    paid -->|yes| check[Check the account]
    paid -->|no| refuse([Refuse.])
    check --> old{Older than 30 days?}
    old -->|yes| refuse2[Refuse.] --> tell
    old -->|no| pay[Pay back] --> tell[Tell the customer]
    """
).pda()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Check the account\nRefuse.\nTell the customer", "paid=yes check old=yes refuse2 tell"),
        ("Step 1: Refuse.", "paid=no refuse"),
        ("Is the invoice paid? no\nStep 1: Refuse.", "paid=no refuse"),
        ("is the invoice paid: yes\n1. check\n2. Use Pay back\n3. tell", "paid=yes check old=no pay tell"),
        ("paid=no refuse", "paid=no refuse"),
        ("check\npay\nrefuse\nTell the customer", "paid=yes check old=no pay refuse tell"),
        ("Tell the customer", "tell"),
        ("Check the account / Older than 30 days? no / Pay back / tell", "paid=yes check old=no pay tell"),
        ("", ""),
    ],
)
def test_flowcharts(text: str, word: str) -> None:
    assert read_plan_text(text, REFUND) == tuple(word.split())


def test_texts_of_transitions() -> None:
    pda = PDA.from_string(
        '%start p\n%accept r\np, a, ε -> q, ε "9:00: Get up"\nq, ε, ε -> s, ε "Wait."\ns, b, ε -> r, ε\nb "Go out"'
    )
    assert read_plan_text("Step 1: 9:00: Get up\nStep 2: Wait.\nStep 3: Use Go out", pda) == ("a", "b")
    prefix = PDA.from_string(f"%order prefix\n{pda}")
    assert read_plan_text("1) b\n2) wait.\n3) 9:00: get up", prefix) == ("a", "b")
    assert read_plan_text("a b", prefix) == ("a", "b")


def test_names_in_a_row_are_a_word_though_steps_without_a_name_are_left_out() -> None:
    pda = PDA.from_string('%start p\n%accept r\np, ε, ε -> q, ε "Wait."\nq, a, ε -> s, ε\ns, a, ε -> r, ε')
    for text, valid in (("a a", True), ("a / a", True), ("a\na", False), ("Wait.\na\na", True), ("a / a / a", False)):
        assert verify_text(text, Verifier(pda)).valid == valid
    told = CFG.from_string('S -> pot "Cook" | a S')
    for text, valid in (("pot", True), ("Cook", True), ("a / pot", True), ("a\nCook", True), ("pot / a", False)):
        assert verify_text(text, Verifier(told)).valid == valid


def test_the_text_of_a_step_tells_which_one_it_is_and_a_name_does_not() -> None:
    days = PDA.from_string("""
        %order prefix
        %start 3
        %accept 0
        {t}, eat, ε -> {t-1}, ε "{t-1}:00: Eat" for t in 1..3
        {t}, read, ε -> {t-1}, ε "{t-1}:00: Read" for t in 1..3
    """)
    verifier = Verifier(days)
    for text in ("0:00: Eat\n1:00: Read\n2:00: Eat", "eat\nread\neat"):
        assert verify_text(text, verifier).word == ("eat", "read", "eat")
    found = verify_text("0:00: Eat\n0:00: Read\n2:00: Eat", verifier)
    assert (found.valid, found.line) == (False, 2)
    assert found.reason.endswith("there could stand: 1:00: Eat / 1:00: Read")
    assert "a step is missing after this one" in verify_text("0:00: Eat", verifier).reason


def test_names_by_name_by_label_and_by_answer() -> None:
    assert find_names("Use check the account", REFUND) == find_names("check", REFUND) == ("check",)
    assert find_names("Is the invoice paid? yes", REFUND) == ("paid=yes",)
    assert find_names("yes", REFUND) == ("paid=yes", "old=yes")
    assert find_names("fly", REFUND) == ()


def test_labels_and_names_that_may_be_several() -> None:
    same = CFG.from_string('S -> a | b\na "Same"\nb "Same"')
    with pytest.raises(NotationError, match="may be a or b"):
        read_plan_text("Same", same)
    turned = CFG.from_string('S -> a b\na "b"\nb "a"')
    with pytest.raises(NotationError, match="is the label of a and the name of b") as caught:
        read_plan_text("b\na", turned)
    assert caught.value.line == 1
    assert read_plan_text("Step 1: Use b\nStep 2: Use a", turned) == read_plan_text("a b", turned) == ("a", "b")
    for text, word in (("Step 1: Use a", "a"), ("Step 1: Use Use a", "b"), ("b", "b")):
        assert read_plan_text(text, CFG.from_string('S -> a | b "Go" | b\nb "Use a"')) == (word,)
    capitals = CFG.from_string("S -> A | a b")
    assert not verify_text("a", Verifier(capitals)).valid
    assert verify_text("A", Verifier(capitals)).valid


# -- texts of productions ---------------------------------------------------------------------------------------------

TEA = CFG.from_string("""
    %order prefix
    Tea -> cup Leaves Hot "Pour the water over the leaves"
    Hot -> kettle Water "Boil the water" | Thermos
    Water -> water | rain "Fetch the rain"
    Thermos -> open thermos
    Leaves -> spoon some(black, green, mint) "Measure the leaves"
    mint "fresh mint"
""")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (
            "Step 1: Fetch the rain\nStep 2: Boil the water\nStep 3: Measure the leaves: black, fresh mint\n"
            "Step 4: Pour the water over the leaves",
            "cup spoon black mint kettle rain",
        ),
        (
            "1. boil the water: WATER\n2. measure the leaves: mint\nPour the water over the leaves",
            "cup spoon mint kettle water",
        ),
        ("Open on thermos\nMeasure the leaves: green\nPour the water over the leaves", "cup spoon green open thermos"),
        ("thermos / open / green / spoon / cup", "cup spoon green open thermos"),
    ],
)  # fmt: skip
def test_texts_speak_for_what_is_in_their_production(text: str, word: str) -> None:
    assert read_plan_text(text, TEA) == tuple(word.split())


@pytest.mark.parametrize(
    ("text", "line", "reason", "changes"),
    [
        (
            "Boil the water: water\nPour the water over the leaves", 2,
            "no plan has this step there after line 1; there could stand: Measure the leaves: …",
            ("insert after line 1: Measure the leaves: ",),
        ),
        (
            "Boil the water: water\nMeasure the leaves: mint\nMeasure the leaves: mint\nPour the water over the leaves",
            3,
            "no plan has this step there after line 2; there could stand: Pour the water over the leaves",
            ("take out line 2: Measure the leaves: mint", "take out line 3: Measure the leaves: mint"),
        ),
        (
            "Boil the water: water\nMeasure the leaves: mint", 2, "a step is missing after this one",
            ("insert after line 2: Pour the water over the leaves",),
        ),
        (
            "Measure the leaves: mint\nPour the water over the leaves\nBoil the water: water", 1,
            "no plan begins with this step", ("insert", "take out line 3: Boil the water: water"),
        ),
    ],
)  # fmt: skip
def test_a_wrong_recipe_is_not_valid_and_gets_edits(
    text: str, line: int, reason: str, changes: tuple[str, ...]
) -> None:
    found = verify_text(text, Verifier(TEA))
    assert (found.valid, found.line) == (False, line)
    assert reason in found.reason
    assert TEA.accepts(found.nearest or ())
    assert verify_text("\n".join(found.steps), Verifier(TEA)).word == found.nearest
    assert any(one.startswith(change) for one in found.changes for change in changes), found.changes


def test_limits_on_what_a_text_speaks_for() -> None:
    verifier = Verifier(TEA, Limits({"mint": 0}))
    found = verify_text(
        "Boil the water: water\nMeasure the leaves: fresh mint\nPour the water over the leaves", verifier
    )
    assert (found.valid, found.line, found.limits) == (False, 2, ("%limit 0 mint",))
    assert found.nearest is not None and "mint" not in found.nearest


def test_results_of_steps_tell_which_is_meant() -> None:
    cfg = CFG.from_string('%order prefix\nS -> join T T | T\nT -> knife x "Cut" | fold U\nU -> x | y')
    text = "Step 1: Cut\nStep 2: Use fold on y\nStep 3: Use join on the result of step {} and the result of step {}"
    assert read_plan_text(text.format(2, 1), cfg) == ("join", "fold", "y", "knife", "x")
    assert read_plan_text(text.format(1, 2), cfg) == ("join", "knife", "x", "fold", "y")
    assert not verify_text(text.format(2, 2), Verifier(cfg)).valid


def test_steps_of_which_there_are_very_many_words_are_decided() -> None:
    """A text that speaks for one of thousands of words: none is listed, and no bound makes a verdict certain."""
    many = " ".join(f"(a{n} | b{n})" for n in range(14))
    cfg = CFG.from_string(f'%order prefix\nS -> go T "Go" | stop "Stop"\nT -> {many} "Try"')
    assert not verify_text("Go\nGo", Verifier(cfg), repair=False).valid
    assert verify_text("Stop", Verifier(cfg), repair=False).valid


def test_labels_with_on_and_and_in_them() -> None:
    cfg = CFG.from_string('%order prefix\nS -> a I J\na "Sum on and off"\nI -> x\nJ -> x\nx "salt and pepper"')
    text = "Step 1: Use Sum on and off on salt and pepper and salt and pepper"
    assert read_plan_text(text, cfg) == ("a", "x", "x")
    result = CFG.from_string('%order prefix\nS -> a X X\nX -> c | b c\nc "the result of step 1"')
    for text, word in (
        ("Step 1: Use a on the result of step 1 and the result of step 1", "a c c"),
        ("Step 1: Use b on the result of step 1\nStep 2: Use a on the result of step 1 and the result of step 1", None),
    ):
        found = verify_text(text, Verifier(result))
        assert found.valid and found.word in (
            [("a", "c", "c")] if word else [("a", "c", "b", "c"), ("a", "b", "c", "c")]
        )


@pytest.mark.filterwarnings("ignore:.*can become")
def test_long_plans() -> None:
    long = CFG.from_string('S -> a S "Do a" | b S "Do b" | c')
    lines = ["Do a", "Do b"] * 100
    assert read_plan_text("\n".join([*lines, "Use c"]), long) == (*["a", "b"] * 100, "c")
    many = CFG.from_string('%order prefix\nS -> S S | S T | T | ε\nT -> a "Do"')
    assert read_plan_text("\n".join(["Do"] * 20), many) == ("a",) * 20
