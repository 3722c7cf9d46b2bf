import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import keeps, language
from strategies import LETTERS, examples, limited_grammars, tool_grammars

from formal_llm import (
    CFG,
    PDA,
    EditWeights,
    FormalLLMError,
    Limits,
    Lookahead,
    NotationError,
    Plan,
    Planner,
    RandomLLM,
    TaskPack,
    Verification,
    Verifier,
    read_plan_text,
    verify,
)

UP_TO = 6
words = st.lists(st.sampled_from((*LETTERS, "z")), max_size=4).map(tuple)
DAY = CFG.from_string('Day -> eat Day | Day2\nDay2 -> wash_up sleep\neat "Eat"\nwash_up "Wash up"\n%limit 2 eat')


@pytest.fixture(scope="module")
def pack():
    return TaskPack.load("openagi")


class TestAgainstAllShortWords:
    @given(limited_grammars() | tool_grammars(), words)
    @examples(80)
    def test_verdicts(self, cfg, word):
        within = {w for w in language(cfg, UP_TO) if keeps(w, cfg.limits, cfg.terminals, cfg.symbols)}
        found = verify(word, cfg)
        assert found.valid == bool(found) == (word in within)
        assert found.decided
        if found.valid:
            assert (found.position, found.nearest, found.edits, found.distance) == (None, word, (), 0)
            return
        # Whatever a short word shares with this one comes before the place, and goes on in an allowed way.
        for other in within:
            shared = next((n for n, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), None)
            shared = min(len(word), len(other)) if shared is None else shared
            assert shared <= found.position
            if shared == found.position:
                assert other[shared] in found.allowed if len(other) > shared else found.may_stop
        if found.position < len(word):
            assert word[found.position] not in found.allowed
        else:
            assert not found.may_stop
        if found.nearest is not None:
            assert Lookahead(cfg).automaton.accepts(found.nearest)
            assert found.distance == len(found.edits) > 0
        else:
            assert not within
        # The limits to blame are the grammar's, and without them nothing else is different.
        every = Lookahead(cfg).automaton.counters.bounds if cfg.limits else ()
        assert set(found.limits) <= {bound.line for bound in every}

    @given(limited_grammars(), words)
    @examples(60)
    def test_the_limits_to_blame_forbid_the_place_by_themselves_and_none_is_too_many(self, cfg, word):
        found = verify(word, cfg)
        if not found.limits or found.position is None or found.reason.startswith("no plan"):
            return
        only = cfg.limits
        for bound in Lookahead(cfg).automaton.counters.bounds:
            if bound.line not in found.limits:
                only = only.without(bound.line)
        assert verify(word, cfg.with_limits(only)).position == found.position
        for line in found.limits:
            less = verify(word, cfg.with_limits(only.without(line)))
            assert less.valid or less.position > found.position or found.position == len(word)


class TestWhatItSays:
    def test_valid(self):
        found = verify(["eat", "wash_up", "sleep"], DAY)
        assert found == Verification(
            ("eat", "wash_up", "sleep"), True, "it follows all the rules", may_stop=True, distance=0,
            nearest=("eat", "wash_up", "sleep"),
        )  # fmt: skip
        assert str(found) == "valid: it follows all the rules"

    @pytest.mark.parametrize(
        ("word", "position", "allowed", "limits", "reason"),
        [
            ("eat sleep", 1, "eat wash_up", [], "sleep cannot stand at place 2; Eat or Wash up could stand there"),
            ("eat wash_up", 2, "sleep", [], "it ends too early; sleep could come next"),
            ("", 0, "eat wash_up", [], "it is empty; Eat or Wash up could come next"),
            ("wash_up sleep eat", 2, "", [], "Eat cannot stand at place 3; the plan must end there"),
            ("wash_up slep", 1, "sleep", [],
             "'slep' at place 2 is no terminal (did you mean sleep?); sleep could stand there"),
            ("eat eat eat", 2, "wash_up", ["%limit 2 eat"],
             "Eat cannot stand at place 3 because of %limit 2 eat; Wash up could stand there"),
        ],
    )  # fmt: skip
    def test_not_valid(self, word, position, allowed, limits, reason):
        found = verify(word.split(), DAY)
        assert not found.valid
        assert (found.position, found.allowed, list(found.limits)) == (position, tuple(allowed.split()), limits)
        assert found.reason == reason

    def test_the_nearest_plan_and_its_edits(self):
        found = verify(["eat", "eat", "eat", "sleep"], DAY)
        assert found.nearest == ("eat", "eat", "wash_up", "sleep")
        assert str(found).splitlines()[1:] == [
            "nearest valid plan: eat eat wash_up sleep",
            "  replace eat at place 3 by wash_up",
        ]
        dear = verify(["eat", "eat", "eat", "sleep"], DAY, weights=EditWeights(substitute=3))
        assert (dear.distance, sorted(edit.kind for edit in dear.edits)) == (2, ["delete", "insert"])

    def test_lower_bounds(self):
        found = verify(["wash_up", "sleep"], DAY, limits=Limits(at_least={"eat": 1}))
        # The required terminal has no place after the first symbol, so that is where the plan goes wrong.
        assert (found.position, found.limits) == (0, ("%require 1 eat",))
        free = CFG.from_string("S -> a S | b S | ε")
        found = verify(["b"], free, limits=Limits(at_least={"a": 1}))
        assert found.reason == "it ends too early because of %require 1 a; a or b could come next"

    def test_limits_that_clash_further_on(self):
        cfg = CFG.from_string("S -> a T T | b T\nT -> c | d")
        found = verify(["a", "c", "d"], cfg, limits=Limits({"c": 1, "d": 0}))
        assert (found.position, found.allowed, found.limits) == (0, ("b",), ("%limit 1 c", "%limit 0 d"))

    def test_an_empty_language(self):
        found = verify(["a"], CFG.from_string("S -> a b"), limits=Limits({"b": 0}))
        assert (found.position, found.allowed, found.nearest, found.distance) == (0, (), None, float("inf"))
        assert found.reason == "no plan is valid: these limits clash: %limit 0 b"
        assert json.loads(json.dumps(found.to_dict()))["distance"] is None

    def test_a_budget_that_is_too_small_is_said(self):
        names = [f"t{number}" for number in range(8)]
        cfg = CFG([("S", ("T", "S", "S")), ("S", ())] + [("T", (name, other)) for name in names for other in names])
        limits = Limits(default=2, at_least=dict.fromkeys(names, 1))
        found = Verifier(cfg, limits, max_states=1).verify(["t0", "t0", "t0"])
        assert not found.valid
        assert not (found.decided and found.nearest_decided)
        assert found.position is None or found.position <= 2


