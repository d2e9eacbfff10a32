"""Run methods again on the cases of runs/results for which they have rows, and put the new rows in place of the old.

    python runs/refresh.py graphbam graphbam-two-step graphbam-imputed --data ../shared/data
    python runs/refresh.py graphbam --folders hidden targets pairs gaps unseen tables

For new weights: one command, and every table and figure of docs/benchmark.md can be made again by
runs/benchmark_tables.py and runs/rivals.py. Stop it at any time, the same command goes on where it stopped; a folder is
written when it is complete. Rows of tables that are no longer the same, by their fingerprints, are refused.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

import graphbam as gb
from graphbam.benchmarks.store import COLUMNS, RESULTS, RULES, SETTINGS, tidy
from graphbam.errors import TableError

FOLDER = Path(__file__).resolve().parent / "results"
KEY = ["case", "trial", "method"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="+", help="names, as in the rows")
    parser.add_argument("--folders", nargs="+", help="of the results; all of them unless named")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="third-party tables")
    parser.add_argument("--results", type=Path, default=FOLDER)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "-o", "--out", type=Path, default=Path("out/refresh"), help="where runs are kept; new for new weights"
    )
    options = parser.parse_args()
    folders = options.folders or sorted(path.parent.name for path in options.results.glob(f"*/{RESULTS}.parquet"))
    for name in folders:
        refresh(options.results / name, options.methods, options.data, options.out / name, options.jobs)


def refresh(folder: Path, methods: list[str], data: Path, out: Path, jobs: int) -> None:
    """Replace the rows of some methods in one folder."""
    path = folder / f"{RESULTS}.parquet"
    rows, settings = pd.read_parquet(path), json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    rules = {name: settings[name] for name in RULES}
    for method in methods:
        own = rows[rows["method"] == method]
        if own.empty:
            continue
        parts = [
            gb.benchmark([method], words, out=out / f"{method}-{n_trials}", trials=n_trials, jobs=jobs, **rules)
            for n_trials, words in words_by_trials(own, data).items()
        ]
        rows = replace_rows(rows, pd.concat(parts))
        print(f"{folder.name}: {method}, {len(own)} rows", flush=True)
    rows.to_parquet(path, index=False)


def words_by_trials(rows: pd.DataFrame, data: Path) -> dict[int, list[str]]:
    """What to ask the benchmark for, by number of tables per simulated case; tables on disk with the fewest."""
    counts = rows[rows["source"] == "simulated"].groupby("case")["trial"].max() + 1
    words: dict[int, list[str]] = {}
    for case, n_trials in counts.items():
        words.setdefault(int(n_trials), []).append(str(case))
    on_disk = rows[rows["source"] != "simulated"]
    found = [find_table(case, source, data) for case, source in zip(on_disk["case"], on_disk["source"], strict=True)]
    if found:
        words.setdefault(min(words, default=1), []).extend(dict.fromkeys(found))
    return words


def find_table(case: str, source: str, data: Path) -> str:
    """The word for a case on disk.

    Examples
    --------
    >>> find_table("data/sachs+gaps10", "tables", Path("x/data")), find_table("pairs/sim", "pairs", Path("x/data"))
    ('x/data/sachs+gaps10', 'x/data/pairs')
    """
    name, plus, twist = case.partition("+")
    first, _, rest = name.partition("/")
    folder = data if first == data.name else data / first
    return str(folder) if source == "pairs" else f"{folder / rest}{plus}{twist}"


def replace_rows(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Rows of both, the new ones where both have them.

    Raises
    ------
    TableError
        If a table has changed since.
    """
    before = old.drop_duplicates(["case", "trial"]).set_index(["case", "trial"])["fingerprint"]
    now = new.drop_duplicates(["case", "trial"]).set_index(["case", "trial"])["fingerprint"]
    changed = now[now != before.reindex(now.index).fillna(now)]
    if len(changed):
        raise TableError(
            f"the table of {changed.index[0]} is not the one that other methods had; run all of them again"
        )
    kept = old[~old.set_index(KEY).index.isin(new.set_index(KEY).index)]
    records = [*kept.to_dict("records"), *new[new["case"].isin(set(old["case"]))].to_dict("records")]
    clean = ({name: None if pd.isna(row.get(name)) else row[name] for name in COLUMNS} for row in records)
    return tidy(clean)


if __name__ == "__main__":
    main()
