"""ballast simulate, as users and scripts meet it."""

import json
import shutil

import pytest
from program import ROOT
from refusal import assert_refused

RUN = """
[model]
preset = "llama3-8b"
num_layers = 8
vocab_size = 32000

[parallel]
tp = 2
pp = 2
cp = 2
dp = 2
zero = 1

[packing]
packer = "plain"
window = "8K"
micro_batches = 8

[sharding]
strategy = "per-sequence"

[cluster]
file = "profiles/clusters/h100_dgx.toml"

[workload]
lengths = "lengths.txt"

[training]
steps = 3
precision = "bfloat16"
"""


@pytest.fixture
def workplace(tmp_path):
    (tmp_path / "run.toml").write_text(RUN)
    (tmp_path / "lengths.txt").write_text("8192\n" * 50)
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    return tmp_path


def simulate(ballast, *arguments):
    done = ballast("simulate", "run.toml", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_says_what_a_run_would_take(ballast, workplace):
    found = simulate(ballast)
    assert found["gpus"] == 16 and found["steps"] == 3
    assert found["step_seconds"]["max"] == pytest.approx(found["step_seconds"]["mean"], rel=1e-6), "equal sequences"
    assert found["tokens_per_second"] == pytest.approx(8 * 8192 / found["step_seconds"]["mean"])
    assert 0.2 < found["mfu"] < 0.8
    assert found["mfu"] == pytest.approx(found["tflops_per_gpu"] / 989.4)
    assert found["bubble_share"] > 0.1, "four micro-batches over two stages"
    parts = found["peak_memory_bytes"]["by_part"]
    assert sum(parts.values()) == found["peak_memory_bytes"]["max"]
    assert found["longest_micro_batch_tokens"] > 8192
    assert found["fits"] and found["events"] > 0 and found["simulation_seconds"] >= 0


def test_the_same_run_takes_the_same_time_again(ballast, workplace):
    first, second = simulate(ballast), simulate(ballast)
    for figures in (first, second):
        del figures["simulation_seconds"]
    assert first == second


def test_balanced_packing_and_sharding_are_predicted_faster_on_unequal_documents(ballast, workplace):
    (workplace / "lengths.txt").write_text("".join(f"{65536 if i % 97 == 0 else 500 + i % 3000}\n" for i in range(4000)))
    at_64k = ("--set", "packing.window=64K", "--set", "training.steps=10")
    plain = simulate(ballast, *at_64k)
    balanced = simulate(ballast, *at_64k, "--set", "packing.packer=pool", "--set", "packing.max_tokens=96K", "--set",
                        "sharding.strategy=adaptive")
    assert balanced["tokens_per_second"] > 1.1 * plain["tokens_per_second"]
    assert balanced["compute"]["max_over_mean"] < plain["compute"]["max_over_mean"]


def test_recomputing_takes_time_and_spares_memory(ballast, workplace):
    kept = simulate(ballast)
    again = simulate(ballast, "--set", "parallel.recompute=full")
    assert 1.15 < again["step_seconds"]["mean"] / kept["step_seconds"]["mean"] < 1.4
    assert again["peak_memory_bytes"]["by_part"]["activations"] < kept["peak_memory_bytes"]["by_part"]["activations"] / 3


def test_says_by_how_much_a_run_does_not_fit(ballast, workplace):
    found = simulate(ballast, "--set", "model.num_layers=800")
    assert not found["fits"]
    assert found["memory_headroom_bytes"] < 0
    assert "DOES NOT FIT" in ballast("simulate", "run.toml", "--set", "model.num_layers=800").stdout


def test_writes_a_trace_that_holds_every_rank(ballast, workplace):
    simulate(ballast, "--trace", "trace.json")
    events = json.loads((workplace / "trace.json").read_text())["traceEvents"]
    assert {e["pid"] for e in events if e.get("ph") == "X"} == set(range(8))
    assert any(e["name"].startswith("EXCHANGE_TP") for e in events if e.get("ph") == "X")
    lanes = {e["name"]: e["tid"] for e in events if e.get("ph") == "X"}
    assert lanes["F0"] == 0 and lanes["RESHARD"] == 1


@pytest.mark.parametrize(
    "settings, mentions",
    [
        (["parallel.tp=3"], ["tp = 3", "num_heads = 32"]),
        (["parallel.zero=4"], ["zero = 4"]),
        (["parallel.recompute=some"], ["recompute", "some"]),
        (["cluster.file=none.toml"], ["none.toml"]),
        (["cluster.file="], ["[cluster] file", "[cost] profile"]),
        (["workload.lengths="], ["[workload] lengths"]),
        (["training.precision=float32"], ["precision", "bfloat16"]),
        (["model.vocab_size=0"], ["vocab_size"]),
        (["parallel.pp=16"], ["num_layers = 8"]),
        (["schedule.stage_layers=[4, 5]"], ["stage_layers add up to 9"]),
        (["schedule.round_size=4"], ["round_size"]),
        (["packing.micro_batches=7"], ["micro_batches = 7"]),
    ],
)
def test_bad_input_is_one_clear_line(ballast, workplace, settings, mentions):
    words = [word for setting in settings for word in ("--set", setting)]
    assert_refused(ballast("simulate", "run.toml", *words), *mentions)


def test_training_refuses_what_only_the_simulator_runs(ballast, workplace):
    done = ballast("corpus", "build", "run.toml", "--out", "corpus")
    assert done.returncode == 0, done.stderr
    assert_refused(ballast("train", "run.toml", "--set", "corpus.path=corpus", "--set", "run.folder=run", "--set",
                           "workload.lengths="), "tp", "ballast simulate")


def test_a_simulated_run_is_reported_and_compared_like_a_real_one(ballast, workplace):
    for name, packer in (("plain", "plain"), ("pool", "pool")):
        done = ballast("simulate", "run.toml", "--set", f"packing.packer={packer}", "--out", name, "--quiet")
        assert done.returncode == 0, done.stderr
    compared = json.loads(ballast("compare", "plain", "pool", "--json").stdout)
    assert [run["source"] for run in compared["runs"]] == ["predicted", "predicted"]
    simulated = simulate(ballast)
    assert compared["runs"][0]["summary"]["steps"] == simulated["steps"]
    done = ballast("report", "plain", "pool", "--out", "report.html")
    assert done.returncode == 0, done.stderr
    assert "predicted" in (workplace / "report.html").read_text()
    assert_refused(ballast("simulate", "run.toml", "--out", "plain"), "holds a run already")


def test_mapping_decides_what_crosses_nodes(ballast, workplace):
    inner = simulate(ballast, "--set", "parallel.mapping=tp-cp-pp-dp")
    outer = simulate(ballast, "--set", "parallel.mapping=tp-dp-pp-cp")
    assert outer["step_seconds"]["mean"] > inner["step_seconds"]["mean"], "keys and values over the network"
    assert_refused(ballast("simulate", "run.toml", "--set", "parallel.mapping=tp-cp-pp"), "mapping", "tp-cp-pp-dp")


def test_slow_gpus_cards_and_other_tenants_cost_time(ballast, workplace):
    healthy = simulate(ballast)["step_seconds"]["mean"]
    slow = simulate(ballast, "--set", "faults.slow_gpus=[[5, 1.5]]")["step_seconds"]["mean"]
    assert 1.2 * healthy < slow < 1.5 * healthy
    card = simulate(ballast, "--set", "faults.slow_nics=[[5, 8]]")["step_seconds"]["mean"]
    assert card > healthy
    cluster = workplace / "profiles/clusters/h100_dgx.toml"
    cluster.write_text(cluster.read_text() + "other_tenants_share = 0.5\n")
    assert simulate(ballast)["step_seconds"]["mean"] > healthy
    assert_refused(ballast("simulate", "run.toml", "--set", "faults.slow_gpus=[[16, 2]]"), "slow_gpus", "from 0 to 15")


def test_refuses_more_gpus_than_any_link_joins(ballast, workplace):
    cluster = workplace / "profiles/clusters/h100_dgx.toml"
    cluster.write_text(cluster.read_text().replace("gpus = 0", "gpus = 8"))
    assert_refused(ballast("simulate", "run.toml"), "h100_dgx.toml", "joins 8 GPUs, the run has 16")


def test_failures_and_checkpoints_leave_a_goodput(ballast, workplace):
    failing = ["--set", "faults.failures_per_gpu_day=0.05", "--set", "faults.restart_seconds=300", "--set",
               "storage.bytes_per_second=1e9"]
    found = simulate(ballast, *failing)["goodput"]
    intervals = found["by_interval"]
    best = max(intervals, key=lambda g: g["goodput_share"])
    assert 0.4 < best["checkpoint_every_steps"] / found["young_interval_steps"] < 2.5
    for g in intervals:
        parts = sum(g[p] for p in ("useful_seconds", "loading_seconds", "checkpoint_seconds", "lost_seconds", "restart_seconds"))
        assert parts == pytest.approx(found["horizon_seconds"], rel=1e-3)
    stated = simulate(ballast, *failing, "--set", "training.checkpoint_every=3")
    assert [g["checkpoint_every_steps"] for g in stated["goodput"]["by_interval"]] == [3]
    assert stated["busy_share_by_kind"]["CHECKPOINT"] > 0, "the third step writes one"


def test_software_that_launches_slowly_takes_longer(ballast, workplace):
    plain = simulate(ballast)["step_seconds"]["mean"]
    launched = simulate(ballast, "--set", "software.layer_launch_seconds=[0.01, 0.02]")["step_seconds"]["mean"]
    assert launched > plain
    unfused = simulate(ballast, "--set", "software.attention=unfused")["step_seconds"]["mean"]
    assert unfused > plain
    assert_refused(ballast("simulate", "run.toml", "--set", "software.attention=flash9"), "flash9", "unfused")


def test_shapes_far_from_what_was_measured_are_taken_only_when_asked_for(ballast, workplace):
    (workplace / "lengths.txt").write_text("600000\n" * 50)
    settings = ["--set", "packing.window=1M", "--set", "parallel.cp=4", "--set", "parallel.dp=1"]
    assert_refused(ballast("simulate", "run.toml", *settings), "h100_sxm.json", "attention queries", "32768", "--extrapolate")
    found = simulate(ballast, *settings, "--extrapolate")
    assert any("attention queries" in line for line in found["extrapolated"])
    (workplace / "lengths.txt").write_text("100000\n" * 50)
    found = simulate(ballast, "--set", "packing.window=128K")
    assert any("attention queries" in line for line in found["extrapolated"]), "a little outside is said"


@pytest.mark.parametrize("setting, mentions", [
    ("parallel.dp=3", ["micro_batches", "dp"]),
    ("parallel.tp=3", ["tp", "num_heads"]),
    ("plan.gpus=64", ["dp x pp x cp x tp = 16", "[plan] gpus = 64"]),
    ("parallel.pp=16", ["num_layers", "stages"]),
    ("storage.bytes_per_second=-1", ["bytes_per_second"]),
    ("faults.failures_per_gpu_day=-1", ["failures_per_gpu_day"]),
    ("software.layer_launch_seconds=[1]", ["layer_launch_seconds", "forward and backward"]),
])
def test_refuses_a_run_that_cannot_be(ballast, workplace, setting, mentions):
    assert_refused(ballast("simulate", "run.toml", "--set", setting), *mentions)
