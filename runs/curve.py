"""The learning curve of a run as a picture.

python runs/curve.py out/run/log.jsonl -o docs/edges-curve.png
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from graphbam.output.figures import save


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path, help="log.jsonl of a run of graphbam train")
    parser.add_argument("-o", "--out", type=Path, help="picture to write; default: curve.png beside the log")
    options = parser.parse_args()
    print(draw_curve(options.log, options.out or options.log.with_name("curve.png")))


def draw_curve(log: Path, path: Path) -> Path:
    """Draw losses and throughput over the tables seen, from a run's log.jsonl."""
    from matplotlib.figure import Figure

    with open(log) as stream:
        lines = [json.loads(line) for line in stream]
    tables = [line["tables"] for line in lines]
    figure = Figure(figsize=(8, 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    colours = {"loss": "#1b4965", "classes": "#5fa8d3", "edges": "#f4a259", "children": "#5fa8d3", "others": "#f4a259"}
    for name, colour in ((name, colour) for name, colour in colours.items() if name in lines[0]):
        values = [line[name] for line in lines]
        above.plot(tables, values, color=colour, alpha=0.25, linewidth=0.8)
        above.plot(tables, smooth(values), color=colour, linewidth=1.8, label=name)
    above.set(yscale="log", ylabel="loss, mean over pairs or candidates")
    above.yaxis.set_major_formatter("{x:g}")
    low, high = above.get_ylim()
    above.yaxis.set_minor_formatter("{x:g}" if high < 10 * low else "")  # over more than a decade they would crowd
    above.legend(frameon=False)
    below.plot(tables, [line["tables_per_second"] for line in lines], color="#6c757d", linewidth=1)
    below.set(xlabel="simulated tables seen", ylabel="tables / s")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    return save(figure, path)


def smooth(values: list[float], weight: float = 0.9) -> list[float]:
    """Exponential average, corrected for its start.

    Examples
    --------
    >>> smooth([1.0, 1.0, 1.0])
    [1.0, 1.0, 1.0]
    """
    total, mass, result = 0.0, 0.0, []
    for value in values:
        total, mass = weight * total + (1 - weight) * value, weight * mass + (1 - weight)
        result.append(total / mass)
    return result


if __name__ == "__main__":
    main()
