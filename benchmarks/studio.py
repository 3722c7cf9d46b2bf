"""What a keystroke costs in the studio, with a file of 10,000 productions.

The table has the processor time of the worker for each part of the answer to a keystroke, until the error or the
picture is there; and, with ``--browser`` (needs selenium and a Chromium with its driver), the longest time between a
key and the next frame of the page that the browser measured.

    python benchmarks/studio.py
    python benchmarks/studio.py --productions 10000 --browser
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from formal_llm.studio.questions import answer
from formal_llm.studio.rules import read


def rules(productions: int, seed: int = 0) -> str:
    """A grammar of so many productions, in which every nonterminal leads to two others."""
    rng = random.Random(seed)
    heads = productions // 4
    lines = []
    for n in range(heads):
        later, other = min(n + 1, heads - 1), rng.randrange(heads)
        lines.append(f"N{n} -> t{n} N{later} | t{n} N{other} | u{n % 97} | u{n % 89} t{n}")
    return "\n".join(lines) + "\n"


def keystroke(text: str) -> Iterator[tuple[str, float]]:
    """The parts of the answer after a keystroke, each with the processor time until it is there."""
    read.cache_clear()
    begun = time.process_time()
    for part in answer({"question": "check", "text": text, "ending": ".cfg"}):
        yield str(part["part"]), time.process_time() - begun


def in_browser(text: str) -> tuple[float, int]:
    """The longest time from a key to the next frame of the page, in milliseconds; and how many keys were pressed."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    from tests.studio.browser import chromium
    from tests.studio.served import studio

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "large.cfg")
        file.write_text(text, encoding="utf-8")
        with studio(str(file)) as served, chromium() as driver:
            try:
                driver.get(served.address)
                WebDriverWait(driver, 120).until(lambda _: driver.find_element(By.ID, "problems") is not None)
                driver.execute_script(
                    "window.keys = []; new PerformanceObserver((list) => { for (const one of list.getEntries()) "
                    "if (one.name === 'input' || one.name === 'keydown') window.keys.push(one.duration); })"
                    ".observe({type: 'event', durationThreshold: 16, buffered: true});"
                )
                area = driver.find_element(By.ID, "text")
                area.send_keys(Keys.CONTROL, Keys.HOME)
                typed = "# a comment, typed into a large file\n"
                for sign in typed:
                    area.send_keys(sign)
                frames = [float(one) for one in driver.execute_script("return window.keys")]
            finally:
                driver.execute_script("window.onbeforeunload = null; window.studio.saved = window.studio.editor.text;")
    return max(frames, default=16.0), len(typed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--productions", type=int, default=10_000)
    parser.add_argument("--browser", action="store_true", help="measure the page in Chromium, too")
    options = parser.parse_args()
    text = rules(options.productions)
    broken = text.replace(f"N{options.productions // 8} ->", f"N{options.productions // 8} >", 1)
    list(keystroke("S -> a"))  # what is only done once
    print(f"{options.productions:,} productions, {len(text):,} characters; processor seconds until the part is there")
    for name, said in (("with an error", broken), ("without", text)):
        for part, seconds in keystroke(said):
            print(f"{name:<14}  {part:<14}  {seconds:6.2f}")
    if options.browser:
        longest, keys = in_browser(text)
        print(f"the page: at most {longest:.0f} ms from a key to the next frame, of {keys} keys")


if __name__ == "__main__":
    main()
