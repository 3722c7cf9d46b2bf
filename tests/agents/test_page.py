"""A run as a page: all of it shown, nothing of it obeyed."""

from __future__ import annotations

import random
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Behaviour, Usage
from formal_llm.agents import Correction, Segment, Transcript
from formal_llm.agents.modular import ModularAgent
from formal_llm.agents.page import modular_page, run_page
from formal_llm.agents.run_events import ToolCall
from tests.agents.modular.doubles import Held, letters
from tests.strategies import examples

REACT = Behaviour.load("react")
HOSTILE = [
    "<script>alert(1)</script>",
    "</pre><img src=x onerror=alert(1)>",
    '"><a href="//x">',
    "&lt;b&gt;",
    "\x1b[31m",
    "{title}",
    "\u202e",
]
texts = st.sampled_from(HOSTILE) | st.text(max_size=20)


class Tags(HTMLParser):
    """The tags of a page, its attributes and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):  # type: ignore[no-untyped-def]
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):  # type: ignore[no-untyped-def]
        self.texts.append(data)


ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "small", "section", "pre", "p", "strong", "div",
    "code", "span", "table", "tr", "th", "td",
}  # fmt: skip


@given(texts, texts, texts, texts, texts)
@examples(60)
def test_whatever_was_written_the_page_has_our_tags_alone(one: str, two: str, tool: str, why: str, about: str) -> None:
    made = Transcript(
        "react", (Segment("Ques", one, "user"), Segment("Tht", two), Segment(two or "x", one, "environment")),
        (Correction(1, two, (one,), "", why), Correction(7, one)),
    )  # fmt: skip
    calls = [ToolCall(2, tool, one, two, False, why), ToolCall(9, tool, one, two)]
    page = Tags(run_page(made, REACT, calls, error=ValueError(why), about={about: one}))
    assert set(page.tags) <= ALLOWED
    assert page.attributes <= {"lang", "charset", "name", "content", "http-equiv", "class"}
    assert "\x1b" not in "".join(page.texts) and "\u202e" not in "".join(page.texts)


def test_everything_stands_on_it() -> None:
    made = Transcript(
        "react", (Segment("Ques", "How long?", "user"), Segment("Tht", "I <b>look</b>"),
         Segment("Obs", "2,850 km", "environment")),
        (Correction(1, "[Answer]", ("[Action]",), "[Action]", "it comes later"),),
        {"Tht": Usage(questions=2, requests=3, input_tokens=1200, output_tokens=5, cost=0.5)},
    )  # fmt: skip
    page = run_page(made, REACT, [ToolCall(2, "search", "Danube", "2,850 km", True, "#E1")], about={"LLM": "mine"})
    for part in (
        "<h1>How long?</h1>", '<section class="model"><h2>[Thought] <small>the model</small></h2>', "I &lt;b&gt;look",
        "#E1 = search(Danube)", "Corrected: segment 2: &#x27;[Answer]&#x27; was not allowed", "it comes later",
        "1,200 read, 5 written", "<td>0.5</td>", "<td>Tht</td><td>1</td><td>1</td><td>3</td><td>1,200</td><td>5</td>",
        "<td>mine</td>", "prefers-color-scheme: dark",
        "default-src 'none'",
    ):  # fmt: skip
        assert part in page, part
    assert "<script" not in page and run_page(Transcript("react"), REACT)


def test_every_decision_call_and_correction_is_shown() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        run = ModularAgent(Held(rng, 0.0), modules=letters(rng)).run("<b>What</b>?")
        page = modular_page(run, about={"LLM": "x & y"})
        assert "&lt;b&gt;What" in page and "<b>What" not in page and "x &amp; y" in page
        assert page.count("<h2>plan ") == len(run.decisions)
        assert page.count('class="call"') == len(run.word)
        assert page.count(">failed</span>") == sum(step.failed for step in run.scratchpad.steps)
        assert page.count("Corrected: ") == len(run.corrections)
        assert page.count("<h2>answer ") == 1
    assert "the money is gone" in modular_page(run, error=RuntimeError("the money is gone"))
