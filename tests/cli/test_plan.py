"""ballast plan, as users and scripts meet it."""

import json
import shutil
import tomllib

import pytest
from program import ROOT
from refusal import assert_refused

RUN = """
[model]
preset = "llama3-8b"
vocab_size = 32000

[packing]
window = "16K"
micro_batches = 8
max_delay = 4

[cluster]
file = "profiles/clusters/h100_dgx.toml"

[workload]
lengths = "lengths.txt"

[training]
precision = "bfloat16"

[plan]
gpus = 16
windows = [1]
"""


@pytest.fixture
def workplace(tmp_path):
    (tmp_path / "run.toml").write_text(RUN)
    lengths = [200 + (i * 7919) % 3000 + (12000 if i % 41 == 0 else 0) for i in range(2000)]
    (tmp_path / "lengths.txt").write_text("\n".join(map(str, lengths)))
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    return tmp_path


def plan(ballast, *arguments):
    done = ballast("plan", "run.toml", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ranks_what_fits_and_says_why_the_rest_fell(ballast, workplace):
    found = plan(ballast)
    assert found["considered"] > 5000
    assert found["considered"] == found["rejected"]["count"] + len(found["candidates"])
    assert found["rejected"]["count"] == sum(found["rejected"]["by_reason"].values())
    speeds = [c["tokens_per_second"] for c in found["candidates"]]
    assert speeds == sorted(speeds, reverse=True)
    for candidate in found["candidates"]:
        degrees = candidate["degrees"]
        assert degrees["dp"] * degrees["pp"] * degrees["cp"] * degrees["tp"] == 16
        assert candidate["peak_memory_bytes"] <= 85_899_345_920
        assert candidate["step_seconds"] > 0
    assert {d["verdict"] for d in found["degrees"]} <= {"simulated", "bounded", "does not fit"}
    assert any(v["what"] == "packer plain" for v in found["variations"])


def test_the_best_as_a_run_is_simulated_as_it_was_ranked(ballast, workplace):
    found = plan(ballast, "--out-run", "best.toml", "--out", "plan.json", "--page", "plan.html")
    best = found["candidates"][0]
    done = ballast("simulate", "best.toml", "--json", "--set", "training.steps=20", "--skip-steps", "12")
    assert done.returncode == 0, done.stderr
    simulated = json.loads(done.stdout)
    assert simulated["tokens_per_second"] == pytest.approx(best["tokens_per_second"], rel=1e-9)
    assert simulated["peak_memory_bytes"]["max"] == best["peak_memory_bytes"]
    saved = json.loads((workplace / "plan.json").read_text())
    assert saved["choice"]["degrees"] == best["degrees"]
    assert saved["memory"]["headroom_bytes"] == 85_899_345_920 - best["peak_memory_bytes"]
    assert saved["replan_when"] and saved["restart_every_steps"] >= 1 and sum(saved["bytes_by_tier"].values()) > 0
    assert "plan" not in tomllib.loads((workplace / "best.toml").read_text())
    page = (workplace / "plan.html").read_text().replace("http://www.w3.org/2000/svg", "")
    assert "http://" not in page and "https://" not in page, "it needs no network"


def test_the_same_run_gives_the_same_plan(ballast, workplace):
    one, other = plan(ballast), plan(ballast)
    one.pop("planning_seconds"), other.pop("planning_seconds")
    assert one == other


def test_prints_the_choice_the_alternatives_and_what_one_change_costs(ballast, workplace):
    done = ballast("plan", "run.toml")
    assert done.returncode == 0, done.stderr
    for words in ("16 GPUs", "tokens/s", "The first with one thing changed", "Other degrees", "do not fit in memory"):
        assert words in done.stdout


def running(folder, seconds, predicted):
    folder.mkdir()
    lines = [{"step": i, "loss": 1.0, "tokens": 131072, "step_seconds": s, "predicted_step_seconds": predicted}
             for i, s in enumerate(seconds)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_running_plan_is_given_up_only_for_a_sure_saving(ballast, workplace):
    best = plan(ballast)["candidates"][0]
    ideal = 131072 / best["tokens_per_second"]
    running(workplace / "slow", [1.4 * ideal * (1 + 0.01 * (i % 3)) for i in range(20)], 1.4 * ideal)
    running(workplace / "good", [ideal * (1 + 0.05 * (i % 3 - 1)) for i in range(20)], ideal)
    change = plan(ballast, "--running", "slow", "--steps-left", "100000", "--change-seconds", "60")["transition"]
    assert change["change"] and change["saved_a_step_seconds"] == pytest.approx(0.4 * ideal, rel=0.1)
    stay = plan(ballast, "--running", "good", "--steps-left", "100000", "--change-seconds", "60")["transition"]
    assert not stay["change"], stay["why"]


@pytest.mark.parametrize("settings, mentions", [
    (["cluster.file="], ["[cluster] file is missing"]),
    (["plan.gpus=0"], ["[plan] gpus is missing"]),
    (["plan.mappings=['tp-pp']"], ["mappings", "tp-cp-pp-dp"]),
    (["plan.zero=[4]"], ["zero", "0, 1, 2 or 3"]),
    (["plan.packers=['wbl']"], ["wbl", "wlb"]),
    (["plan.shardings=['per-sequnce']"], ["per-sequnce", "per-sequence"]),
    (["plan.gpu=8"], ["gpu", "gpus"]),
    (["training.precision=float32"], ["precision", "bfloat16"]),
])
def test_refuses_what_cannot_be_planned(ballast, workplace, settings, mentions):
    arguments = [word for setting in settings for word in ("--set", setting)]
    assert_refused(ballast("plan", "run.toml", *arguments), *mentions)


def test_says_what_comes_nearest_where_nothing_fits(ballast, workplace):
    cluster = workplace / "profiles/clusters/h100_dgx.toml"
    cluster.write_text(cluster.read_text().replace("85_899_345_920", "1_000_000_000"))
    done = ballast("plan", "run.toml", "--set", "plan.packers=['plain']", "--page", "plan.html")
    assert done.returncode == 1
    assert "nothing fits" in done.stderr and "bytes" in done.stderr and "tp 8" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (workplace / "plan.html").exists()


def test_says_which_rules_leave_no_choice(ballast, workplace):
    done = ballast("plan", "run.toml", "--set", "plan.tp=[3]")
    assert done.returncode == 1
    assert "heads and widths divide by tp" in done.stderr
