"""The routes of the page: hand in a table, look at it, infer its graph, fetch the answer.

The page is meant for people on one machine, so it answers requests for that machine's own names only: a foreign site
that a browser visits can neither read it (Host) nor send it tables (Origin). Every browser sees its own tables and
answers only. Whatever a visitor sends is bounded while it arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import re
import secrets
import zipfile
from collections.abc import AsyncIterator, Iterable
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import graphbam
from graphbam.errors import GraphbamError
from graphbam.inference.settings import COLLIDERS
from graphbam.tables.examples import EXAMPLES, example_path
from graphbam.web.desk import Desk, FullError, Job, Table, Visitor
from graphbam.web.words import Words, clean_name, read_choices, spell_error

LARGEST_UPLOAD = 100 * 2**20
"""Bytes of the largest table the page takes, packed or not; larger ones belong on the command line."""

LARGEST_CHOICES = 2**20
"""Bytes of the largest choices."""

MOST_UPLOADS = 4
"""Tables that may arrive at a time."""

TOO_LARGE = "the table is larger than {} MiB. Use graphbam infer on the command line, or keep fewer rows."
FULL = "too many are waiting already. Try again in a moment, or cancel a run that waits."
MANY = "these are more choices than the page takes. Use graphbam infer --knowledge on the command line."
GONE = "this page no longer has that table. Hand it in again."

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names under which a machine knows itself."""

COOKIE = "graphbam"
STATIC = {"": "text/html", "app.js": "text/javascript", "board.js": "text/javascript", "app.css": "text/css"}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = "sandbox allow-scripts allow-downloads allow-modals; frame-ancestors 'self'"
"""A report holds names from a stranger's table: it runs as if it came from another site."""


def build_app(
    weights: str = "edges", device: str = "auto", colliders: str | None = COLLIDERS, hosts: Iterable[str] = LOOPBACK
) -> Starlette:
    """The application; run it with any ASGI server, on the loopback address unless you mean to share it.

    Parameters
    ----------
    weights, device, colliders
        As in `graphbam.infer`; loaded once, by a process of its own, when the first table comes or at
        ``app.state.desk.start()``.
    hosts : iterable of str
        Host names the page answers to.

    Examples
    --------
    >>> [route.path for route in build_app().routes][:3]
    ['/', '/state', '/tables']
    """
    desk = Desk(weights, device, colliders)

    @contextlib.asynccontextmanager
    async def live(app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(desk.close)

    routes = [
        Route("/", _send_static),
        Route("/state", _send_state),
        Route("/tables", _take_table, methods=["POST"]),
        Route("/examples/{name}", _take_example, methods=["POST"]),
        Route("/tables/{key}/look", _look, methods=["POST"]),
        Route("/tables/{key}/runs", _start_run, methods=["POST"]),
        Route("/runs/{key}", _send_run),
        Route("/runs/{key}", _cancel_run, methods=["DELETE"]),
        Route("/runs/{key}/{file}", _send_file),
        Route("/{name}", _send_static),
    ]
    errors: Any = {GraphbamError: _say_error, HTTPException: _say_error, FullError: _say_error}
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=tuple(host.lower() for host in hosts))],
        lifespan=live,
        exception_handlers=errors,
    )
    app.state.desk, app.state.arriving = desk, 0
    return app


# ── messages ──────────────────────────────────────────────────────────────────────────────────────────────


def _say(words: Words, status: int) -> JSONResponse:
    return JSONResponse({"words": words}, status)


async def _say_error(request: Request, error: Exception) -> Response:
    """What is wrong, in the words of the page."""
    if isinstance(error, GraphbamError):
        return _say(spell_error(error), 422)
    if isinstance(error, FullError):
        return _say([FULL], 503)
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _say([error.detail if isinstance(error, HTTPException) else "something broke that should not"], status)


def _visitor(request: Request) -> Visitor:
    desk: Desk = request.app.state.desk
    return desk.visitor(request.state.visitor)


def _table(request: Request) -> Table:
    found = _visitor(request).tables.get(request.path_params["key"])
    if found is None:
        raise HTTPException(404, GONE)
    return found


def _run(request: Request) -> Job:
    found = _visitor(request).runs.get(request.path_params["key"])
    if found is None:
        raise HTTPException(404, "this page no longer has that answer.")
    return found


# ── the page ──────────────────────────────────────────────────────────────────────────────────────────────


async def _send_static(request: Request) -> Response:
    name = request.path_params.get("name", "")
    if name not in STATIC:
        raise HTTPException(404, "there is no such page.")
    text = (resources.files("graphbam") / "web" / "app" / (name or "page.html")).read_text(encoding="utf-8")
    return Response(text.replace("{{version}}", graphbam.__version__), media_type=STATIC[name])


async def _send_state(request: Request) -> Response:
    """Limits, examples and the history of this visitor, the latest first."""
    visitor = _visitor(request)
    runs = [_show_run(request, run) for run in reversed(visitor.runs.values())]
    limits = {"largest": LARGEST_UPLOAD, "examples": list(EXAMPLES)}
    return JSONResponse({"runs": runs, **limits})


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────


