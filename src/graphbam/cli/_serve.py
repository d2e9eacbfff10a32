"""`graphbam serve`: the page that takes a table."""

from __future__ import annotations

import socket
from typing import Annotated

import typer

from graphbam.errors import ConfigError

LAST_PORT = 65535


def serve(
    port: Annotated[int, typer.Option(help="Port on this machine; 0 takes a free one.")] = 8765,
    weights: Annotated[str, typer.Option(help="Weights by name or path.")] = "edges",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also answer to this host name, as behind a proxy; repeatable."),
    ] = None,
) -> None:
    """Open a page on this machine that takes tables, shows what will be done to them, and gives their reports."""
    try:
        import uvicorn

        from graphbam.web.server import LOOPBACK, build_app
    except ImportError as error:
        raise ConfigError(f"the page needs {error.name}; install it with pip install 'graphbam[web]'") from None
    with _listen(port) as listener:
        app = build_app(weights, device, hosts=(*LOOPBACK, *(host or ())))
        try:
            app.state.desk.start()  # weights that do not load are one sentence, here
            typer.echo(f"open http://127.0.0.1:{listener.getsockname()[1]} (stop with Ctrl+C)")
            uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
        finally:
            app.state.desk.close()


def _listen(port: int) -> socket.socket:
    """Take the port before anything else, so that a port in use is one sentence."""
    if not 0 <= port <= LAST_PORT:
        raise ConfigError(f"port {port} does not exist: a port lies between 1 and {LAST_PORT}, and 0 takes a free one.")
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise ConfigError(
            f"port {port} cannot be used: {reason[0].lower()}{reason[1:]}. If the page is open already, use that one; "
            "or choose another port with --port, 0 for any."
        ) from None
    return listener
