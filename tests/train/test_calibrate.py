"""ballast calibrate: a profile refitted from a run."""

import json

import pytest
from refusal import assert_refused


def profile():
    """A profile of the tests' model that is far off: everything takes a microsecond a token."""
    sizes = [16, 256, 1024]
    return {"version": 1,
            "key": {"device": "d", "kernel_build": "k", "precision": "float32", "mapping": "m"},
            "measured_by": "hand", "taken_seconds": 1.0, "optimizer_seconds_per_parameter": 1e-9,
            "attention_block_overhead_seconds": 1e-6,
            "attention": [{"queries": q, "keys": k, "causal": causal, "forward_seconds": 1e-9 * q * k, "backward_seconds": 2e-9 * q * k}
                          for q in sizes for k, causal in ((q, True), (1024, False))],
            "linear": [{"part": part, "tokens": t, "forward_seconds": 1e-6 * t, "backward_seconds": 2e-6 * t}
                       for part in ("layer", "embedding", "head") for t in sizes],
            "collectives": [{"operation": operation, "ranks": 2, "bytes": size, "seconds": 1e-5 + 1e-9 * size}
                            for operation in ("all_reduce", "all_gather", "reduce_scatter", "send") for size in (1024, 65536)]}


def test_refits_a_profile_and_says_what_changed(training, ballast):
    done = training(parallel__cp=2)
    assert done.returncode == 0, done.stderr
    (training.folder / "profile.json").write_text(json.dumps(profile()))
    done = ballast("calibrate", "run", "--profile", "profile.json", "--out", "refitted.json", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    parts = {change["part"]: change["scale"] for change in found["changes"]}
    assert {"layer forward", "attention backward", "all_gather", "optimizer"} <= parts.keys()
    assert found["work_error"]["after"] < found["work_error"]["before"]
    assert found["step_error"]["after"] < found["step_error"]["before"]
    refitted = json.loads((training.folder / "refitted.json").read_text())
    assert "calibrate run" in refitted["measured_by"]
    was, now = (next(p for p in text["linear"] if p["part"] == "layer")["forward_seconds"] for text in (profile(), refitted))
    assert now == pytest.approx(was * parts["layer forward"], rel=1e-6)


def test_refuses_runs_without_a_profile_or_a_timeline(training, ballast):
    assert training().returncode == 0
    assert_refused(ballast("calibrate", "run", "--out", "refitted.json"), "run", "--profile")
    (training.folder / "profile.json").write_text(json.dumps(profile()))
    for file in (training.folder / "run/timeline").glob("measured*"):
        file.unlink()
    assert_refused(ballast("calibrate", "run", "--profile", "profile.json", "--out", "refitted.json"), "no measured timeline")
    assert not (training.folder / "refitted.json").exists()
