"""A browser before the routes of the page, without a browser."""

from __future__ import annotations

import os
import time

from starlette.testclient import TestClient

HOME = "http://127.0.0.1:8765"
TABLE = b"a,b,c\n" + b"".join(b"%d,%d,%d\n" % (i % 7, (3 * i + i % 5) % 11, (i * i) % 13) for i in range(60))


class Page:
    """A browser before the routes of an application."""

    def __init__(self, app):
        self.app, self.client = app, TestClient(app, base_url=HOME)

    def hand_in(self, content=TABLE, name="cells.csv"):
        """The key of a table."""
        answer = self.client.post("/tables", params={"name": name}, content=content)
        assert answer.status_code == 201, answer.text
        return answer.json()["table"]

    def look(self, table, **choices):
        return self.client.post(f"/tables/{table}/look", json=choices)

    def start(self, table, **choices):
        return self.client.post(f"/tables/{table}/runs", json=choices)

    def wait(self, run, *states, seconds=60):
        """The run, as soon as it is in one of these states."""
        last = time.monotonic() + seconds
        while time.monotonic() < last:
            told = self.client.get(f"/runs/{run}").json()
            if told["state"] in (states or ("done", "refused", "cancelled")):
                return told
            time.sleep(0.02)
        raise AssertionError(told)

    def infer(self, table, **choices):
        answer = self.start(table, **choices)
        assert answer.status_code == 202, answer.text
        return self.wait(answer.json()["run"])

    def close(self):
        self.app.state.desk.close()


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
