"""What a person writes: a run waits for it."""

from __future__ import annotations

import threading
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Behaviour
from formal_llm.agents import Agent
from formal_llm.agents.decoding.steps import driven
from formal_llm.agents.worlds import EMPTY_ROUNDS, PersonDue, Summarise, list_results, normalise_score
from formal_llm.errors import AgentError
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.question import Message
from formal_llm.tools import tool
from tests import tiny_models
from tests.agents.chats import CHATS, Scripted

both = threading.Barrier(2)


@tool("meet", pure=True)
def meet(text: str) -> str:
    """Waits until the other action is there."""
    both.wait(10)
    return text.upper()


ROUND = ["[Thought] t [Action] meet [Action Input] a [Action] meet [Action Input] b"]
END = ["[Final Thought] f [Answer] answer"]


RAW = "1. A\n2. B"


class Scoring(Scripted):
    """A script that tells log-probabilities."""

    can = CHATS | {"score"}

    scores: ClassVar = {"short": (-3.0, 1), "quite a long one": (-4.0, 20), RAW: (-9.0, 7)}

    def log_probabilities(self, messages, texts):  # type: ignore[no-untyped-def]
        told, so_far = messages
        assert told.role == "system" and "meet(text)" in told.content
        assert so_far.content == (
            "[Question] q\n[Thought] t\n[Action] meet\n[Action Input] a\n[Action] meet\n[Action Input] b\n[Summary]"
        )
        return [self.scores[text] for text in texts]


@pytest.mark.parametrize(("alpha", "best"), [(0.0, "short"), (1.0, "quite a long one")])
def test_the_score_decides_and_alpha_weighs_length(alpha: float, best: str) -> None:
    llm = Scoring([*ROUND, "short", "quite a long one", *END])
    made = Agent("pass", llm, [meet], worlds={"Sum": Summarise(2, alpha=alpha)}).run("q")
    assert made.text_of("Sum") == best


@given(st.floats(-500, 0), st.integers(1, 400), st.floats(0, 1))
def test_the_score_is_that_of_the_paper(log_probability: float, tokens: int, alpha: float) -> None:
    penalty = ((5 + tokens) / (5 + 1)) ** alpha
    assert normalise_score(log_probability, tokens, alpha) == pytest.approx(log_probability / penalty)
    assert normalise_score(log_probability, 1, alpha) == pytest.approx(log_probability)  # one token is not discounted


def test_the_results_are_taken_as_they_are_where_they_score_higher() -> None:
    class Plain(Scoring):
        scores: ClassVar = {"summary": (-9.5, 7), RAW: (-9.0, 7)}

    made = Agent("pass", Plain([*ROUND, "summary", *END]), [meet]).run("q")
    assert made.text_of("Sum") == RAW


def test_a_model_that_runs_here_scores_behind_the_run_so_far() -> None:
    network = tiny_models.causal("gpt2", tiny_models.VOCABULARY)
    own = TransformersLLM.of(network, tiny_models.tokenizer())
    asked: list[tuple[tuple[Message, ...], list[str]]] = []

    class Local(Scripted):
        """Writes a script, and scores it as a real model does."""

        can = CHATS | {"score"}

        def log_probabilities(self, messages, texts):  # type: ignore[no-untyped-def]
            asked.append((messages, texts))
            return own.log_probabilities(messages, texts)

    texts = ["Use Image Denoising.", "step", "noisy blurry grayscale image step by step"]
    for alpha in (0.0, 1.0):
        llm = Local([*ROUND, *texts, *END])
        made = Agent("pass", llm, [meet], worlds={"Sum": Summarise(3, alpha=alpha)}).run("q")
        told, candidates = asked[-1]
        assert candidates == [*texts, RAW]
        sums = dict(zip(candidates, own.log_probabilities(told, candidates), strict=True))
        scores = {text: value / ((5 + tokens) ** alpha / 6**alpha) for text, (value, tokens) in sums.items()}
        assert made.text_of("Sum") == max(scores, key=scores.__getitem__)


def test_a_server_that_cannot_tell_is_asked_which_is_the_best() -> None:
    class Cannot(Scripted):
        can = CHATS | {"score"}

        def log_probabilities(self, messages, texts):  # type: ignore[no-untyped-def]
            return None

    llm = Cannot([*ROUND, "one", RAW, *END])
    assert Agent("pass", llm, [meet]).run("q").text_of("Sum") == RAW


