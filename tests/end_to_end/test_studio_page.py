"""The studio in a real browser, as a person uses it: typing, mending, stepping to the end of a plan, exporting.

Needs selenium and a Chromium with its driver (Debian: ``apt-get install chromium chromium-driver``); it is skipped, and
says so, where there is none. ``STUDIO_SCREENSHOTS=FOLDER`` keeps pictures of what was seen, and ``AXE_CORE=FILE`` names
the file axe.min.js of the npm package axe-core, by whose rules the page is examined.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("selenium", reason="selenium is not installed: the studio is not tried in a browser")

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from formal_llm import CFG
from formal_llm.studio.opened import Opened
from tests.studio.browser import AXE, CHROMIUM, DRIVER, SIZES, chromium, emulate, page_width, serious_findings
from tests.studio.served import Served, studio
from tests.studio.texts import HOSTILE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no Chromium with its driver on this machine"),
]
#: Seconds after which what is waited for will not come, however busy the machine is.
PATIENCE = 300
NESTED = '%limit 2 open\nS -> open S close | rest\nopen "Open a box"\n'


class Page:
    """The page, and what a person can do with it."""

    def __init__(self, driver: webdriver.Chrome, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads

    def open(self, served: Served) -> None:
        self.driver.get(served.address)
        self.until(lambda: "checked" in self.text("status"))

    def until(self, holds: Callable[[], Any]) -> Any:
        return WebDriverWait(self.driver, PATIENCE, ignored_exceptions=[Exception]).until(lambda _: holds())

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, name: str) -> str:
        return self.driver.find_element(By.ID, name).text

    def type(self, text: str) -> None:
        """Replace the rules by typing, and wait until they are checked."""
        area = self.one("#text")
        area.send_keys(Keys.CONTROL, "a")
        area.send_keys(text)
        self.until(lambda: "checked" in self.text("status"))

    def picture(self) -> str:
        """The SVG text of the picture that is shown."""
        return str(self.driver.execute_script("return window.studio.picture.shown?.svg ?? ''"))

    def export(self, what: str, name: str) -> bytes:
        Select(self.one("#export")).select_by_value(what)
        file = self.downloads / name
        self.until(file.exists)
        self.until(lambda: file.stat().st_size > 0)
        return file.read_bytes()

    def shot(self, name: str) -> None:
        if folder := os.environ.get("STUDIO_SCREENSHOTS"):
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))

    def problems(self) -> list[str]:
        """What the browser complains of: refused scripts, errors in ours."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    downloads = tmp_path_factory.mktemp("downloads")
    with chromium(downloads) as driver:
        driver.set_script_timeout(PATIENCE)
        yield Page(driver, downloads)


@pytest.fixture(autouse=True)
def desk(page: Page) -> None:
    """Each test begins at a desk."""
    emulate(page.driver)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("studio")
    (folder / "boxes.cfg").write_text(NESTED, encoding="utf-8")
    with studio("boxes.cfg", cwd=folder) as found:
        yield found


def test_an_error_is_shown_as_it_is_typed_and_goes_when_it_is_mended(page: Page, served: Served) -> None:
    page.open(served)
    assert page.text("count") == "3"
    page.type("S - open S close | rest")
    page.until(lambda: "error in line 1: the arrow is missing" in page.text("problems"))
    assert page.one("#text").get_attribute("aria-invalid") == "true"
    assert len(page.all("#marks .error")) == 1
    page.shot("error")
    area = page.one("#text")
    area.send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * 3, ">")
    page.until(lambda: page.text("problems") == "")
    page.until(lambda: "infinitely many" in page.text("count"))
    assert page.problems() == []


