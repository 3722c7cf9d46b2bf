"""Tasks, prompts and rewards for trainers of others."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Planner, Question, RandomLLM, Task, TaskPack
from formal_llm.errors import InvalidAnswer, NoValidPlan, RewardError, TooManyPlans, Undecided
from formal_llm.packs.openagi.references import openagi_reward
from formal_llm.planning import Plan, Wording
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.episode import Decision, Episode
from formal_llm.rltf.export import (
    INSTRUCTION,
    completion_reward,
    read_completion,
    walk_messages,
    walk_prompt,
    write_completions,
    write_tasks,
)
from formal_llm.rltf.reward_cache import CachedReward
from formal_llm.rltf.rewards import Judged
from tests import strategies
from tests.strategies import examples

PACK = TaskPack.load("openagi")
PLANNER = PACK.planner("test:first")
TASKS = PACK.split("training")
REWARD = openagi_reward()
MENU = CFG.from_string("%start S\nS -> some(soup, fish, cake) drink\ndrink -> tea | milk")


def made(planner: Planner, task: Task, seed: int) -> Episode:
    """A plan that was made at random, with its decisions."""
    decisions: list[Decision] = []
    walk = planner.start(task)
    rng = random.Random(seed)
    while (question := walk.question) is not None:
        number = rng.randint(1, len(question.options))
        decisions.append(Decision(question, number))
        walk.answer(number)
    return Episode(TASKS.index(task), task, walk.plan, tuple(decisions))


def completion_of(episode: Episode) -> str:
    return " ".join(str(decision.number) for decision in episode.decisions)


EPISODES = [made(PLANNER, task, seed) for seed, task in enumerate(TASKS * 3)]


# -- prompts -------------------------------------------------------------------------------------------------------


def test_a_prompt_has_rules_task_first_question_and_what_is_wanted() -> None:
    task = TASKS[0]
    system, user = walk_messages(PLANNER, task)
    assert (system.role, user.role) == ("system", "user")
    assert 'I "image" -> A I | C T | input_image' in system.content
    first = PLANNER.start(task).question
    assert first is not None
    assert task.description in user.content
    for option in first.options:
        assert f"{option.number}: {option.text}" in user.content
    assert user.content.endswith(INSTRUCTION)
    assert "and nothing else." in first.prompt
    assert user.content.count("nothing else") == 1  # the instruction of the single question is replaced
    assert walk_prompt(PLANNER, task) == f"{system.content}\n\n{user.content}\n"


def test_a_plan_without_choices_and_a_wording_of_ones_own() -> None:
    planner = Planner(CFG.from_string("%start S\nS -> a b"))
    assert walk_messages(planner, "Go")[-1].content == f"Go\n\n{INSTRUCTION}"
    assert read_completion(planner, "Go", "  ").word == ("a", "b")
    menu = Planner(MENU)
    assert walk_messages(menu, "Eat")[-1].content.endswith(INSTRUCTION)


def test_examples_of_single_answers_are_left_out() -> None:
    wording = Wording(system="Be brief.", examples=(("Which?", "3"),))
    system, user = walk_messages(Planner(MENU, wording=wording), "Eat")
    assert system.content.startswith("Be brief.")
    assert "soup" in system.content
    assert "Which?" not in user.content


def test_a_task_without_a_plan() -> None:
    with pytest.raises(NoValidPlan):
        walk_prompt(PLANNER, Task("x", limits=Limits({"input_image": 0, "input_text": 0})))


# -- completions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("episode", EPISODES[:13], ids=lambda episode: str(episode.index))
def test_the_numbers_of_a_walk_lead_to_its_plan(episode: Episode) -> None:
    text = completion_of(episode)
    for said in (text, f"\n {text}\n", text.replace(" ", ", "), text.replace(" ", "\n"), text.replace(" ", ";")):
        assert read_completion(PLANNER, episode.task, said).tree == episode.plan.tree


def test_numbers_of_two_digits_are_one_number() -> None:
    task = PACK.tasks[117]
    first = PLANNER.start(task).question
    assert first is not None
    assert len(first.options) == 10
    episode = next(e for e in (_made(task, seed) for seed in range(1000)) if e[1].startswith("10 "))
    assert read_completion(PLANNER, task, episode[1]).word == episode[0].word
    assert episode[0].word[0] == "question_answering"


def _made(task: Task, seed: int) -> tuple[Plan, str]:
    numbers: list[int] = []
    rng = random.Random(seed)

    def choose(question: Question) -> int:
        numbers.append(rng.randint(1, len(question.options)))
        return numbers[-1]

    return PACK.planner(choose).plan(task), " ".join(map(str, numbers))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda text: "", "not finished after 0 numbers"),
        (lambda text: text.rsplit(" ", 1)[0], "not finished"),
        (lambda text: f"{text} 1", "finished after"),
        (lambda text: f"The answer is {text}", "'The' is not a number"),
        (lambda text: text + ".", "is not a number"),
        (lambda text: f"-{text}", "is not a number"),
        (lambda text: f"99 {text}", "99 is not one of the numbers"),
        (lambda text: f"0 {text}", "0 is not one"),
        (lambda text: f"1+2 {text}", "several numbers"),
        (lambda text: "9" * 5000, "is not a number"),
        (lambda text: "²", "is not a number"),
    ],
)
def test_completions_that_lead_to_no_plan(change: Any, match: str) -> None:
    episode = EPISODES[0]
    said = change(completion_of(episode))
    with pytest.raises(InvalidAnswer, match=match):
        read_completion(PLANNER, episode.task, said)
    function = completion_reward(PLANNER, REWARD, TASKS, invalid=-1.0)
    assert function(prompts=["?"], completions=[said], task=[0]) == [-1.0]


@given(strategies.limited_grammars() | strategies.tool_grammars())
@examples(40)
def test_what_is_written_leads_to_the_plan_again(cfg: CFG) -> None:
    planner = Planner(cfg, RandomLLM(0))
    try:
        episodes = enumerate_episodes(planner, Task("t"), 0, 40)
    except (NoValidPlan, TooManyPlans, Undecided):
        assume(False)
    with TemporaryDirectory() as folder:
        file = write_completions(Path(folder) / "plans.jsonl", planner, episodes, [Judged(1.0)] * len(episodes))
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row, episode in zip(rows, episodes, strict=True):
        assert read_completion(planner, "t", row["completion"]).word == episode.word


def test_an_episode_of_other_rules_is_told(tmp_path: Path) -> None:
    other = enumerate_episodes(Planner(CFG.from_string("S -> a | b")), Task("t"), 0, 9)[0]
    for rules in ("S -> a a | b T\nT -> c | d", "S -> some(a, b, c) some(a, b)"):
        planner = Planner(CFG.from_string(rules))
        with pytest.raises(ValueError, match="lead to no plan of 't'"):
            write_completions(
                tmp_path / "x.jsonl", planner, [replace(other, decisions=other.decisions[:0])], [Judged(1.0)]
            )


def test_selections_are_joined_with_a_plus_sign() -> None:
    planner = Planner(MENU)
    assert set(read_completion(planner, "Eat", "1+3 2").word) == {"soup", "cake", "milk"}
    assert set(read_completion(planner, "Eat", "2 1").word) == {"fish", "tea"}
    with pytest.raises(InvalidAnswer):
        read_completion(planner, "Eat", "1+1 2")


@given(st.text(alphabet="0123456789 ,;+.-ab\n", max_size=30))
def test_any_text_is_a_plan_or_an_invalid_answer(text: str) -> None:
    try:
        plan = read_completion(PLANNER, TASKS[0], text)
    except InvalidAnswer:
        return
    assert plan.complete


# -- the reward function -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_rewards_as_a_trainer_asks_for_them(workers: int) -> None:
    cached = CachedReward(REWARD)
    function = completion_reward(PLANNER, cached, TASKS, invalid=-0.5, workers=workers)
    completions = [completion_of(episode) for episode in EPISODES]
    completions[3] = "hm"
    places = [episode.index for episode in EPISODES]
    expected = [REWARD(episode.task, episode.plan) for episode in EPISODES]
    expected[3] = -0.5
    prompts = [walk_prompt(PLANNER, episode.task) for episode in EPISODES]
    chats = [[message._asdict() for message in walk_messages(PLANNER, episode.task)] for episode in EPISODES]
    said = [[{"role": "assistant", "content": text}] for text in completions]
    ids = [[1, 2]] * len(prompts)
    assert function(prompts=prompts, completions=completions, completion_ids=ids, task=places, group=[""]) == expected
    assert function(prompts=prompts, completions=completions) == expected
    assert function(prompts=chats, completions=said) == expected
    assert cached.stats.misses <= len(set(zip(places, completions, strict=True)))
    assert len(set(expected)) > 3
    assert function.__name__.isidentifier()


@pytest.mark.parametrize("said", [[], [{"role": "assistant"}], [{"role": "assistant", "content": None}]])
def test_messages_that_say_nothing(said: Any) -> None:
    assert completion_reward(PLANNER, REWARD, TASKS, invalid=-2)(prompts=["?"], completions=[said], task=[0]) == [-2.0]


def test_prompts_and_places_that_are_not_known() -> None:
    function = completion_reward(PLANNER, REWARD, TASKS)
    with pytest.raises(ValueError, match="no task; keep the column 'task'"):
        function(prompts=["?"], completions=["1"])
    with pytest.raises(ValueError, match=f"no task 99; {len(TASKS)} tasks"):
        function(prompts=["?"], completions=["1"], task=[99])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        function(prompts=["?"], completions=["1", "2"], task=[0])
    alike = [Task("Eat"), Task("Eat", group="late")]
    menu = Planner(MENU)
    with pytest.raises(ValueError, match="several tasks"):
        completion_reward(menu, lambda task, plan: 1.0, alike)(prompts=[walk_prompt(menu, "Eat")], completions=["1 1"])
    twice = completion_reward(menu, lambda task, plan: 1.0, [alike[0], alike[0]])
    assert twice(prompts=[walk_prompt(menu, "Eat")], completions=["1 1"]) == [1.0]


def test_a_bad_reward_is_not_hidden() -> None:
    function = completion_reward(PLANNER, lambda task, plan: math.nan, TASKS)
    with pytest.raises(RewardError, match="nan"):
        function(prompts=["?"], completions=[completion_of(EPISODES[0])], task=[0])
    with pytest.raises(ValueError, match="finite"):
        completion_reward(PLANNER, REWARD, TASKS, invalid=math.nan)


# -- files ---------------------------------------------------------------------------------------------------------


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("conversational", [False, True])
def test_tasks_in_a_file(tmp_path: Path, conversational: bool) -> None:
    path = write_tasks(tmp_path / "tasks.jsonl", PLANNER, TASKS, conversational=conversational)
    rows = lines(path)
    assert [row["task"] for row in rows] == list(range(len(TASKS)))
    assert [row["description"] for row in rows] == [task.description for task in TASKS]
    assert {frozenset(row) for row in rows} == {frozenset({"task", "description", "group", "prompt"})}
    for row, task in zip(rows, TASKS, strict=True):
        messages = [message._asdict() for message in walk_messages(PLANNER, task)]
        assert row["prompt"] == (messages if conversational else walk_prompt(PLANNER, task))
    assert [file.name for file in tmp_path.iterdir()] == ["tasks.jsonl"]
    # What was exported is what the reward function knows.
    function = completion_reward(PLANNER, REWARD, TASKS)
    for episode in EPISODES[:3]:
        said = completion_of(episode)
        expected = [REWARD(episode.task, episode.plan)]
        assert function(prompts=[rows[episode.index]["prompt"]], completions=[said]) == expected


@pytest.mark.parametrize("conversational", [False, True])
def test_plans_with_their_rewards_in_a_file(tmp_path: Path, conversational: bool) -> None:
    judged = [Judged(0.5, "kaputt") if n == 2 else Judged(n / 4) for n in range(len(EPISODES))]
    path = write_completions(tmp_path / "x.jsonl", PLANNER, EPISODES, judged, conversational=conversational)
    rows = lines(path)
    assert [(row["task"], row["reward"], row["failed"]) for row in rows] == [
        (episode.index, one.value, one.failed) for episode, one in zip(EPISODES, judged, strict=True)
    ]
    for row, episode in zip(rows, EPISODES, strict=True):
        said = row["completion"][0]["content"] if conversational else row["completion"]
        assert read_completion(PLANNER, episode.task, said).word == episode.plan.word
    with pytest.raises(ValueError, match=r"shorter|longer"):
        write_completions(path, PLANNER, EPISODES, judged[:-1])
    assert lines(path) == rows  # a file that could not be written whole is not written


def test_the_llm_of_the_planner_is_not_asked() -> None:
    def refuse(question: Question) -> int:
        raise AssertionError

    planner = PACK.planner(refuse)
    episode = made(PACK.planner(RandomLLM(0)), TASKS[1], 0)
    assert read_completion(planner, TASKS[1], completion_of(episode)).word == episode.plan.word
