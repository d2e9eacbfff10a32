"""Methods that take turns on one table."""

import re
from argparse import Namespace


def test_methods_are_timed_on_the_same_table_and_may_decline(run_script):
    script = run_script("bench_inference", run_name="bench_inference")
    options = Namespace(weights="edges", seconds=0.0, beside=["zero", "cam"])
    row = script["compare"](4, 12, options)
    assert (row["d"], row["M"]) == (4, 12)
    assert row["cam"] == "regression on ten parents needs 20 samples"
    for name in ("graphbam", "graphbam, two-step", "zero"):  # seconds, and processor seconds in brackets
        assert re.fullmatch(r"\d+\.\d\d \(\d+\.\d\d\)", row[f"{name} s"])
    assert "cam s" not in row