def test_a_plan_is_stepped_to_its_end_with_the_keyboard(page: Page, served: Served) -> None:
    page.open(served)
    page.type(NESTED)
    page.until(lambda: page.text("count") == "3")
    tab = page.one("#tab-plans")
    tab.send_keys(Keys.ARROW_RIGHT)
    page.until(lambda: page.all("ol.options button"))
    page.one("ol.options button").send_keys("1")
    page.until(lambda: "1 answered" in page.text("view-step"))
    page.until(lambda: len(page.all("#stack li")) == 3)
    assert [row.text for row in page.all("#stack li")][:2] == ["S", "close"]
    assert page.one("#stack li.top").text == "S"
    assert "1 of 2 left" in page.text("view-step")
    # The same is marked in the picture: the box of S has the strong border, that of "rest" is faded.
    page.until(lambda: "#c2560c" in page.picture().lower())
    page.shot("stepping")
    page.one("ol.options button").send_keys("1")
    page.until(lambda: page.all("#finished"))
    assert "0 of 2 left" in page.text("view-step")
    page.one("#back").send_keys(Keys.ENTER)
    page.until(lambda: "1 answered" in page.text("view-step"))
    page.until(lambda: [row.text for row in page.all("#stack li")][:2] == ["S", "close"])
    page.one('ol.options button[data-number="2"]').click()
    page.until(lambda: page.all("#finished"))
    assert "Step 1: Use Open a box" in page.text("view-step") or "rest" in page.text("view-step")
    page.shot("finished")
    assert page.problems() == []


def test_why_an_option_is_missing_is_told_on_hover_and_on_focus(page: Page, served: Served) -> None:
    page.open(served)
    page.type(Opened.of(None).text)
    page.until(lambda: page.text("count") == "5")
    page.one("#tab-step").click()
    page.until(lambda: len(page.all("ol.options button")) == 3)
    page.one("ol.options button").click()
    page.until(lambda: page.all(".missing"))
    missing, why = page.one(".missing"), page.one(".missing .why")
    webdriver.ActionChains(page.driver).move_to_element(page.one("h1")).perform()
    assert not why.is_displayed()
    webdriver.ActionChains(page.driver).move_to_element(missing).perform()
    page.until(why.is_displayed)
    assert why.text == "because of %limit 1 pour"
    webdriver.ActionChains(page.driver).move_to_element(page.one("h1")).perform()
    page.driver.execute_script("arguments[0].focus()", missing)
    page.until(why.is_displayed)
    page.shot("studio")  # the picture of the book


def test_the_plan_space_is_a_tree_for_the_keyboard(page: Page, served: Served) -> None:
    page.open(served)
    page.type(NESTED)
    page.until(lambda: page.text("count") == "3")
    page.one("#tab-tree").click()
    page.until(lambda: len(page.all('[role="treeitem"]')) == 2)
    first = page.one('[role="treeitem"]')
    assert "2" in first.find_element(By.CSS_SELECTOR, ".count").text
    page.driver.execute_script("arguments[0].focus()", first)
    first.send_keys(Keys.ARROW_RIGHT)
    page.until(lambda: len(page.all('[role="treeitem"]')) == 4)
    page.shot("tree")
    first.send_keys(Keys.ENTER)
    page.until(lambda: "1 answered" in page.text("view-step"))


def test_exports(page: Page, served: Served) -> None:
    page.open(served)
    page.type(NESTED)
    page.until(lambda: page.text("count") == "3")
    assert b"<svg" in page.export("svg", "boxes.svg")
    png = page.export("png", "boxes.png")
    assert png.startswith(b"\x89PNG")
    assert page.export("mermaid", "boxes.mmd").startswith(b"flowchart")
    page.one("#view-plans .judged[aria-pressed]").click()
    page.until(lambda: page.all('#view-plans .judged[aria-pressed="true"]'))
    examples = page.export("examples", "boxes.examples").decode()
    assert examples.endswith("\n--- allowed\nrest\n")
    assert CFG.from_string(page.export("text", "boxes.cfg").decode()).start == "S"


def test_a_run_and_a_judged_plan(page: Page, served: Served) -> None:
    page.open(served)
    page.type(NESTED)
    page.until(lambda: page.text("count") == "3")
    page.one("#tab-run").click()
    page.one("#view-run button.main").click()
    page.until(lambda: page.all("#view-run .verdict"))
    page.shot("run")
    page.one("#tab-judge").click()
    page.one("#plan").send_keys("open rest")
    page.one("#judge").click()
    page.until(lambda: "Not valid" in page.text("judged"))
    page.shot("judged")
    page.one("#tab-compare").click()
    page.one("#compare").click()
    page.until(lambda: "The same plans" in page.text("compared"))
    assert page.problems() == []


