"""Task packs, and OpenAGI as the first of them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from formal_llm import CFG, Limits, Planner, RandomLLM, TaskPack
from formal_llm.automata.languages.grammar_warnings import cfg_warnings
from formal_llm.automata.models.limits import SumLimit
from formal_llm.errors import AutomatonError, GrammarError, NotationError, NoValidPlan, ResourceNotFound
from formal_llm.planning.drivers.results import run_of
from formal_llm.planning.packs import SHAPE, apply_limits, compose_texts
from tests.cli.program import run

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "openagi" / "task_description.txt"


@pytest.fixture(scope="module")
def openagi() -> TaskPack:
    return TaskPack.load("openagi")


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the benchmark's task list is not beside the checkout")
def test_the_composed_tasks_are_the_benchmark_s_in_order_and_words(openagi: TaskPack) -> None:
    lines = PUBLISHED.read_text(encoding="utf-8").splitlines()
    assert [task.description for task in openagi.tasks] == [line.strip() for line in lines]


def test_the_tasks_and_their_kinds(openagi: TaskPack) -> None:
    assert len(openagi.tasks) == len({task.description for task in openagi.tasks}) == 185
    groups = [task.group for task in openagi.tasks]
    assert [groups.count(f"Task {name}") for name in "123X"] == [2, 100, 15, 68]
    assert openagi.tasks[0].description.startswith("Given low-resolutioned noisy blurry grayscale image, how to return")
    assert openagi.tasks[184].description.startswith("Given English document and English query")


def test_the_paper_s_split(openagi: TaskPack) -> None:
    assert openagi.splits["training"] == [7, 20, 30, 40, 50, 60, 0, 105, 110, 116, 117, 175, 182]
    assert openagi.splits["test"] == [2, 3, 10, 15, 20, 35, 45, 55, 65, 70, 90, 106, 112, 115, 118, 177, 179]
    assert len(openagi.split("test")) == 17
    assert openagi.split("all") == openagi.tasks
    with pytest.raises(ResourceNotFound, match="training"):
        openagi.split("trainning")


@pytest.mark.parametrize(
    ("number", "inputs", "goal"),
    [
        (0, ("image",), "image_plan"),
        (15, ("image",), "text_plan"),
        (105, ("text",), "image_plan"),
        (108, ("text",), "text_plan"),
        (117, ("image", "text"), "text_plan"),
        (184, ("text",), "text_plan"),
    ],
)
def test_inputs_and_goal_are_found_from_the_sentence(
    openagi: TaskPack, number: int, inputs: tuple[str, ...], goal: str
) -> None:
    task = openagi.task(number)
    assert (task.inputs, task.goal) == (inputs, goal)
    missing = {f"input_{name}": 0 for name in ("image", "text") if name not in inputs}
    assert task.limits == Limits(at_most=missing)


def test_inputs_and_goal_can_be_given(openagi: TaskPack) -> None:
    task = openagi.read("Make something of it", inputs=["text"], goal="image")
    assert (task.inputs, task.goal) == (("text",), "image_plan")
    plan = Planner(openagi.cfg, "test:first").plan(task)
    assert "text_to_image" in plan.word
    assert "input_image" not in plan.word
    with pytest.raises(ResourceNotFound, match="image"):
        openagi.read("x", inputs=["imgae"])
    with pytest.raises(ResourceNotFound, match="goal"):
        openagi.read("x", goal="sound")


def test_a_sentence_that_tells_nothing_leaves_all_open(openagi: TaskPack) -> None:
    task = openagi.read("Surprise me")
    assert task.goal is None
    assert task.inputs == ("image", "text")
    assert not task.limits


def test_tasks_by_number_or_sentence(openagi: TaskPack) -> None:
    assert openagi.task(3) == openagi.task("3") == openagi.tasks[3]
    assert openagi.task(openagi.tasks[3].description).goal == openagi.tasks[3].goal
    with pytest.raises(ResourceNotFound, match="0 to 184"):
        openagi.task(185)


def test_every_goal_needs_at_least_one_tool_and_all_fifteen_are_there(openagi: TaskPack) -> None:
    tools = set(openagi.cfg.terminals) - {"input_image", "input_text"}
    assert len(tools) == 15
    for goal in ("text_plan", "image_plan"):
        cfg = openagi.cfg.with_start(goal)
        assert not cfg.accepts(["input_image"])
        assert not cfg.accepts(["input_text"])
    assert not cfg_warnings(openagi.cfg)


def write_pack(folder: Path, pack: str, grammar: str = "S -> a | b") -> Path:
    folder.mkdir()
    (folder / "pack.toml").write_text(pack, encoding="utf-8")
    (folder / "g.cfg").write_text(grammar, encoding="utf-8")
    return folder


def test_a_pack_of_ones_own(tmp_path: Path) -> None:
    folder = write_pack(
        tmp_path / "mine",
        'title = "Mine"\nrules = "g.cfg"\n[slots]\nx = ["one", "two"]\ny = {subsets = ["p", "q"]}\n'
        '[[groups]]\nname = "G"\ntext = "Do {x} with {y}"\nslots = ["x", "y"]\n',
    )
    (folder / "wording.toml").write_text('step = "{text}!"', encoding="utf-8")
    pack = TaskPack.load(str(folder))
    assert pack.name == "mine"
    assert pack.wording.step == "{text}!"
    assert [task.description for task in pack.tasks] == [
        "Do one with p q", "Do one with q", "Do one with p", "Do two with p q", "Do two with q", "Do two with p",
    ]  # fmt: skip
    assert Planner(pack.cfg, "test:first").plan(pack.task(0)).word == ("a",)


def test_what_is_wrong_with_a_pack_is_told_with_the_file(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match="Did you mean 'openagi'"):
        TaskPack.load("openagy")
    with pytest.raises(NotationError, match="rules"):
        TaskPack.load(str(write_pack(tmp_path / "a", 'title = "A"')))
    with pytest.raises(NotationError, match="not TOML"):
        TaskPack.load(str(write_pack(tmp_path / "b", "title =")))
    with pytest.raises(GrammarError, match=r"g\.cfg"):
        TaskPack.load(str(write_pack(tmp_path / "c", 'title = "C"\nrules = "g.cfg"', "S = a")))
    empty = tmp_path / "d"
    empty.mkdir()
    with pytest.raises(NotationError, match="this folder is no task pack: it has no pack"):
        TaskPack.load(str(empty))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[sentence]\npattern = "given (?P<given>.*)"', "wanted"),
        ('[sentence]\npattern = "("', "cannot be read"),
        ('[inputs.x]\nterminal = "c"', "unknown terminal: c"),
        ("[inputs.x]\n", "terminal"),
        ('[goals.x]\nsymbol = "SS"', "did you mean S"),
        ('[[groups]]\nname = "G"\ntext = "Do {y}"\nslots = ["y"]', "unknown slot: y"),
        ('[slots]\ny = ["1"]\n[[groups]]\nname = "G"\ntext = "Do {z}"\nslots = ["y"]', "placeholder {z}"),
        ('[slots]\ny = []\n[[groups]]\nname = "G"\ntext = "Do {y}"\nslots = ["y"]', "slot is empty"),
        ('[[groups]]\nname = "G"\ntext = "Do"\n[splits]\ntest = [1]', "numbered from 0 to 0"),
        ('task = "Do {it}"', "placeholder {it}"),
        ('[[constraints]]\nname = "never"\nformula = "(not (eventually aa))"', "constraint 'never'"),
        ('[[constraints]]\nname = "odd"\nformula = "(until {x} b)"', "placeholder {x}"),
        ('[[constraints]]\nname = "no formula"', "the key 'formula' is missing"),
    ],
)
def test_what_cannot_work_in_a_pack_is_told_when_it_is_loaded(more: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(NotationError) as caught:
        folder = write_pack(tmp_path / "p", f'title = "P"\nrules = "g.cfg"\n{more}\n')
        TaskPack.load(str(folder))
    assert said in str(caught.value)
    assert "pack.toml" in str(caught.value)


CHART = 'flowchart TD\n  q{"Shall {who} go?"} -->|Yes| go["{who} goes"]\n  q -->|No| stay["{who} stays"]\n'


def test_a_pack_of_a_flowchart_with_facts_and_constraints(tmp_path: Path) -> None:
    pack = 'title = "T"\nrules = "chart.mmd"\ntask = "Advise {who}."\n[facts]\nwho = "Ann"\n'
    pack += '[names]\nno = "q=no"\n[[constraints]]\nname = "nobody stays"\nformula = "(not (eventually {no}))"\n'
    folder = write_pack(tmp_path / "p", pack)
    (folder / "chart.mmd").write_text(CHART, encoding="utf-8")
    loaded = TaskPack.load(str(folder), {"who": "Bob"})
    assert loaded.task("").description == "Advise Bob."
    assert [str(step) for step in loaded.planner("test:first").plan(loaded.task("")).steps] == ["Step 1: Bob goes"]
    assert [one.name for one in loaded.constraints] == ["nobody stays"]
    with pytest.raises(NoValidPlan, match="nobody stays"):
        loaded.planner(limits=Limits({"q=yes": 0})).plan("t")
    with pytest.raises(AutomatonError, match="no grammar"):
        _ = loaded.cfg
    with pytest.raises(ResourceNotFound, match="who"):
        TaskPack.load(str(folder), {"whom": "Bob"})
    (folder / "pack.toml").write_text('title = "T"\nrules = "chart.mmd"\n', encoding="utf-8")
    with pytest.raises(NotationError, match=r"no value for \{who\}"):
        TaskPack.load(str(folder))
    (folder / "pack.toml").write_text(f'{pack}[goals.x]\nsymbol = "q"\n', encoding="utf-8")
    with pytest.raises(NotationError, match="grammar"):
        TaskPack.load(str(folder))


@pytest.mark.parametrize("name", ["openagi", "daily", "cooking"])
def test_a_pack_is_a_value(name: str) -> None:
    pack = TaskPack.load(name)
    for same in (pickle.loads(pickle.dumps(pack)), copy.deepcopy(pack), TaskPack.load(name)):
        assert same == pack
        assert hash(same) == hash(pack)
        assert same.tasks == pack.tasks
    plan = pack.planner(RandomLLM(1)).plan(pack.task(0) if pack.tasks else pack.task(""))
    assert pickle.loads(pickle.dumps(pack)).planner(RandomLLM(1)).plan(plan.task).task == plan.task


def test_a_wording_is_a_value() -> None:
    wording = TaskPack.load("cooking").wording
    for same in (pickle.loads(pickle.dumps(wording)), copy.deepcopy(wording)):
        assert same == wording
        assert hash(same) == hash(wording)


GRAMMAR = 'S -> fry S | wash S | rest\nfry "Fry" minutes=5\nwash minutes=2\n%limit 4 fry\n'


def pack_of(folder: Path, more: str, rules: str = GRAMMAR, ending: str = ".cfg") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"rules{ending}").write_text(rules, encoding="utf-8")
    (folder / "pack.toml").write_text(f'title = "P"\nrules = "rules{ending}"\n{more}', encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("more", "line", "said"),
    [
        ('[[constraint]]\nname = "n"\nformula = "fry"\n', 3, "did you mean constraints?"),
        ("[limit]\n", 3, "did you mean limits?"),
        ("[limits]\nfry = 1\n", 4, "unknown key in limits: fry"),
        ("[limits]\nat_most = {fyr = 1}\n", 4, "did you mean fry?"),
        ("[limits]\n\nat_least = {fry = -1}\n", 3, "whole number from 0, not -1"),
        ("[limits.sums.minuts]\nat_most = 3\n", 3, "did you mean minutes?"),
        ("[limits.sums.minutes]\nmost = 3\n", 4, "did you mean at_most?"),
        ('[[constraints]]\nname = "n"\nforumla = "fry"\n', 5, "did you mean formula?"),
        ('[[groups]]\nname = "G"\ntext = "t"\nslot = []\n', 6, "did you mean slots?"),
        ('[inputs.x]\nterminal = "fry"\nword = ["a"]\n', 5, "did you mean words?"),
        ('[inputs.x]\nterminal = "fyr"\n', 4, "did you mean fry?"),
        ('[sentence]\npattern = "(?P<given>.)(?P<wanted>.)"\notherwise = "text"\n', 5, "unknown goal: text"),
        ('[kinds]\nfyr = "text"\n', 4, "did you mean fry?"),
        ('task = "Do {it}"\n', 3, "placeholder {it}"),
        ('[names]\nx0 = "(or fry wash)"\n'
         + "".join(f'x{n + 1} = "(or {{x{n}}} {{x{n}}})"\n' for n in range(40)), 20, "1,000,000 are allowed"),
    ],
)  # fmt: skip
def test_nothing_is_passed_over(more: str, line: int, said: str, tmp_path: Path) -> None:
    folder = pack_of(tmp_path / "p", more)
    with pytest.raises(NotationError) as caught:
        TaskPack.load(str(folder))
    assert said in str(caught.value)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{folder / 'pack.toml'}:{line}:")


def test_limits_of_a_pack_narrow_those_of_its_rules(tmp_path: Path) -> None:
    more = '[limits]\ndefault = 3\nat_most = {rest = "*", fry = 9}\nat_least = {wash = 1}\n'
    pack = TaskPack.load(str(pack_of(tmp_path / "p", more + "[limits.sums.minutes]\nat_most = 12\n")))
    limits = pack.source.limits
    assert {name: limits.most(name) for name in ("fry", "wash", "rest")} == {"fry": 4, "wash": 3, "rest": None}
    assert (limits.at_least, limits.sums) == ({"wash": 1}, (SumLimit("minutes", at_most=12),))
    for seed in range(30):
        word = pack.planner(RandomLLM(seed)).plan("cook").word
        assert pack.source.accepts(word)
        assert word.count("wash") >= 1
        assert 5 * word.count("fry") + 2 * word.count("wash") <= 12


def test_limits_of_a_pack_are_known_to_check_verify_and_the_fingerprint(tmp_path: Path) -> None:
    free = pack_of(tmp_path / "free", "")
    bound = pack_of(tmp_path / "bound", "[limits]\nat_least = {fry = 2}\nat_most = {wash = 0}\n")
    told = run("check", str(bound), cwd=tmp_path).stdout
    assert "limit 0 wash" in told
    assert "require 2 fry" in told
    for name, code in (("free", 0), ("bound", 1)):
        (tmp_path / "plan.txt").write_text("rest")
        assert run("verify", name, "plan.txt", cwd=tmp_path).returncode == code
    fingerprints = {run_of(TaskPack.load(str(folder)).planner("test:first"))["run"] for folder in (free, bound)}
    assert len(fingerprints) == 2


def test_limits_that_leave_no_plan(tmp_path: Path) -> None:
    folder = pack_of(tmp_path / "p", "[limits]\nat_least = {fry = 5}\n")
    with pytest.raises(NoValidPlan, match="%require 5 fry"):
        TaskPack.load(str(folder)).planner("test:first").plan("t")
    assert run("check", str(folder), cwd=tmp_path).stdout.count("no valid plan") == 1


@pytest.mark.parametrize(
    ("ending", "rules", "name"),
    [
        (".pda", "p, a, ε -> p, ε\np, b, ε -> q, ε\n%accept q\n", "a"),
        (
            ".mmd",
            "flowchart TD\n  Start([Start]) --> go\n  go --> q{Again?}\n  q -->|yes| go\n  q -->|no| stop_it\n",
            "go",
        ),
        (".agent", '(define d (:states (A (:text "a")) (B (:text "b"))) (:behavior (until A B)))', "A"),
    ],
)
def test_any_rules_can_be_limited(ending: str, rules: str, name: str, tmp_path: Path) -> None:
    folder = pack_of(tmp_path / "p", f"[limits]\nat_least = {{{name} = 2}}\nat_most = {{{name} = 3}}\n", rules, ending)
    pack = TaskPack.load(str(folder))
    for seed in range(20):
        assert pack.planner(RandomLLM(seed)).plan("t").word.count(name) in (2, 3)


def test_the_shipped_packs_have_the_shape() -> None:
    assert set(SHAPE.needed) <= set(SHAPE.known)
    for name in ("openagi", "daily", "cooking", "risk"):
        assert set(TaskPack.load(name).data) <= set(SHAPE.known)


def test_tasks_are_composed_of_slots() -> None:
    assert list(compose_texts("{a}{b}", ["a", "b"], {"a": ["x", "y"], "b": {"subsets": ["1", "2"]}})) == [
        "x1 2", "x2", "x1", "y1 2", "y2", "y1",
    ]  # fmt: skip
    assert isinstance(TaskPack.load("cooking").source, CFG)


def test_limits_of_a_pack_hold_times_and_amounts_as_they_are_written() -> None:
    rules = CFG.from_string("%order forward\nS -> shop S | nap\nshop time=45min cost=€5\nnap time=15min")
    table = {
        "sums": {"time": {"at_most": "2h"}, "cost": {"exactly": "€10"}},
        "times": ["%clock time 8:00-20:00", "%window shop 8:00-9:45"],
    }
    limits = apply_limits(rules, table).limits
    assert limits.lines() == [
        "%limit cost = €10",
        "%limit time <= 2h",
        "%clock time 8:00-20:00",
        "%window shop 8:00-9:45",
    ]
