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