def test_hostile_labels_do_not_script(page: Page, served: Served) -> None:
    page.open(served)
    label = HOSTILE.replace('"', "'")
    page.driver.execute_script(
        "const area = document.getElementById('text'); area.value = arguments[0];"
        "area.dispatchEvent(new Event('input'))",
        f'S "{label}" -> a S | b\na "{label}"\n%limit 1 a\n',
    )
    page.until(lambda: page.text("count") == "2")
    for tab in ("step", "tree", "run", "judge", "plans"):
        page.one(f"#tab-{tab}").click()
        if tab == "step":
            page.until(lambda: page.all("ol.options button"))
            page.one("ol.options button").click()
            page.until(lambda: page.all("#finished"))
            page.until(lambda: "onerror" in page.text("view-step"))  # it is there, as text
        if tab == "run":
            page.one("#view-run button.main").click()
            page.until(lambda: page.all("#view-run .verdict"))
    page.shot("hostile")
    assert page.driver.execute_script("return window.hacked") is None
    assert (
        page.driver.execute_script("return document.querySelectorAll('main script, main img:not(#picture)').length")
        == 0
    )


VIEWS = ("rules", "picture", "plans", "step", "tree", "run", "judge", "compare")


@pytest.mark.parametrize("size", SIZES)
def test_everything_is_within_the_window(page: Page, served: Served, size: str) -> None:
    emulate(page.driver, size)
    page.open(served)
    width = SIZES[size][0]
    shown = [view for view in VIEWS if page.one(f"#tab-{view}").is_displayed()]
    assert shown == list(VIEWS if width < 800 else VIEWS[2:])
    for view in shown:
        page.one(f"#tab-{view}").click()
        assert page_width(page.driver) == width
        for control in ("save", "export", "theme", f"tab-{view}"):
            box = page.driver.find_element(By.ID, control).rect
            assert box["x"] >= 0 and box["x"] + box["width"] <= width, (view, control)
        panes = [name for name in ("left", "right", f"view-{view}") if page.all(f"#{name}")]
        visible = [name for name in panes if page.driver.find_element(By.ID, name).is_displayed()]
        assert len(visible) == (1 if width < 800 else 3)


@pytest.mark.parametrize("size", SIZES)
def test_a_plan_is_made_by_keyboard_alone(page: Page, served: Served, size: str) -> None:
    """From the address bar: rules are written, a plan is kept as an example, another is stepped to its end."""
    emulate(page.driver, size)
    page.open(served)

    def press(*keys: str) -> None:
        webdriver.ActionChains(page.driver).send_keys(*keys).perform()

    def go_to(selector: str, *keys: str) -> None:
        """Press Tab, or other keys, until an element has the focus."""
        for _ in range(60):
            if page.driver.execute_script("return document.activeElement.matches(arguments[0])", selector):
                return
            press(*(keys or (Keys.TAB,)))
        raise AssertionError(f"Tab does not lead to {selector}")

    go_to("a.skip")
    press(Keys.ENTER)
    go_to("#text")
    webdriver.ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
    press("S -> open S close | rest", Keys.ENTER, "%limit 1 open")
    page.until(lambda: page.all("#count") and page.one("#count").get_attribute("textContent") == "2")
    go_to('[role="tab"][aria-selected="true"]')
    while page.one('[role="tab"][aria-selected="true"]').get_attribute("id") != "tab-plans":
        press(Keys.ARROW_RIGHT)
    go_to("#view-plans .judged")
    press(Keys.ENTER)
    page.until(lambda: page.all('#view-plans .judged[aria-pressed="true"]'))
    go_to("#tab-plans", Keys.SHIFT, Keys.TAB)
    press(Keys.ARROW_RIGHT)
    page.until(lambda: page.all("ol.options button"))
    go_to("ol.options button")
    press("1")
    page.until(lambda: page.all("#finished"))
    page.shot(f"keyboard-{size}")
    assert page.problems() == []


