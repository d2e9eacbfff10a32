"""runs/bench_wide.py: links into some variables, ranked by methods that cost as much for each of them."""


def test_every_method_ranks_links_into_the_targets(run_script, monkeypatch, capsys):
    words = [
        "--variables",
        "12",
        "--samples",
        "60",
        "--targets",
        "5",
        "--trees",
        "5",
        "--mechanism",
        "linear",
        "--graphbam",
    ]
    run_script("bench_wide", *words)
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    scores = {line[0]: float(line[1]) for line in lines[1:]}
    assert list(scores) == ["correlation", "partial correlation", "GENIE3, 5 trees", "graphbam"]
    assert min(scores.values()) > 0.3
    assert scores["graphbam"] > 0.8
