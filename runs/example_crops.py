"""Makes the example table `crops`: a simulated field trial with text, gaps and two experiments.

    python runs/example_crops.py

rain → irrigation, rain → moisture ← irrigation, soil → moisture, soil → nitrogen, moisture → leaves ← nitrogen,
leaves → pests, leaves → harvest ← pests. In 120 rows each, `irrigation` or `nitrogen` was set at random; `set` says so.
"""

from __future__ import annotations

import argparse
import gzip
from pathlib import Path

import numpy as np
import pandas as pd

N_ROWS, N_SET = 600, 120
OUT = Path(__file__).resolve().parents[1] / "src" / "graphbam" / "tables" / "data" / "crops.csv.gz"


def make_crops(rng: np.random.Generator) -> pd.DataFrame:
    """Draw the table."""
    noise = lambda scale: rng.normal(scale=scale, size=N_ROWS)  # noqa: E731
    was_set = rng.permutation(np.repeat(["", "irrigation", "nitrogen"], [N_ROWS - 2 * N_SET, N_SET, N_SET]))
    soil = rng.choice(["clay", "loam", "sand"], size=N_ROWS, p=[0.3, 0.4, 0.3])
    holds = pd.Series(soil).map({"clay": 1.0, "loam": 0.4, "sand": -0.9}).to_numpy()
    rain = 60 + 18 * rng.gamma(2.0, 0.7, size=N_ROWS)
    dry = (90 - rain) / 20
    irrigation = np.where(was_set == "irrigation", rng.uniform(0, 40, N_ROWS), 20 + 7 * np.tanh(dry) + noise(4))
    nitrogen = np.where(was_set == "nitrogen", rng.uniform(20, 80, N_ROWS), 50 + 9 * holds + noise(8))
    moisture = 24 + 0.10 * (rain - 85) + 0.22 * (irrigation - 20) + 3 * holds + noise(1.5)
    leaves = 3 + 0.14 * (moisture - 24) + 0.9 * np.tanh((nitrogen - 50) / 15) + noise(0.35)
    pests = np.exp(0.5 + 0.45 * (leaves - 3) + noise(0.45))
    harvest = 6 + 1.5 * (leaves - 3) - 0.45 * pests + noise(0.5)
    table = pd.DataFrame(
        {
            "plot": [f"P{k:03d}" for k in rng.permutation(N_ROWS)],
            "soil": soil,
            "rain": rain.round(0),
            "irrigation": irrigation.round(1),
            "nitrogen": nitrogen.round(1),
            "moisture": moisture.round(1),
            "leaves": leaves.round(2),
            "pests": pests.round(1),
            "harvest": harvest.round(2),
            "set": was_set,
        }
    )
    table.loc[rng.random(N_ROWS) < 0.04, "pests"] = np.nan
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    text = make_crops(np.random.default_rng(0)).to_csv(index=False, lineterminator="\n")
    OUT.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(OUT, OUT.stat().st_size, "bytes")
