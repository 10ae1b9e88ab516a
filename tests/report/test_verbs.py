"""compare, report and trace on the command line: what they print, and how they refuse."""

import json

import pytest
from synthetic_run import write_run


@pytest.fixture
def runs(tmp_path):
    return {name: write_run(tmp_path / name, packer, steps=6) for name, packer in (("plain", "plain"), ("balanced", "wlb"))}


def rate(written, skip=1):
    steps = written["metrics"][skip:]
    return sum(m["tokens"] for m in steps) / sum(m["step_seconds"] for m in steps)


def test_compare_gives_the_summaries_and_the_speed_up_as_json(ballast, runs):
    result = ballast("compare", "plain", "balanced", "--skip-steps", 2, "--json")
    assert result.returncode == 0, result.stderr
    out = json.loads(result.stdout)
    base, other = out["runs"]
    assert base["summary"]["tokens"] == runs["plain"]["summary"]["tokens"]
    assert other["steps_compared"] == 4
    speed = other["speedup"]
    assert speed["ratio"] == pytest.approx(rate(runs["balanced"], 2) / rate(runs["plain"], 2))
    assert speed["low"] <= speed["ratio"] <= speed["high"]
    assert speed["source"] == "measured" and "bootstrap" in speed["spread"]
    assert other["loss_difference"] == pytest.approx(runs["balanced"]["metrics"][-1]["loss"] - runs["plain"]["metrics"][-1]["loss"])
    assert {d["what"] for d in other["differences"]} == {"packer"}


def test_compare_takes_interleaved_pairs(ballast, runs):
    out = json.loads(ballast("compare", "plain", "balanced", "plain", "balanced", "--pairs", "--json").stdout)
    ratio = rate(runs["balanced"]) / rate(runs["plain"])
    assert out["pairs"]["speedups"] == pytest.approx([ratio, ratio])
    assert out["pairs"]["median"] == pytest.approx(ratio)
    refused = ballast("compare", "plain", "balanced", "plain", "--pairs")
    assert refused.returncode == 2 and "even number" in refused.stderr


def test_compare_tells_people_too(ballast, runs):
    result = ballast("compare", "plain", "balanced")
    assert result.returncode == 0
    assert "Loss of balanced minus plain's" in result.stdout


def test_a_trace_opens_as_json_with_a_process_a_rank(ballast, runs, tmp_path):
    result = ballast("trace", "balanced", "--out", "trace.json")
    assert result.returncode == 0, result.stderr
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {e["pid"] for e in events} == {0, 1, 2, 3}
    starts, ends = ({e["id"] for e in events if e["ph"] == phase} for phase in "sf")
    assert starts == ends and len(starts) == 6 * 4 * 2 * 2  # steps, micro-batches, F and B, cp ranks


def test_a_trace_nests_its_events(ballast, runs, tmp_path):
    """Viewers draw a row's events as a stack: each must lie inside the one it begins in."""
    assert ballast("trace", "balanced", "--out", "trace.json").returncode == 0
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    for rank in range(4):
        open_events = []
        for e in sorted((e for e in events if e["ph"] == "X" and e["pid"] == rank), key=lambda e: (e["ts"], -e["dur"])):
            while open_events and open_events[-1] <= e["ts"] + 0.11:
                open_events.pop()
            assert not open_events or e["ts"] + e["dur"] <= open_events[-1] + 0.11
            open_events.append(e["ts"] + e["dur"])


@pytest.mark.parametrize("verb", [["compare", "plain"], ["report", "--out", "page.html"], ["trace", "--out", "page.html"]])
def test_a_folder_that_is_no_run_is_one_line_and_exit_2(ballast, runs, tmp_path, verb):
    (tmp_path / "empty").mkdir()
    for folder, what in (("absent", "no such run folder"), ("empty", "not a run folder")):
        result = ballast(*verb, folder)
        assert result.returncode == 2
        assert what in result.stderr and folder in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("file", ["metrics.jsonl", "summary.json", "plan.jsonl", "timeline/predicted.jsonl", "corpus.json"])
def test_a_broken_file_is_named_and_nothing_is_written(ballast, runs, tmp_path, file):
    (tmp_path / "plain" / file).write_text("{\"broken\n")
    result = ballast("report", "plain", "--out", "page.html")
    assert result.returncode == 2
    assert file.split("/")[-1] in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_skipping_every_step_is_refused(ballast, runs):
    result = ballast("compare", "plain", "balanced", "--skip-steps", 6)
    assert result.returncode == 2 and "--skip-steps 6" in result.stderr


def test_a_source_that_is_not_there_is_refused_with_the_nearest(ballast, runs):
    result = ballast("trace", "plain", "--source", "mesured", "--out", "t.json")
    assert result.returncode == 2 and "measured" in result.stderr
