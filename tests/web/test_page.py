"""The page in a real browser, served by the real command: from a file to a picture, and every way in between."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from browser import open_browser
from cases import each

CROPS = "field trials with two experiments"


@pytest.fixture(scope="module")
def address():
    """`graphbam serve` on a free port, in a process of its own."""
    command = [sys.executable, "-m", "graphbam.cli", "serve", "--port", "0"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            line = process.stdout.readline()
            yield process.pid, re.search(r"http://127\.0\.0\.1:\d+", line)[0]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) in (0, 130)  # by Ctrl+C


class Visit:
    """What a person does with the page."""

    def __init__(self, driver, address):
        self.driver = driver
        driver.get(address)
        self.until(lambda: self.all("#examples button"))

    def all(self, query):
        return self.driver.find_elements("css selector", query)

    def one(self, query):
        return self.driver.find_element("css selector", query)

    def until(self, check, seconds=60):
        last = time.monotonic() + seconds
        while not (found := self._try(check)):
            assert time.monotonic() < last, self.driver.find_element("css selector", "body").text
            time.sleep(0.05)
        return found

    def _try(self, check):
        from selenium.common.exceptions import StaleElementReferenceException

        try:
            return check()
        except StaleElementReferenceException:
            return None

    def click(self, find):
        """Click the first of what is found; a page that is drawn anew meanwhile is looked at again."""
        self.until(lambda: [True for one in find()[:1] if one.click() is None])

    def press(self, text, within="body"):
        """Press the button with this text."""
        self.click(lambda: [b for b in self.all(f"{within} button, {within} a") if b.text == text])

    def take(self, path):
        self.one("#file").send_keys(str(path))

    def sees(self, query, text=""):
        return self.until(lambda: [e for e in self.all(query) if e.is_displayed() and text in e.text])[0]

    def settle(self):
        """Wait until the page has looked at the table again."""
        time.sleep(0.05)
        self.until(lambda: self.one("#plan").get_attribute("aria-busy") == "false")

    def pick(self, name):
        self.click(lambda: [n for n in self.all("#board .node") if n.get_attribute("data-name") == name])

    def fits(self):
        """Nothing is wider than the window."""
        return self.driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")

    def troubles(self):
        return [line["message"] for line in self.driver.get_log("browser") if line["level"] == "SEVERE"]


@pytest.mark.parametrize(("width", "is_dark"), [(400, True), pytest.param(1280, False, marks=pytest.mark.long)])
def test_from_a_table_to_a_picture(address, tmp_path, width, is_dark):
    table = tmp_path / "my trial.csv"
    lines = [f"{k % 7},{(3 * k + k % 5) % 11},{(k * k) % 13},{['low', 'mid', 'high'][k % 3]}" for k in range(80)]
    table.write_text("dose,effect,age,group\n" + "\n".join(lines), encoding="utf-8")
    with open_browser(width, is_dark=is_dark, downloads=str(tmp_path)) as driver:
        visit = Visit(driver, address[1])
        assert visit.fits()
        visit.take(table)
        visit.sees("#trouble", "column 'group' holds text in all 80 rows")
        assert not visit.one("#infer").is_enabled()
        visit.press("turn text into numbers", "#trouble")
        visit.sees("#steps", "text coded")
        visit.pick("dose")
        visit.pick("effect")
        visit.sees("#known", "dose causes effect")
        visit.settle()
        visit.click(lambda: visit.all("#columns input")[2:])  # age
        visit.sees("#steps", "left out as asked: 'age'")
        assert visit.fits()
        visit.settle()
        visit.press("Infer the graph")
        visit.sees("#answer-about", "3 variables")
        assert visit.fits()
        driver.switch_to.frame(visit.one("#report"))
        visit.until(lambda: "my trial.csv" in driver.title or visit.all("h1"))
        assert visit.one("h1").text == "my trial.csv"
        driver.switch_to.default_content()
        visit.press("Everything (zip)")
        packed = tmp_path / "graphbam-my trial.zip"
        visit.until(packed.exists)
        with zipfile.ZipFile(packed) as archive:
            assert {"graph.png", "report.html"} <= set(archive.namelist())
        visit.press("← Table and choices")
        visit.sees("#known", "dose causes effect")
        assert not visit.all("#columns input")[2].is_selected()
        driver.back()
        visit.sees("#answer-about", "3 variables")
        visit.press("graphbam", ".top")
        visit.sees("#runs", "my trial.csv")
        assert visit.troubles() == []


def test_columns_may_be_called_as_what_every_object_has(address, tmp_path):
    table = tmp_path / "races.csv"
    lines = [f"{k % 7},{(3 * k + k % 5) % 11},{(k * k) % 13}" for k in range(80)]
    table.write_text("constructor,points,toString\n" + "\n".join(lines), encoding="utf-8")
    with open_browser(1280) as driver:
        visit = Visit(driver, address[1])
        visit.take(table)
        visit.sees("#board .node", "constructor")
        assert [one.get_attribute("value") for one in visit.all("#columns select")] == ["0", "0", "0"]
        columns = {one.get_attribute("transform").split(" ")[0] for one in visit.all("#board .node")}
        assert len(columns) == 2  # a ring: as columns stand those that come at different times
        assert not visit.troubles()


def test_experiments_are_suggested_and_knowledge_that_contradicts_itself_is_refused(address):
    with open_browser() as driver:
        visit = Visit(driver, address[1])
        visit.press(CROPS)
        visit.sees("#trouble")
        visit.one("#encode").click()
        visit.press("use it so", "#suggest")
        visit.sees("#steps", "targets read from column 'set'")
        assert visit.one("#infer").is_enabled()
        for pair in (("harvest", "rain"), ("rain", "harvest")):
            for name in pair:
                visit.pick(name)
            visit.settle()
        visit.sees("#trouble", "harvest")
        visit.press("×", "#known")
        visit.settle()
        visit.until(lambda: visit.one("#infer").is_enabled())
        assert visit.troubles() == []


def test_two_people_at_once_and_a_cancelled_run(address, tmp_path):
    wide = tmp_path / "wide.csv"
    rows = (",".join(str((k * k * n + 7 * k) % 101) for n in range(1, 41)) for k in range(1500))
    wide.write_text("\n".join([",".join(f"v{n}" for n in range(40)), *rows]), encoding="utf-8")
    with open_browser() as first, open_browser(400) as second:
        one, two = Visit(first, address[1]), Visit(second, address[1])
        one.take(wide)
        one.sees("#takes", "40 variables")
        first.execute_script("choose({ stability: 100 })")
        one.settle()
        one.press("Infer the graph")
        one.sees("#run-left", "left")
        two.press(CROPS)
        two.sees("#trouble")
        two.press("leave out soil, set", "#trouble")
        two.sees("#takes", "variables")
        two.press("Infer the graph")
        two.sees("#run-sentence", "1 run before yours")
        one.press("Cancel")
        one.sees("#run-sentence", "Cancelled")
        two.sees("#answer-about", "7 variables")
        one.press("Back to the table")
        one.sees("#takes", "40 variables")
        one.press("graphbam", ".top")
        one.sees("#runs", "cancelled")
        assert len(one.all("#runs li")) == 1
        assert one.troubles() == two.troubles() == []


def test_garbage_is_one_sentence_and_sheets_are_buttons(address, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"%PDF-1.7 not a table")
    with open_browser(400) as driver:
        visit = Visit(driver, address[1])
        visit.take(path)
        visit.sees("#problem", "x.csv is a PDF")
        driver.execute_script("state.largest = 10")
        visit.take(path)
        visit.sees("#problem", "is larger than")
        driver.execute_script("state.largest = 1e9")
        book = tmp_path / "book.xlsx"
        cells = pd.DataFrame({name: [k * k % m for k in range(40)] for name, m in (("u", 7), ("v", 11), ("w", 13))})
        with pd.ExcelWriter(book) as writer:
            for sheet in ("Before", "After"):
                cells.to_excel(writer, sheet_name=sheet, index=False)
        visit.take(book)
        visit.press("After", "#problem")
        visit.sees("#table-name", "book.xlsx::After")
        driver.get(f"{address[1]}/#run=nobody")
        visit.sees("#problem", "no longer has")
        assert visit.fits()


def peak_mib(pid):
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))[1]) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@each("is_chunked", [False, True])
def test_two_hundred_megabytes_are_refused_and_never_held(address, is_chunked):
    pid, home = address
    before, piece = peak_mib(pid), b"1,2\n" * 2**18
    connection = http.client.HTTPConnection(home.removeprefix("http://"), timeout=60)
    pieces = (piece for _ in range(200))
    headers = {} if is_chunked else {"content-length": str(200 * len(piece))}
    try:
        connection.request("POST", "/tables?name=x.csv", pieces, headers, encode_chunked=is_chunked)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it hung up while we were still sending
    else:
        assert connection.getresponse().status == 413
    assert peak_mib(pid) - before < 40
    connection = http.client.HTTPConnection(home.removeprefix("http://"), timeout=60)
    connection.request("GET", "/state")
    assert connection.getresponse().status == 200
