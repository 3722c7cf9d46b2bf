"""PASS: actions of a round together, and the summary by its score."""

from __future__ import annotations

import threading
from typing import ClassVar

import pytest

from formal_llm.agents import Agent
from formal_llm.agents.published.summaries import Summarise, normalised
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.tools import tool
from tests import tiny_models
from tests.agents.chats import Scripted

both = threading.Barrier(2)


@tool("meet")
def meet(text: str) -> str:
    """Waits until the other action is there."""
    both.wait(10)
    return text.upper()


ROUND = ["[Thought] t [Action] meet [Action Input] a [Action] meet [Action Input] b"]
END = ["[Final Thought] f [Answer] answer"]


class Scoring(Scripted):
    """A script that tells log-probabilities."""

    scores: ClassVar = {"short": (-3.0, 1), "quite a long one": (-6.0, 4), "odd": (-9.0, 1)}

    def log_probabilities(self, messages, texts):  # type: ignore[no-untyped-def]
        assert "meet[a]" in messages
        return [self.scores[text] for text in texts]


@pytest.mark.parametrize(("alpha", "best"), [(0.0, "short"), (1.0, "quite a long one")])
def test_the_score_decides_and_alpha_weighs_length(alpha: float, best: str) -> None:
    llm = Scoring([*ROUND, "short", "quite a long one", "odd", *END])
    made = Agent("pass", llm, [meet], worlds={"Sum": Summarise(alpha=alpha)}).run("q")
    assert made.text_of("Sum") == best
    assert normalised(-6.0, 4, 0.5) == -3.0


def test_a_model_that_runs_here_scores_its_own_summaries() -> None:
    network = tiny_models.causal("gpt2", tiny_models.VOCABULARY)
    own = TransformersLLM.of(network, tiny_models.tokenizer())
    asked: list[tuple[str, list[str]]] = []

    class Local(Scripted):
        """Writes a script, and scores it as a real model does."""

        def log_probabilities(self, messages, texts):  # type: ignore[no-untyped-def]
            asked.append((messages, texts))
            return own.log_probabilities(messages, texts)

    texts = ["Use Image Denoising.", "step", "noisy blurry grayscale image step by step"]
    for alpha in (0.0, 1.0):
        llm = Local([*ROUND, *texts, *END])
        made = Agent("pass", llm, [meet], worlds={"Sum": Summarise(alpha=alpha)}).run("q")
        told, _ = asked[-1]
        scores = {text: normalised(own.score(told, text), len(own.renderer.continuation_tokens(text)), alpha)
                  for text in texts}  # fmt: skip
        assert made.text_of("Sum") == max(scores, key=scores.__getitem__)


def test_a_server_that_cannot_tell_is_asked_which_is_the_best() -> None:
    class Cannot(Scripted):
        def log_probabilities(self, messages, texts):  # type: ignore[no-untyped-def]
            return None

    llm = Cannot([*ROUND, "one", "two", "one", "two", *END])
    assert Agent("pass", llm, [meet]).run("q").text_of("Sum") == "two"


def test_without_probabilities_the_model_chooses() -> None:
    llm = Scripted([*ROUND, "one", "two", "one", "two", *END])
    run = Agent("pass", llm, [meet]).start("q")
    made = run.run_to_end()
    assert made.text_of("Sum") == "two" and "Which of these summaries is the best?" in llm.asked[-2]
    assert [(call.input, call.output) for call in run.calls] == [("a", "A"), ("b", "B")]
    assert "meet[a]\nA\n\nmeet[b]\nB" in llm.asked[-3] and "Thought: t" in llm.asked[-3]


def test_what_leaves_no_choice_is_not_asked() -> None:
    one = Agent("pass", Scripted([*ROUND, "same", "same", "", *END]), [meet]).run("q")
    assert one.text_of("Sum") == "same"
    alone = Agent("pass", Scripted([*ROUND, "only", *END]), [meet], worlds={"[Summary]": Summarise(1)}).run("q")
    assert alone.text_of("Sum") == "only"
    empty = Agent("pass", Scripted(["[Thought] t [Summary]", *END]), [meet]).run("q")
    assert str(empty.text_of("Sum")).startswith("Error: no action was taken")
    with pytest.raises(ValueError, match="one summary at least"):
        Summarise(0)
