"""The report: every step, every picture, nothing from outside, nothing that runs."""

from __future__ import annotations

import html.parser
import re
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Planner
from formal_llm.errors import ToolError
from formal_llm.tools import TEXT, Executor, Kind, Result, Tool, Toolkit, tool
from formal_llm.tools.report import html_report, save_report
from tests.tools.picture_tools import PACK, picture, plan_of, toolkit

EVIL = "</p><script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)>\"'&"


class Tags(html.parser.HTMLParser):
    """The tags of a page, and all addresses in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag not in ("img", "meta"):
            self.open.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def harmless(page: str) -> Tags:
    tags = Tags(page)
    assert tags.open == []
    assert not {"script", "iframe", "link", "object", "embed", "form", "base"} & set(tags.tags)
    assert tags.handlers == []
    assert all(address.startswith("data:image/png;base64,") for address in tags.addresses)
    assert "default-src 'none'" in page
    return tags


def test_every_step_is_shown(tmp_path: Path) -> None:
    plan = plan_of(
        PACK.cfg, "visual_question_answering", "colorization", "denoising", "input_image", "translation",
        "input_text", goal="text_plan",
    )  # fmt: skip
    result = Executor(toolkit()).run(plan, {"input_image": picture(size=400), "input_text": EVIL})
    page = html_report(result)
    tags = harmless(page)
    assert tags.tags.count("section") == 4
    assert tags.tags.count("img") == 1 + 2 + 2 + 1  # what was given, then the steps
    for step in plan.steps:
        assert str(step) in page
    assert "visual_question_answering(colorization(denoising(input_image)), translation(input_text))" in page
    assert save_report(tmp_path / "r.html", result).read_text(encoding="utf-8") == page
    assert len(page) < 1_500_000


def test_nothing_in_it_runs() -> None:
    cfg = CFG.from_string(
        f'%order prefix\nT "{EVIL.replace(chr(34), "")}" -> evil doc\nevil "<b onclick=x>"\ndoc "<script>"'
    )

    def fail(text: str) -> str:
        raise RuntimeError(text)

    plan = plan_of(cfg, "evil", "doc")
    plan.task = EVIL
    grow = Toolkit([Tool("evil", (TEXT,), TEXT, lambda text: text + EVIL)])
    harmless(html_report(Executor(grow).run(plan, {"doc": EVIL})))
    with pytest.raises(ToolError) as caught:
        Executor(Toolkit([Tool("evil", (TEXT,), TEXT, fail)])).run(plan, {"doc": EVIL})
    page = html_report(caught.value.result)
    tags = harmless(page)
    assert 'class="failed"' in page
    assert tags.tags.count("section") == 1


def test_failed_shared_and_dropped_values_are_told() -> None:
    def broken_show(value: Any) -> str:
        raise RuntimeError("<oops>")

    odd = Kind("odd", str, str.encode, bytes.decode, show=broken_show)
    cfg = CFG.from_string("%order prefix\nT -> odd doc | upper T")
    kit = Toolkit([Tool("odd", (TEXT,), odd, str, pure=True), Tool("upper", (odd,), TEXT, str.upper)])
    executor = Executor(kit)
    plan = plan_of(cfg, "upper", "odd", "doc")
    page = html_report(executor.run(plan, {"doc": "a"}))
    assert "cannot be shown: RuntimeError(&#x27;&lt;oops&gt;&#x27;)" in page
    results = executor.run_many([plan, plan_of(cfg, "odd", "doc")], {"doc": "a"})
    page = html_report(results, title="Two <plans>")
    harmless(page)
    assert "Two &lt;plans&gt;" in page
    assert "known already" in page
    assert "not kept" in page


def test_a_plan_of_one_input_and_no_result_at_all() -> None:
    result = Executor(Toolkit([])).run(
        plan_of(CFG.from_string("%order prefix\nT -> a doc | doc"), "doc"), {"doc": "only this"}
    )
    assert "only this" in html_report(result)
    harmless(html_report([]))
    assert isinstance(result, Result)


def test_the_result_comes_first_and_then_the_plan() -> None:
    plan = plan_of(
        PACK.cfg, "visual_question_answering", "colorization", "denoising", "input_image", "translation",
        "input_text", goal="text_plan",
    )  # fmt: skip
    result = Executor(toolkit()).run(plan, {"input_image": picture(), "input_text": "Who is it?"})
    about = {"LLM": "<builtin>", "inputs": "image=a.png"}
    page = html_report(result, about=about, warnings=["the toolkit lacks <something>"])
    harmless(page)
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    # The warning, what was given and what came out, the plan as a picture, its steps, the rest.
    places = [page.index(text) for text in (
        "lacks &lt;something&gt;", "<figure>", 'class="plan"', "<section", "<th>LLM</th><td>&lt;builtin&gt;</td>",
    )]  # fmt: skip
    assert places == sorted(places)
    picture_of_it = page[page.index('class="plan"') : page.index("<section")]
    boxes = re.findall(r'class="box (\w+)">([^<]*)<', picture_of_it)
    assert [kind for kind, _ in boxes] == ["given", "tool", "tool", "given", "tool", "tool"]
    assert boxes[-1][1] == PACK.cfg.label("visual_question_answering")  # where both branches meet


def test_a_plan_that_nobody_could_look_at_has_no_picture() -> None:
    cfg = CFG.from_string("%order prefix\nT -> more T | doc")
    kit = Toolkit([Tool("more", (TEXT,), TEXT, lambda text: text + "!")])
    for tools, shown in ((59, True), (60, False)):
        page = html_report(Executor(kit).run(plan_of(cfg, *["more"] * tools, "doc"), {"doc": "a"}))
        assert ('class="plan"' in page) == shown


def test_a_sequence_shows_the_value_of_its_last_step_first() -> None:
    @tool
    def find(host: str) -> str:
        return f"found {host}"

    @tool
    def block(find: str) -> str:
        return f"blocked what was {find}"

    plan = Planner(CFG.from_string("P -> find block"), "test:first").plan("Block it")
    page = html_report(Toolkit([find, block]).run(plan, {"host": "web-7"}))
    harmless(page)
    assert page.index("blocked what was found web-7") < page.index("Step 1: Use find") < page.index("Step 2: Use block")
