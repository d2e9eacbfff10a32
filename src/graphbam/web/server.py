"""Two routes: the page that takes a table, and the report that comes back."""

from __future__ import annotations

import functools
import tempfile
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from graphbam.errors import GraphbamError
from graphbam.inference.journey import COLLIDERS, infer
from graphbam.output.report import render

LARGEST_UPLOAD = 200 * 2**20
"""Bytes of the largest table the page takes; larger ones belong on the command line."""


def build_app(weights: str = "edges", device: str = "auto", colliders: str | None = COLLIDERS) -> Starlette:
    """The application; run it with any ASGI server, on the loopback address unless you mean to share it.

    Examples
    --------
    >>> [route.path for route in build_app().routes]
    ['/', '/report']
    """
    report = functools.partial(_report, weights=weights, device=device, colliders=colliders)
    return Starlette(routes=[Route("/", _home), Route("/report", report, methods=["POST"])])


async def _home(request: Request) -> HTMLResponse:
    return HTMLResponse(page())


async def _report(request: Request, **settings: Any) -> HTMLResponse:
    """The report of the uploaded table, or the page again with one sentence on what is wrong."""
    if int(request.headers.get("content-length", 0)) > LARGEST_UPLOAD:
        return HTMLResponse(page("the table is larger than 200 MiB; use graphbam infer on the command line"), 413)
    async with request.form() as form:
        upload = form.get("table")
        if not isinstance(upload, UploadFile) or not upload.filename:
            return HTMLResponse(page("no table was chosen"), 400)
        content, name = await upload.read(), Path(upload.filename).name
        settings["encode"] = form.get("encode") == "yes"
    try:
        return HTMLResponse(await run_in_threadpool(render_upload, content, name, **settings))
    except GraphbamError as error:
        return HTMLResponse(page(str(error)), 422)


def render_upload(content: bytes, name: str, **settings: Any) -> str:
    """Infer the graph of an uploaded file, through a temporary copy that keeps its name, and render the report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            result = infer(path, **settings)
        except GraphbamError as error:
            raise type(error)(str(error).replace(f"{folder}/", "")) from None
    return render(result)


def page(problem: str = "") -> str:
    """The page that takes a table."""
    template = (resources.files("graphbam") / "web" / "page.html").read_text(encoding="utf-8")
    note = f'<p class="problem" role="alert">{escape(problem)}</p>' if problem else ""
    return template.replace("<!-- problem -->", note)