async def _take_table(request: Request) -> Response:
    """Take the body as a table; what is too large is refused while it arrives, or before."""
    state, table = request.app.state, Table(clean_name(request.query_params.get("name", "")))
    too_large = HTTPException(413, TOO_LARGE.format(LARGEST_UPLOAD // 2**20))
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > LARGEST_UPLOAD:
        raise too_large
    if state.arriving >= MOST_UPLOADS:
        raise FullError
    state.arriving += 1
    try:
        async for piece in request.stream():
            table.write(piece)
            if table.size > LARGEST_UPLOAD:
                raise too_large
    except BaseException as error:
        table.close()
        if isinstance(error, ClientDisconnect):
            return Response(status_code=400)
        raise
    finally:
        state.arriving -= 1
    if not table.size:
        raise HTTPException(422, f"{table.name} is empty: there is nothing to read.")
    _visitor(request).keep_table(table)
    return JSONResponse({"table": table.key, "name": table.name}, 201)


async def _take_example(request: Request) -> Response:
    if request.path_params["name"] not in EXAMPLES:
        raise HTTPException(404, "there is no such example.")
    path = example_path(request.path_params["name"])
    table = Table(path.name)
    table.write(path.read_bytes())
    _visitor(request).keep_table(table)
    return JSONResponse({"table": table.key, "name": table.name}, 201)


async def _read_choices(request: Request) -> dict[str, Any]:
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > LARGEST_CHOICES:
            raise HTTPException(413, MANY)
    try:
        sent = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        raise HTTPException(400, "the page sent something that is not JSON. Load the page again.") from None
    return read_choices(sent)


async def _look(request: Request) -> Response:
    """What is in a table, and what the choices do to it."""
    table, choices = _table(request), await _read_choices(request)
    desk: Desk = request.app.state.desk
    job = await asyncio.wrap_future(desk.looks.submit(Job("look", table, choices)).future)
    if job.state != "done":
        return _say(job.words, 422)
    return JSONResponse(job.answer)


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────


async def _start_run(request: Request) -> Response:
    table, choices = _table(request), await _read_choices(request)
    desk: Desk = request.app.state.desk
    run = desk.runs.submit(Job("infer", table, choices))
    _visitor(request).keep_run(run)
    return JSONResponse(_show_run(request, run), 202)


async def _send_run(request: Request) -> Response:
    return JSONResponse(_show_run(request, _run(request)))


async def _cancel_run(request: Request) -> Response:
    run = _run(request)
    desk: Desk = request.app.state.desk
    await asyncio.to_thread(desk.runs.cancel, run)
    return JSONResponse(_show_run(request, run))


def _show_run(request: Request, run: Job) -> dict[str, Any]:
    """A run as the page knows it."""
    desk: Desk = request.app.state.desk
    share, left = run.progress()
    return {
        "run": run.key,
        "table": run.table.key if run.table.key in _visitor(request).tables else None,
        "name": run.table.name,
        "choices": run.choices,
        "state": run.state,
        "before": desk.runs.place(run) if run.state == "waiting" else 0,
        "share": share,
        "left": left,
        "sentence": run.told.sentence,
        "words": run.words,
        "asked": run.asked,
        "took": None if run.ended is None or run.began is None else run.ended - run.began,
        "files": list(run.answer.get("files", ())),
        "names": run.answer.get("names", []),
        "links": run.answer.get("links", []),
    }


async def _send_file(request: Request) -> Response:
    """One file of an answer, all of them in a zip, or the report as a page."""
    run, name = _run(request), request.path_params["file"]
    files: dict[str, bytes] = run.answer.get("files", {})
    stem = Path(run.table.name.removesuffix(".gz")).stem or "table"
    if name == "report":
        if "report.html" not in files:
            raise HTTPException(404, "there is no report of this run.")
        return Response(
            files["report.html"], media_type="text/html", headers={"content-security-policy": REPORT_POLICY}
        )
    if name == "all.zip" and files:
        return _attach(await asyncio.to_thread(_zip, files), f"graphbam-{stem}.zip")
    if name not in files:
        raise HTTPException(404, "there is no such file of this run.")
    return _attach(files[name], f"{stem}-{name}")


def _attach(content: bytes, name: str) -> Response:
    header = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, media_type="application/octet-stream", headers={"content-disposition": header})


def _zip(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


# ── strangers ─────────────────────────────────────────────────────────────────────────────────────────────


class Guard:
    """Answers requests that name one of `hosts`, and that come from no other site; tells browsers apart by a cookie."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        if refusal := self._refuse(Headers(scope=scope)):
            return await PlainTextResponse(refusal, 403)(scope, receive, send)
        known = Request(scope).cookies.get(COOKIE, "")
        visitor = known if re.fullmatch(r"[\w-]{32}", known, re.ASCII) else secrets.token_urlsafe(24)
        scope.setdefault("state", {})["visitor"] = visitor

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", POLICY)
                headers.update({"x-content-type-options": "nosniff", "referrer-policy": "no-referrer"})
                headers.setdefault("cache-control", "no-store")
                if visitor != known:
                    headers.append("set-cookie", f"{COOKIE}={visitor}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        return await self.app(scope, receive, send_safely)

    def _refuse(self, headers: Headers) -> str:
        host, origin = headers.get("host", ""), headers.get("origin")
        if _host_of(f"//{host}") not in self.hosts:
            return f"this page answers to {', '.join(self.hosts)}, and was asked for as {host or 'nothing'}"
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return f"this page takes no tables from another site, and {origin} is one"
        return ""


def _host_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
