"""Errors of those who answer: what was asked for, what there is, what the tries were."""

from __future__ import annotations

import pickle

from formal_llm.errors import (
    AnswerFileError,
    ExecutionError,
    InvalidAnswer,
    MissingKey,
    NotRecorded,
    ProviderError,
    RewardError,
    TrainingError,
    UnknownProvider,
)
from formal_llm.llms import Option, Question


def test_an_unknown_provider_is_told_the_nearest() -> None:
    error = UnknownProvider("opneai:gpt", ("openai:MODEL", "builtin"))
    assert str(error) == "'opneai:gpt' names no LLM. Did you mean 'openai:gpt'? Understood: openai:MODEL, builtin."
    assert error.suggestions == ("openai:gpt",)


def test_a_provider_without_its_model_is_told_the_whole_form() -> None:
    known = ("openai:MODEL", "builtin", "test:first", "test:random")
    for name, meant in (
        ("openai", ("openai:MODEL",)), ("openai:", ("openai:MODEL",)), ("openia", ("openai:MODEL",)),
        ("builtin:x", ("builtin",)), ("bultin:x", ("builtin",)), ("test:frist", ("test:first", "test:random")),
        ("tset:first", ("test:first",)), ("quux", ()),
    ):  # fmt: skip
        error = UnknownProvider(name, known)
        assert error.suggestions == meant
        assert ("Did you mean" in str(error)) == bool(meant)


def test_a_missing_key_names_the_variable_and_the_way_without() -> None:
    text = str(MissingKey("OpenAI", "OPENAI_API_KEY"))
    assert "set the environment variable OPENAI_API_KEY" in text
    assert "'builtin'" in text


def test_invalid_answers_count_their_tries() -> None:
    assert str(InvalidAnswer("3 is no option", [("p", "3")])) == "no valid answer: 3 is no option"
    assert str(InvalidAnswer("x", [("p", "3"), ("p", "4")])) == "no valid answer after 2 tries: x"


def test_what_was_not_recorded_is_shown_in_short() -> None:
    question = Question("word " * 500, (Option(1, "a"), Option(2, "b")), walk="w1")
    once = str(NotRecorded("run.jsonl", question, 1))
    assert once.startswith("run.jsonl: this question of walk 'w1' was recorded once and asked more often")
    assert len(once) < 700
    assert "was not recorded; rules, wording and task must be those" in str(NotRecorded("run.jsonl", question, 0))


def test_files_of_answers_and_providers() -> None:
    assert str(AnswerFileError("a.jsonl", "is damaged", 3)) == "a.jsonl:3: is damaged"
    assert str(AnswerFileError("a.db", "is damaged")) == "a.db: is damaged"
    cause = OSError("refused")
    assert ProviderError("no connection", cause).cause is cause


def test_they_travel() -> None:
    error = InvalidAnswer("x", [("p", "3"), ("p", "4")])
    other = pickle.loads(pickle.dumps(error))
    assert (str(other), other.transcript) == (str(error), error.transcript)


def test_a_reward_error_names_file_task_and_plan() -> None:
    error = RewardError("is not a finite number", task="wash", word=["a", "b"], file="rewards.jsonl")
    assert str(error) == "rewards.jsonl: is not a finite number (task: 'wash'; plan: a b)"
    assert str(RewardError("is empty", task="wash")) == "is empty (task: 'wash'; plan: the empty word)"
    assert str(RewardError("is empty")) == "is empty"


def test_it_is_never_taken_for_a_plan_that_failed() -> None:
    assert not issubclass(RewardError, ExecutionError)
    assert not issubclass(TrainingError, ExecutionError)


def test_training_errors_travel() -> None:
    error = RewardError("wrong", task="t", word=("a",))
    assert pickle.loads(pickle.dumps(error)).__dict__ == error.__dict__
