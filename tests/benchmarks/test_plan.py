"""The order of fits, what is done again, what is spared, and how long it will take."""

import pytest

from graphbam.benchmarks.cases import resolve_cases
from graphbam.benchmarks.methods import Method
from graphbam.benchmarks.plan import OVERHEAD, Forecast, Timeouts, is_open, make_plan

METHODS = [Method("b", "b", "dag"), Method("a", "a", "dag")]


def plan(*names, trials=2):
    return make_plan(resolve_cases(names), METHODS, trials)


def row(case="sine-d20-m200", method="a", status="timeout", seconds=1.0):
    (found,) = resolve_cases([case])
    shape = {"n_variables": found.n_variables, "n_samples": found.n_samples}
    return {"case": case, "method": method, "status": status, "source": "simulated", "family": found.family,
            "seconds": seconds, "reason": None} | shape  # fmt: skip


def test_small_tables_come_first_and_methods_stay_together_in_a_class_of_widths():
    keys = [entry.key() for entry in plan("sine-d20-m50", "tree-d10-m90", "sine-d5-m50", "sine-d11-m50")]
    small = [(case, trial) for case in ("sine-d5-m50", "tree-d10-m90") for trial in (0, 1)]
    large = [(case, trial) for case in ("sine-d11-m50", "sine-d20-m50") for trial in (0, 1)]
    assert keys == [(*table, method) for tables in (small, large) for method in "ba" for table in tables]


@pytest.mark.parametrize("status", ["ok", "error", "timeout", "memory", "skipped"])
def test_only_what_is_to_be_done_again_is_open(status):
    assert is_open(None, frozenset())
    assert not is_open(row(status=status), frozenset())
    assert is_open(row(status=status), frozenset({"error", "timeout"})) == (status in ("error", "timeout"))


def test_what_was_spared_is_done_again_with_the_time_outs():
    spared = row(status="skipped") | {"reason": Timeouts([row()]).find(resolve_cases(["sine-d50-m200"])[0], "a")}
    assert is_open(spared, frozenset({"timeout"}))
    assert not is_open(row(status="skipped") | {"reason": "needs R"}, frozenset({"timeout"}))


@pytest.mark.parametrize(
    ("case", "method", "is_spared"),
    [
        ("sine-d50-m200", "a", True),
        ("sine-d20-m500", "a", True),
        ("sine-d20-m200", "a", False),  # the other trials of the same case
        ("sine-d100-m50", "a", False),  # wider, but shorter
        ("sine-d10-m500", "a", False),
        ("cosine-d50-m200", "a", False),
        ("sine-d50-m200", "b", False),
    ],
)
def test_only_larger_cases_of_the_same_family_and_method_are_spared(case, method, is_spared):
    timeouts = Timeouts([row(), row(case="cosine-d20-m200", status="error")])
    reason = timeouts.find(resolve_cases([case])[0], method)
    assert reason == ("timed out at d=20, M=200" if is_spared else None)


def forecast_of(*names, rows=(), trials=2, limit=60.0):
    return Forecast(plan(*names, trials=trials), rows, limit)


def test_the_forecast_knows_methods_apart_and_grows_with_the_variables(monkeypatch):
    monkeypatch.setattr("graphbam.benchmarks.plan.OVERHEAD", 0.0)
    forecast = forecast_of("sine-d10-m50", "sine-d20-m50")
    assert forecast.seconds(0.0) == 0.0
    for method, seconds in (("a", 1.0), ("a", 3.0), ("b", 0.5)):
        forecast.note(row("sine-d10-m50", method, "ok", seconds))
    assert forecast.seconds(4.5) == pytest.approx(0.5 + 2 * (0.5 * 4) + 2 * (2.0 * 4))
    forecast.note(row("sine-d20-m50", "a", "ok", 20.0))
    assert forecast.seconds(24.5) == pytest.approx(0.5 + 2 * (0.5 * 4) + 20.0)
    forecast.note(row("sine-d10-m50", "b", "skipped", None))
    assert forecast.seconds(24.5) == pytest.approx(2 * (0.25 * 4) + 20.0)


def test_the_forecast_measures_how_fast_it_goes():
    """Two processes do two seconds of work in one; rows of an earlier run say what fits cost, not how fast it goes."""
    forecast = forecast_of("sine-d10-m50", rows=[row("sine-d10-m50", name, "ok", 1.0) for name in "ab"])
    forecast.note(row("sine-d10-m50", "a", "ok", 1.0))
    forecast.note(row("sine-d10-m50", "b", "ok", 1.0))
    assert forecast.seconds(1 + OVERHEAD) == pytest.approx(1 + OVERHEAD)


def test_no_fit_is_expected_to_pass_the_limit():
    rows = [row("sine-d10-m50", name, "ok", 5.0) for name in "ab"]
    assert forecast_of("sine-d100-m50", rows=rows, trials=1).seconds(0.0) == 120.0
