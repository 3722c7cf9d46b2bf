"""Rollouts and episodes: valid plans, draws that depend on their seed alone, and the probabilities of what is drawn."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Limits, Planner, Task, TaskPack, verify
from formal_llm.errors import TrainingError
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.question import Option, Question
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.episode import DistinctQuestions
from formal_llm.rltf.objective import log_probabilities_of
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rollout import Start, replay, rollout

Build = Callable[..., LocalLLM]


def starts(tasks: list[Task], samples: int) -> list[Start]:
    return [Start(i, task, f"{i} {n}") for i, task in enumerate(tasks) for n in range(samples)]


def test_plans_are_words_of_the_language(build: Build, planner: Planner, tasks: list[Task], rules: CFG) -> None:
    episodes = rollout(planner, Policy(build()), starts(tasks, 20))
    assert [episode.index for episode in episodes] == [i for i in range(3) for _ in range(20)]
    for episode in episodes:
        assert verify(episode.plan, rules, limits=episode.task.limits).valid
        assert episode.plan.complete
    assert len({episode.word for episode in episodes}) > 5


def test_draws_depend_on_their_seed_alone(build: Build, planner: Planner, tasks: list[Task]) -> None:
    policy = Policy(build())
    wanted = starts(tasks, 8)
    alone = [rollout(planner, policy, [start])[0] for start in wanted]
    for together in (1, 5, 1_000):
        found = rollout(planner, policy, wanted, together=together)
        assert [e.path for e in found] == [e.path for e in alone]
    backwards = rollout(planner, policy, wanted[::-1])
    assert [e.path for e in backwards] == [e.path for e in alone[::-1]]


def test_without_a_seed_the_most_probable_options_are_taken(build: Build, tasks: list[Task], rules: CFG) -> None:
    llm = build()
    planner = Planner(rules, llm)
    greedy = rollout(planner, Policy(llm), [Start(i, task) for i, task in enumerate(tasks)])
    assert [e.word for e in greedy] == [outcome.unwrap().word for outcome in planner.plan_all(tasks)]


def test_log_probabilities_are_those_of_the_policy(build: Build, planner: Planner, tasks: list[Task]) -> None:
    policy = Policy(build(), temperature=1.7)
    episodes = rollout(planner, policy, starts(tasks, 6))
    assert [e.log_probability for e in episodes] == pytest.approx(log_probabilities_of(policy, episodes), abs=1e-5)
    for index, task in enumerate(tasks):
        leaves = enumerate_episodes(planner, task, index, 100)
        logs = log_probabilities_of(policy, leaves)
        assert math.fsum(map(math.exp, logs)) == pytest.approx(1, abs=1e-5)
        exact = dict(zip((one.path for one in leaves), logs, strict=True))
        for episode in episodes:
            if episode.index == index:
                assert episode.log_probability == pytest.approx(exact[episode.path], abs=1e-5)


def test_plans_come_as_often_as_they_are_probable(build: Build, planner: Planner, tasks: list[Task]) -> None:
    policy, many = Policy(build(), temperature=4), 3_000
    episodes = rollout(planner, policy, [Start(0, tasks[0], str(n)) for n in range(many)])
    leaves = enumerate_episodes(planner, tasks[0], 0, 100)
    seen = Counter(one.path for one in episodes)
    for leaf, log in zip(leaves, log_probabilities_of(policy, leaves), strict=True):
        chance = math.exp(log)
        spread = math.sqrt(many * chance * (1 - chance)) + 1
        assert abs(seen[leaf.path] - many * chance) < 5 * spread  # by chance once in a million draws
    assert seen.total() == many


def test_an_episode_is_made_again_from_its_numbers(build: Build, planner: Planner, tasks: list[Task]) -> None:
    for episode in rollout(planner, Policy(build()), starts(tasks, 4)):
        again = replay(planner, Start(episode.index, episode.task), episode.path)
        assert again.word == episode.word
        assert again.path == episode.path
        assert [d.question.prompt for d in again.decisions] == [d.question.prompt for d in episode.decisions]
    for wrong in ((), (9,), (1, 1, 1, 1, 1, 1)):
        with pytest.raises(ValueError, match="numbers"):
            replay(planner, Start(0, tasks[0]), wrong)


def test_selections_are_made_one_by_one(build: Build) -> None:
    cfg = CFG.from_string('S -> some(a, b, c) go\na "Alpha"\nb "Beta"\nc "Gamma"')
    planner = Planner(cfg, "test:first")
    policy = Policy(build(), temperature=3)
    episodes = rollout(planner, policy, [Start(0, Task("t"), str(n)) for n in range(400)])
    words = {episode.word for episode in episodes}
    sets = {"".join(s) for n in (1, 2, 3) for s in itertools.combinations("abc", n)}
    assert {"".join(word[:-1]) for word in words} == sets
    chances = {episode.word: episode.log_probability for episode in episodes}
    assert math.fsum(map(math.exp, chances.values())) == pytest.approx(1, abs=1e-4)
    for episode in episodes[:20]:
        again = replay(planner, Start(0, Task("t")), episode.path)
        assert again.word == episode.word
    assert [e.log_probability for e in episodes] == pytest.approx(log_probabilities_of(policy, episodes), abs=1e-5)


def test_what_a_dead_end_was_asked_does_not_count(build: Build) -> None:
    cfg = CFG.from_string("S -> a A | b B\nA -> a A | c d\nB -> e | f")
    planner = Planner(cfg, "test:first", limits=Limits({"a": 3}), lookahead="off")
    policy = Policy(build(), temperature=5)
    for episode in rollout(planner, policy, [Start(0, Task("t"), str(n)) for n in range(50)]):
        assert episode.log_probability == pytest.approx(log_probabilities_of(policy, [episode])[0], abs=1e-5)
        assert len(episode.decisions) <= episode.plan.usage.questions


def test_the_tasks_of_a_pack(build: Build) -> None:
    pack = TaskPack.load("openagi")
    planner = pack.planner("test:first")
    tasks = [pack.task(number) for number in pack.data["splits"]["training"]]
    for episode in rollout(planner, Policy(build()), starts(tasks, 2)):
        assert verify(episode.plan, planner.table(episode.task).automaton).valid


@pytest.mark.parametrize("seed", [None, "1"])
def test_probabilities_that_are_no_numbers_are_told(
    build: Build, planner: Planner, tasks: list[Task], seed: str | None
) -> None:
    policy = Policy(build())
    leaves = enumerate_episodes(planner, tasks[0], 0, 100)
    for parameter in policy.parameters:
        parameter.data.fill_(math.inf)
    policy.changed()
    with pytest.raises(TrainingError, match=r"log-probability is nan.*make it alpha"):
        rollout(planner, policy, [Start(0, tasks[0], seed)])
    with pytest.raises(TrainingError, match=r"log-probability is nan.*make it alpha"):
        log_probabilities_of(policy, leaves)


# -- episodes --------------------------------------------------------------------------------------------------------


def test_the_path_tells_plans_of_one_word_apart() -> None:
    planner, task = Planner(CFG.from_string("S -> A b | a B | c\nA -> a\nB -> b"), "test:first"), Task("t")
    one, other, third = enumerate_episodes(planner, task, 0, 3)
    assert one.word == other.word == ("a", "b")
    assert (one.path, other.path, third.path) == ((1,), (2,), (3,))
    for episode in (one, other, third):
        assert episode.word == episode.plan.word
        assert replay(planner, Start(0, task), episode.path).path == episode.path


def asked(text: str) -> Question:
    return Question(text, (Option(1, "a"), Option(2, "b")))


@given(st.lists(st.sampled_from("abc"), max_size=20))
def test_equal_questions_have_one_number_in_the_order_of_the_first(texts: list[str]) -> None:
    looked: list[Question] = []

    def key(question: Question) -> str:
        looked.append(question)
        return question.prompt

    distinct = DistinctQuestions(key)
    questions = [asked(text) for text in texts]
    order = list(dict.fromkeys(texts))
    for _ in range(2):
        assert [distinct.number_of(question) for question in questions] == [order.index(text) for text in texts]
    assert [question.prompt for question in distinct.questions] == order
    assert len(looked) == len(questions)


def test_an_object_that_is_gone_is_not_taken_for_another() -> None:
    distinct = DistinctQuestions(lambda question: question.prompt)
    assert [distinct.number_of(asked(str(number))) for number in range(200)] == list(range(200))