class TestVerifier:
    def test_plans_of_the_planner_are_valid(self, pack):
        verifier = Verifier(pack.cfg)
        for number in range(0, 185, 20):
            plan = Planner(pack.cfg, RandomLLM(number), wording=pack.wording).plan(pack.tasks[number])
            assert verifier.verify(plan).valid
            assert read_plan_text(str(plan), pack.cfg) == plan.word

    def test_without_a_nearest_plan(self):
        found = Verifier(DAY).verify(["eat"], repair=False)
        assert (found.nearest, found.distance, found.nearest_decided, found.decided) == (None, None, False, True)

    def test_automata_and_limits_on_top(self):
        pda = PDA([("p", "a", None, "p"), ("p", "b", None, "q")], start="p", accepting=["q"])
        assert verify(tuple("aab"), pda, limits=Limits({"a": 2})).valid
        assert verify(tuple("aaab"), pda, limits=Limits({"a": 2})).position == 2

    def test_a_text_is_no_word(self):
        with pytest.raises(TypeError, match="read_plan_text"):
            verify("eat sleep", DAY)


class TestReadPlanText:
    @pytest.mark.parametrize(
        "text",
        [
            "eat\nwash_up\nsleep",
            "eat wash_up sleep",
            "Step 1: Use Eat\nStep 2: Use Wash up\n\nStep 3: Use sleep",
            "1. Eat.\n2) wash  UP\n3: use sleep",
            "- eat\n- Wash up\n- sleep\n",
            '["eat", "Wash up", "sleep"]',
            '{"word": ["eat", "wash_up", "sleep"]}',
        ],
    )
    def test_flat_forms(self, text):
        assert read_plan_text(text, DAY) == ("eat", "wash_up", "sleep")

    def test_nested_forms(self, pack):
        steps = "1. Image Denoising on the input image\n2. Image captioning on the output of step 1."
        word = ("captioning", "denoising", "input_image")
        assert read_plan_text(steps, pack.cfg) == word
        assert read_plan_text("text = captioning(denoising(input_image))", pack.cfg) == word
        two = steps + "\n3. Visual Question Answering on the input image and the result of step 2"
        assert read_plan_text(two, pack.cfg) == ("visual_question_answering", "input_image", *word)

    def test_json_of_a_plan(self, pack):
        plan = Planner(pack.cfg, RandomLLM(3), wording=pack.wording).plan(pack.tasks[3])
        assert read_plan_text(plan.to_json(), pack.cfg) == plan.word == Plan.from_json(plan.to_json()).word

    def test_labels_with_on_and_and_in_them(self):
        cfg = CFG.from_string('S -> a I J\na "Sum on and off"\nI -> x\nJ -> x\nx "salt and pepper"')
        text = "Step 1: Use Sum on and off on salt and pepper and salt and pepper"
        assert read_plan_text(text, cfg) == ("a", "x", "x")

    def test_nothing_is_the_empty_word(self):
        assert read_plan_text(" \n", DAY) == ()

    @pytest.mark.parametrize(
        ("text", "line", "problem"),
        [
            ("eat\nWash upp", 2, r"unknown step: Wash upp \(did you mean Wash up\?\)"),
            ("eat wash_up slep", 1, r"unknown step: slep \(did you mean sleep\?\)"),
            ("Step 1: Use quux", 1, "unknown step: quux"),
            ("1. Eat on the result of step 2\n2. sleep", 1, "there is no step 2 before this one"),
            ("1. sleep\n2. Eat\n3. Eat on the result of step 1", 2, "the result of step 2 is not used"),
            ("{", None, "neither the JSON of a plan nor a list of names"),
            ('{"word": 3}', None, "a plan in JSON is a list of names"),
            ('["quux"]', None, "unknown step: quux"),
        ],
    )
    def test_what_cannot_be_read(self, text, line, problem):
        with pytest.raises(NotationError, match=problem) as caught:
            read_plan_text(text, DAY)
        assert caught.value.line == line

    def test_a_label_that_two_terminals_share(self):
        cfg = CFG.from_string('S -> a | b\na "Same"\nb "Same"')
        with pytest.raises(NotationError, match="may be a or b"):
            read_plan_text("Same", cfg)

    def test_sharing_does_not_blow_up(self):
        twice = "{n}. Eat on the result of step {before} and the result of step {before}"
        lines = ["1. sleep", *(twice.format(n=n, before=n - 1) for n in range(2, 60))]
        with pytest.raises(FormalLLMError, match="more than 10,000 terminals"):
            read_plan_text("\n".join(lines), DAY)
