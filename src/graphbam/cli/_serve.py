"""`graphbam serve`: the page that takes a table."""

from __future__ import annotations

from typing import Annotated

import typer

from graphbam.errors import ConfigError


def serve(
    port: Annotated[int, typer.Option(help="Port on this machine.")] = 8765,
    weights: Annotated[str, typer.Option(help="Weights by name or path.")] = "edges",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Open a page on this machine that takes a table and shows its report."""
    try:
        import uvicorn

        from graphbam.web import build_app
    except ImportError as error:
        raise ConfigError(f"the page needs {error.name}; install it with pip install 'graphbam[web]'") from None
    from graphbam.nn.weights import load_weights

    load_weights(weights)  # refuse a wrong name now, not at the first table
    typer.echo(f"open http://127.0.0.1:{port} (stop with Ctrl+C)")
    uvicorn.run(build_app(weights, device), host="127.0.0.1", port=port, log_level="warning")