def test_plans_stay_and_the_faulty_line_is_seen_on_an_error(page: Page, served: Served) -> None:
    page.open(served)
    page.type("# a comment\n" * 60 + NESTED)
    page.until(lambda: page.text("count") == "3")
    area = page.one("#text")
    area.send_keys(Keys.CONTROL, Keys.END)
    area.send_keys("x - y")
    page.until(lambda: "error in line 64" in page.text("problems"))
    assert page.text("count") == "3"
    assert "The rules have an error" in page.text("view-plans")
    (mark,) = page.all("#marks .error")
    page.until(lambda: mark.rect["y"] + mark.rect["height"] <= page.one("#problems").rect["y"])


def test_words_are_coloured_where_they_are_written(page: Page, served: Served) -> None:
    page.open(served)
    page.type('%limit 2 open # twice\nS -> open S close | rest "a # b"\n')
    found = [(one.get_attribute("class"), one.text) for one in page.all("#colours span")]
    assert found == [
        ("word", "%limit"), ("comment", "# twice"), ("arrow", "->"), ("arrow", "|"), ("string", '"a # b"'),
    ]  # fmt: skip
    area = page.one("#text").get_attribute("value")
    assert page.one("#colours pre").get_attribute("textContent").rstrip("\n") == area.rstrip("\n")


def test_a_guard_follows_a_run_that_is_under_way(page: Page, tmp_path: Path) -> None:
    (tmp_path / "desk.guard").write_text("approved: approve\npay: pay\nrule first: approved before pay\n")
    trace = tmp_path / "run.json"
    with studio("desk.guard", "--follow", "run.json", cwd=tmp_path) as served:
        page.open(served)
        assert not page.one("#tab-step").is_displayed()
        assert page.one("#tab-judge").text == "Judge a trace"
        rows = [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "pay", "arguments": "{}"}}]}]
        trace.write_text(json.dumps(rows))
        page.until(lambda: "it breaks rules" in page.text("judged"))
        assert "block: pay cannot be called now" in page.text("judged")
        page.shot("guard")
        page.driver.get("about:blank")  # the studio ends without a page that still asks it something


@pytest.mark.skipif(AXE is None, reason="AXE_CORE does not name the file axe.min.js of the npm package axe-core")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious(page: Page, served: Served, size: str, dark: bool) -> None:
    assert AXE is not None
    emulate(page.driver, size, dark=dark)
    page.open(served)
    for view in VIEWS:
        if page.one(f"#tab-{view}").is_displayed():
            page.one(f"#tab-{view}").click()
            page.until(lambda: page.text("status") != "checking …")
            assert serious_findings(page.driver, AXE) == []


def test_another_page_in_the_same_browser_cannot_reach_it(page: Page, served: Served) -> None:
    """A page of another server of this machine knows even the token, and gets nothing."""
    page.open(served)
    with studio() as other:
        page.driver.get(other.address)
        # Its own policy would stop it; what is tried here is the studio's refusal, so the policy is switched off.
        page.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
        page.driver.get(other.address)
        tries = """
            const [address, done] = arguments;
            const body = JSON.stringify({question: "check", lane: "x", text: "S -> a", ending: ".cfg"});
            const ask = (path, options) => fetch(address + path, options).then(
                async (response) => `${response.type} ${response.status} ${await response.text()}`, () => "refused");
            Promise.all([
                ask("api/start"), ask("api/start", {mode: "no-cors"}), ask("api/ask", {method: "POST", body}),
                ask("api/ask", {method: "POST", body, mode: "no-cors"}),
                ask("api/ask", {method: "POST", body, headers: {"content-type": "application/json"}}),
                new Promise((seen) => {
                    const frame = document.createElement("iframe");
                    frame.src = address;
                    frame.onload = () => { let text = "refused";
                        try { text = frame.contentDocument.body.innerText || "refused"; } catch { text = "refused"; }
                        seen(text); };
                    document.body.append(frame);
                }),
            ]).then(done);
        """
        try:
            answers = page.driver.execute_async_script(tries, served.address)
        finally:
            page.driver.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})
            page.driver.get("about:blank")  # the other studio ends without a page that still asks it something
        for answer in answers:
            assert answer in ("refused", "opaque 0 "), answers
        page.problems()  # the refusals are logged; the next test begins without them
