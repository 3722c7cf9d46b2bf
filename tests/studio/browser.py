"""A Chromium for tests and measurements of pages: at a width, light or dark, with the rules of axe-core."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
#: The file axe.min.js of the npm package axe-core; None where it is not given.
AXE = Path(os.environ["AXE_CORE"]) if os.environ.get("AXE_CORE") else None
#: The widths and heights at which pages are looked at: a phone and a desk.
SIZES = {"390": (390, 844), "1400": (1400, 980)}


@contextmanager
def chromium(downloads: Path | None = None) -> Iterator[webdriver.Chrome]:
    """A browser without a window; what it downloads comes into the folder."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en"):
        options.add_argument(argument)
    options.add_argument("--window-size=1400,980")
    options.binary_location = str(CHROMIUM)
    if downloads is not None:
        allowed = {
            "download.default_directory": str(downloads),
            "profile.default_content_setting_values.automatic_downloads": 1,
        }
        options.add_experimental_option("prefs", allowed)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def emulate(driver: webdriver.Chrome, size: str = "1400", *, dark: bool = False) -> None:
    """Give the page a size of :data:`SIZES`, and a light or dark machine."""
    width, height = SIZES[size]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 800}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})


def page_width(driver: webdriver.Chrome) -> int:
    """How wide the page is laid out: more than the window where one has to scroll sideways."""
    return int(driver.execute_script("return document.documentElement.scrollWidth"))


def serious_findings(driver: webdriver.Chrome, axe: Path) -> list[str]:
    """What axe-core finds serious or critical on the page: the rule, the element, what is wrong with it."""
    driver.set_script_timeout(300)
    driver.execute_script(axe.read_text(encoding="utf-8") + "\nwindow.axe = axe;")
    found: dict[str, Any] = driver.execute_async_script(
        "const done = arguments[0];"
        "axe.run({resultTypes: ['violations']}).then(done, (error) => done({error: `${error}`}))"
    )
    assert "violations" in found, found
    return [
        f"{one['id']}: {node['target']}: {' '.join(node['failureSummary'].split())}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]
