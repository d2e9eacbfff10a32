"""Two routes: the page that takes a table, and the report that comes back.

The page is meant for one person on one machine, so it answers requests for that machine's own names only: a foreign
site that a browser visits can neither read it (Host) nor send it tables (Origin).
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from html import escape
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, UploadFile
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graphbam.errors import GraphbamError, Setting
from graphbam.inference.journey import infer
from graphbam.inference.networks import gives_answers, open_colliders, open_weights
from graphbam.inference.settings import COLLIDERS
from graphbam.output.report import render
from graphbam.tables.read import gunzip

LARGEST_UPLOAD = 200 * 2**20
"""Bytes of the largest table the page takes, packed or not; larger ones belong on the command line."""

TOO_LARGE = "the table is larger than 200 MiB; use graphbam infer on the command line"

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names under which a machine knows itself."""


class TooLargeError(Exception):
    """More was sent than the page takes."""


def build_app(
    weights: str = "edges", device: str = "auto", colliders: str | None = COLLIDERS, hosts: Iterable[str] = LOOPBACK
) -> Starlette:
    """The application; run it with any ASGI server, on the loopback address unless you mean to share it.

    Parameters
    ----------
    weights, device, colliders
        As in `graphbam.infer`; loaded here, once.
    hosts : iterable of str
        Host names the page answers to.

    Examples
    --------
    >>> [route.path for route in build_app(colliders=None).routes]
    ['/', '/report']
    """
    edges = open_weights(weights, device)
    is_enough = colliders == COLLIDERS and gives_answers(edges)  # then directions come from the same pass
    loaded = {"weights": edges, "colliders": colliders if is_enough else open_colliders(colliders, device)}
    # One thread for all tables: two at once would take twice the memory, and no less time. It keeps the threads that
    # torch makes for it, which a pool's next thread would make anew, and tables that wait keep no other thread busy.
    worker = ThreadPoolExecutor(1, thread_name_prefix="tables")

    def work(content: bytes, name: str, encode: bool) -> str:
        return render_upload(content, name, encode=encode, **loaded)

    async def report(request: Request) -> HTMLResponse:
        """The report of the uploaded table, or the page again with one sentence on what is wrong."""
        try:
            upload = await _read_form(request)
            if upload is None:
                return HTMLResponse(page("no table was chosen"), 400)
            return HTMLResponse(await asyncio.get_running_loop().run_in_executor(worker, work, *upload))
        except TooLargeError:
            return HTMLResponse(page(TOO_LARGE), 413)
        except GraphbamError as error:
            return HTMLResponse(page(error.say(spell_setting)), 422)

    routes = [Route("/", _home), Route("/report", report, methods=["POST"])]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=tuple(hosts))])


async def _home(request: Request) -> HTMLResponse:
    return HTMLResponse(page())


async def _read_form(request: Request) -> tuple[bytes, str, bool] | None:
    """Content, name and whether to encode; None without a file. What is too large is refused while it arrives."""
    n_bytes = 0

    async def receive() -> Message:
        nonlocal n_bytes
        message = await request.receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > LARGEST_UPLOAD:
            raise TooLargeError
        return message

    async with Request(request.scope, receive).form() as form:
        upload = form.get("table")
        if not isinstance(upload, UploadFile) or not upload.filename:
            return None
        return await upload.read(), upload.filename, form.get("encode") == "yes"


def render_upload(content: bytes, name: str, **settings: Any) -> str:
    """Infer the graph of an uploaded file and render the report; nothing is written to the disk.

    Examples
    --------
    >>> render_upload(b"a,b", "../..")
    Traceback (most recent call last):
    graphbam.errors.TableError: table has a header but no rows below it. Check that it was saved completely.
    """
    name = re.split(r"[\\/]", name)[-1].strip(". ") or "table"
    if content[:2] == b"\x1f\x8b":
        content = gunzip(content, name, LARGEST_UPLOAD)
    table = io.BytesIO(content)
    table.name = name
    return render(infer(table, **settings))


def spell_setting(setting: Setting) -> str:
    """A setting in the words of the page, which has one box; all others are left to the command line."""
    if setting.name == "encode":
        return "the box “turn text columns into numbers”"
    if setting.name == "drop" and isinstance(setting.value, (list, tuple)):
        return f"a file without {', '.join(map(str, setting.value))}"
    return f"graphbam infer {setting.as_option()} on the command line"


def page(problem: str = "") -> str:
    """The page that takes a table."""
    template = (resources.files("graphbam") / "web" / "page.html").read_text(encoding="utf-8")
    note = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    return template.replace("<!-- problem -->", note)


class Guard:
    """Answers requests that name one of `hosts`, and that come from no other site."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and (refusal := self._refuse(Headers(scope=scope))):
            await PlainTextResponse(refusal, 403)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _refuse(self, headers: Headers) -> str:
        host, origin = headers.get("host", ""), headers.get("origin")
        if _host_of(f"//{host}") not in self.hosts:
            return f"this page answers to {', '.join(self.hosts)}, and was asked for as {host or 'nothing'}"
        if origin is not None and urlsplit(origin).netloc != host:
            return f"this page takes no tables from another site, and {origin} is one"
        return ""


def _host_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
