"""What axe-core finds serious on the pages of the library: the studio, reports of runs, and the built book.

Each page is looked at 390 and 1,400 pixels wide, light and dark. Printed are the serious and critical findings, pages
that are wider than the window, and their numbers at the end (aim: 0). Needs selenium, a Chromium with its driver, and
the npm package axe-core:

    npm install --prefix /tmp/axe axe-core
    AXE_CORE=/tmp/axe/node_modules/axe-core/axe.min.js python benchmarks/web_pages.py
    make docs && AXE_CORE=... python benchmarks/web_pages.py --docs docs/_build/html --pictures /tmp/looks
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from selenium.webdriver.chrome.webdriver import WebDriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from formal_llm import Behaviour
from formal_llm.agents import Segment, Transcript
from formal_llm.agents.page import run_page
from formal_llm.agents.run_events import ToolCall
from formal_llm.procedures import Procedure, outcome_page, run_procedure
from formal_llm.tools import Executor, html_report
from tests.studio.browser import AXE, SIZES, chromium, emulate, page_width, serious_findings
from tests.studio.served import studio
from tests.tools.picture_tools import PACK, picture, plan_of, toolkit

ROOT = Path(__file__).parent.parent
#: The files that the studio is opened with, and the views that are looked at.
OPENED = {
    "cooking.cfg": ("rules", "picture", "plans", "step", "tree", "run", "judge", "compare"),
    "guard/expenses.guard": ("rules", "plans", "judge"),
}
#: What is there once a view shows what was asked for it.
READY = {"step": "#view-step .options", "tree": "#view-tree [role=treeitem]", "run": "#view-run .verdict"}
REFUND = """
check order(id) "Looks an order up."
goal action refund(id)
    order(id).days <= 30
"""


def reports() -> Iterator[tuple[str, str]]:
    """Reports of runs, each with its name: of tools, of an agent, of a procedure."""
    word = ("visual_question_answering", "colorization", "denoising", "input_image", "translation", "input_text")
    plan, given = plan_of(PACK.cfg, *word, goal="text_plan"), {"input_image": picture(size=400), "input_text": "What?"}
    yield "tools", html_report(Executor(toolkit()).run(plan, given), warnings=["A trial."])
    segments = (
        Segment("Ques", "How long is the Danube?", "user"), Segment("Tht", "I look it up."),
        Segment("Obs", "2,850 km", "environment"), Segment("Ans", "2,850 km"),
    )  # fmt: skip
    calls = [ToolCall(2, "Search", "Danube", "2,850 km", True, "")]
    yield "agent", run_page(Transcript("react", segments), Behaviour.load("react"), calls)
    procedure, known = Procedure.from_string(REFUND), {"id": 7}
    for name, days in (("done", 3), ("declined", 90)):
        tools: dict[str, Callable[..., object]] = {
            "order": partial(_answer_with, {"days": days}), "refund": partial(_answer_with, "paid back"),
        }  # fmt: skip
        outcome = run_procedure(procedure, "", None, tools, goal="refund", known=known)
        yield f"procedure-{name}", outcome_page(procedure, outcome, request="Refund order 7.", known=known)


def _answer_with(answer: object, **_: object) -> object:
    return answer


def look_at(driver: WebDriver, show: Callable[[], object], name: str, pictures: Path | None) -> Iterator[str]:
    """What is wrong with a page, at each width, light and dark."""
    for size in SIZES:
        for dark in (False, True):
            emulate(driver, size, dark=dark)
            show()
            place = f"{name}, {size} px, {'dark' if dark else 'light'}"
            if pictures is not None:
                driver.save_screenshot(str(pictures / f"{place.replace(', ', '-').replace(' px', '')}.png"))
            if AXE is not None:
                yield from (f"{place}: {finding}" for finding in serious_findings(driver, AXE))
            if (width := page_width(driver)) > SIZES[size][0]:
                yield f"{place}: too-wide: {width} pixels"


def look_at_studio(driver: WebDriver, pictures: Path | None) -> Iterator[str]:
    """What is wrong with the studio, in each of its views that has a tab at that width."""
    for file, views in OPENED.items():
        with studio(str(ROOT / "grammars" / file)) as served:
            for view in views:

                def show(view: str = view, address: str = served.address) -> None:
                    driver.get(address)
                    status = driver.find_element(By.ID, "status")
                    WebDriverWait(driver, 100).until(lambda _: "checked" in status.text)
                    driver.execute_script(
                        "window.studio.tab(arguments[0])", view if _has_tab(driver, view) else "plans"
                    )
                    if view == "run":
                        driver.find_element(By.CSS_SELECTOR, "#view-run button.main").click()
                    ready = (By.CSS_SELECTOR, READY.get(view, "body"))
                    WebDriverWait(driver, 100).until(lambda _: driver.find_elements(*ready))

                yield from look_at(driver, show, f"studio-{Path(file).stem}-{view}", pictures)


def _has_tab(driver: WebDriver, view: str) -> bool:
    return driver.find_element(By.ID, f"tab-{view}").is_displayed()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="the folder of the built book")
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of each page")
    args = parser.parse_args()
    if AXE is None:
        parser.error("AXE_CORE is the path of axe.min.js: npm install --prefix /tmp/axe axe-core")
    if args.pictures is not None:
        args.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as driver:
        files = sorted(args.docs.rglob("*.html")) if args.docs is not None else []
        pages = {path.relative_to(args.docs).with_suffix("").as_posix().replace("/", "-"): path for path in files}
        for name, text in reports():
            pages[f"report-{name}"] = path = Path(folder, f"{name}.html")
            path.write_text(text, encoding="utf-8")
        found = list(look_at_studio(driver, args.pictures))
        for name, path in pages.items():
            found += look_at(driver, partial(driver.get, path.resolve().as_uri()), name, args.pictures)
    print("\n".join(found))
    counts = Counter(one.split(": ")[1] for one in found)
    views = sum(map(len, OPENED.values()))
    print(f"{len(pages)} pages and {views} views of the studio, 4 looks each: {len(found)} findings {dict(counts)}")


if __name__ == "__main__":
    main()