def test_without_probabilities_the_model_chooses() -> None:
    llm = Scripted([*ROUND, "one", "one", *END])
    run = Agent("pass", llm, [meet]).start("q")
    made = run.run_to_end()
    assert made.text_of("Sum") == "one" and "Which of these texts is the best there?" in llm.asked[-2]
    assert [(call.input, call.output) for call in run.calls] == [("a", "A"), ("b", "B")]
    assert "meet[a]\nA\n\nmeet[b]\nB" in llm.asked[-3] and "Thought: t" in llm.asked[-3]


def test_what_leaves_no_choice_is_not_asked() -> None:
    same = Agent("pass", Scripted([*ROUND, RAW, *END]), [meet]).run("q")
    assert same.text_of("Sum") == RAW
    nothing = Agent("pass", Scripted([*ROUND, "", *END]), [meet]).run("q")
    assert nothing.text_of("Sum") == RAW
    empty = Agent("pass", Scripted(["[Thought] t [Summary]", *END]), [meet]).run("q")
    assert str(empty.text_of("Sum")).startswith("Error: no action was taken")
    with pytest.raises(ValueError, match="one summary at least, not 0; without summaries take the agent pass-no-summ"):
        Summarise(0)


def test_without_the_summariser_results_are_a_numbered_list() -> None:
    made = Agent("pass-no-summarizer", Scripted([*ROUND, *END]), [meet]).run("q")
    assert made.text_of("List-Results") == RAW and made.verify(Behaviour.load("pass-no-summarizer")).valid
    other = Agent("pass", Scripted([*ROUND, *END]), [meet], worlds={"[Summary]": list_results}).run("q")
    assert other.text_of("Sum") == RAW


EMPTY = ["[Thought] t [Summary]"]


@pytest.mark.parametrize(("name", "state"), [("pass", "Sum"), ("pass-no-summarizer", "List-Results")])
def test_rounds_without_an_action_are_bounded(name: str, state: str) -> None:
    """A model that always summarises, and never acts nor ends, is asked for no third thought."""
    llm = Scripted([*EMPTY * EMPTY_ROUNDS, *END])
    made = Agent(name, llm, [meet]).run("q")
    assert made.word == ("Ques", *("Plan", state) * EMPTY_ROUNDS, "Final-Tht", "Ans")
    assert str(made.text_of(state)).endswith("2 rounds in a row, the most that may be: no further one begins.")


@tool("shout")
def shout(text: str) -> str:
    """Writes it large."""
    return text.upper()


def test_only_rounds_in_a_row_count() -> None:
    one = ["[Thought] t [Action] shout [Action Input] a", "1. A"]
    llm = Scripted([*EMPTY, *one, *EMPTY, *one, *EMPTY, *EMPTY, *END])
    made = Agent("pass", llm, [shout]).run("q")
    assert made.word.count("Plan") == 6 and made.answer == "answer"


def test_a_behaviour_that_wants_more_rounds_gets_them() -> None:
    text = str(Behaviour.load("pass")).replace("(until (next Plan", "(until_4_4 (next Plan")
    made = Agent(Behaviour.from_string(text), Scripted([*EMPTY * 4, *END]), [shout]).run("q")
    ends = [one.text.rpartition(":")[2] for one in made.segments if one.state == "Sum"]
    assert [end == " no further one begins." for end in ends] == [False, False, False, True]


def test_a_run_without_a_person_says_what_it_waits_for() -> None:
    agent = Agent("chat-bot-endless", Scripted(["Hello."] * 2))
    with pytest.raises(AgentError, match=r"chat-bot-endless waits for what a person says; run it by Conversation"):
        agent.run("q")
    (outcome,) = agent.run_all(["q"])
    assert isinstance(outcome.error, AgentError) and outcome.transcript.word == ("Chat-Bot",)


def test_whoever_drives_the_run_puts_the_text_there() -> None:
    agent = Agent("chat-bot-endless", Scripted(["Hello.", "Fine."]))
    run = agent.start("")
    steps = driven(run.steps(), agent.llm)
    due = next(steps)
    assert isinstance(due, PersonDue) and due.text is None and run.writing == "User"
    due.text = "How are you?"
    assert isinstance(next(steps), PersonDue)
    assert [one.text for one in run.segments] == ["Hello.", "How are you?", "Fine."]
    steps.close()
