"""runs/curve.py: a picture of a run, whatever its task."""

from toy_runs import run


def test_the_curve_of_a_run_is_a_picture(run_script, tiny_training, tmp_path):
    run(tiny_training(), tmp_path, 3)
    run_script("curve", tmp_path / "log.jsonl")
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
