"""Takes the pictures of the report and of the page for README.md and docs, in Chromium, light, 1280 pixels wide.

    python runs/screenshots.py             # docs/report.png, docs/page.png

Needs selenium, Chromium and its driver. Run it again after a release of weights or a change to either page.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver

DOCS = Path(__file__).resolve().parents[1] / "docs"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")


def open_window(width: int, height: int) -> webdriver.Chrome:
    """A window of this size, without frame."""
    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    window = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    return window


def keep(window: Any, path: Path) -> None:
    """Write what the window shows, in 256 colours."""
    picture = Image.open(io.BytesIO(window.get_screenshot_as_png())).convert("RGB")
    picture.quantize(256).save(path, optimize=True)
    print(path, path.stat().st_size, "bytes")


def wait_for(window: Any, script: str, seconds: float = 60) -> None:
    """Wait until a script in the page says so, and a moment more."""
    last = time.monotonic() + seconds
    while not window.execute_script(script):
        assert time.monotonic() < last, script
        time.sleep(0.1)
    time.sleep(1)


def graphbam(*words: str) -> list[str]:
    """The command line, as a list of words."""
    return [sys.executable, "-m", "graphbam.cli", *words]


def show_report(window: Any, folder: Path) -> None:
    """The report of the simulated table of `make demo`."""
    world = ["--n-variables", "12", "--n-samples", "500", "--degree", "3", "--seed", "1"]
    subprocess.run(graphbam("simulate", *world, "-o", str(folder / "world")), check=True, stdout=subprocess.DEVNULL)
    table, answer = folder / "world" / "data.csv", folder / "answer"
    subprocess.run(graphbam("infer", str(table), "-o", str(answer)), check=True, stdout=subprocess.DEVNULL)
    window.get((answer / "report.html").as_uri())
    wait_for(window, "return document.querySelector('#graph canvas, #graph svg')")
    keep(window, DOCS / "report.png")


def show_page(window: Any, address: str) -> None:
    """The view of a table, after experiments were named and two things were said."""
    window.get(address)
    wait_for(window, "return document.querySelectorAll('#examples button').length")
    window.find_elements("css selector", "#examples button")[1].click()
    wait_for(window, "return state.seen !== null")
    known = 'required: [["rain", "->", "moisture"]], forbidden: [["harvest", "->", "pests"]]'
    window.execute_script(f'choose({{ encode: true, interventions: "set", {known} }})')
    wait_for(window, "return !state.seen.problem")
    keep(window, DOCS / "page.png")


def main() -> None:
    """Take both pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    window = open_window(1280, 960)
    with tempfile.TemporaryDirectory() as folder:
        show_report(window, Path(folder))
    with subprocess.Popen(graphbam("serve", "--port", "0"), stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://[\d.:]+", server.stdout.readline())
        assert found, "graphbam serve did not say where it is"
        show_page(window, found[0])
        server.terminate()
    window.quit()


if __name__ == "__main__":
    main()
