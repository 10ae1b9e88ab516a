"""Rings, moves and routed messages on real processes: the same losses as one rank, and failures that end in time."""

import json
import os
import signal
import subprocess
import time

import pytest
from program import PROGRAM, ROOT
from rank_processes import rank_process
from refusal import assert_refused

EMULATION = ROOT / "profiles/emulated/two_by_two.toml"
CLUSTER = ROOT / "tools/emulated_cluster"


@pytest.mark.parametrize("strategy", ["ring", "hybrid-dp", "zeppelin", "auto"])
def test_gives_the_losses_of_one_rank_with_rings_over_four(training, strategy):
    exact = dict(training__precision="float64", training__steps=3)
    assert training(run__folder="one", **exact).returncode == 0
    done = training(run__folder="rings", parallel__cp=4, sharding__strategy=strategy, **exact)
    assert done.returncode == 0, done.stderr
    assert training.losses("rings") == pytest.approx(training.losses("one"), rel=1e-10)


def test_a_plan_file_may_move_tokens_and_train_the_same(training):
    exact = dict(training__precision="float64", training__steps=2)
    assert training(run__folder="one", parallel__cp=4, sharding__strategy="zeppelin", **exact).returncode == 0
    plans = [json.loads(line) for line in (training.folder / "one/plan.jsonl").read_text().splitlines()]
    moved = 0
    for plan in plans:
        for shard in plan["shard_plans"][0]:
            tokens = [sum(end - begin for begin, end in ranges) for ranges in shard["ranges"]]
            shard["moves"] = [[0, 2, tokens[0] // 2]] if tokens[0] > 1 else []
            moved += len(shard["moves"])
            if not shard["moves"]:
                del shard["moves"]
    assert moved > 0
    (training.folder / "moved.jsonl").write_text("".join(json.dumps(plan) + "\n" for plan in plans))
    done = training("--plan", "moved.jsonl", run__folder="moved", parallel__cp=4, **exact)
    assert done.returncode == 0, done.stderr
    assert training.losses("moved") == pytest.approx(training.losses("one"), rel=1e-10)


def test_refuses_a_ring_that_names_a_rank_twice(training):
    assert training(run__folder="one", parallel__cp=2, sharding__strategy="ring", training__steps=1).returncode == 0
    text = (training.folder / "one/plan.jsonl").read_text().replace('"ranks":[0,1]', '"ranks":[0,1,1]')
    (training.folder / "twice.jsonl").write_text(text)
    assert_refused(training("--plan", "twice.jsonl", run__folder="two", parallel__cp=2), "ring 0 names rank 1 twice")


def test_refuses_more_tokens_than_the_ranks_may_hold_and_says_how_many(training):
    done = training(parallel__cp=2, sharding__strategy="zeppelin", sharding__rank_tokens=50)
    assert done.returncode == 2, done.stderr
    assert "too many; raise [sharding] rank_tokens to" in done.stderr


def test_a_rank_killed_in_mid_ring_ends_all_within_the_time_out_naming_it(training):
    run = training.start(parallel__cp=4, sharding__strategy="ring", training__steps=100000, launch__timeout_seconds=10)
    training.wait_for_steps(2)
    os.kill(rank_process(training.folder, 2), signal.SIGKILL)
    killed = time.monotonic()
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 1
    assert time.monotonic() - killed < 15
    assert "rank 2" in "\n".join(errors.strip().splitlines()[-3:])


def in_cluster_or_skip(folder, *command):
    may = subprocess.run([CLUSTER, "check", EMULATION], capture_output=True, text=True, check=False)
    if may.returncode == 3:
        pytest.skip(f"this machine emulates no cluster: {may.stderr.strip() or may.stdout.strip()}")
    return subprocess.run([CLUSTER, "run", EMULATION, "--timeout", "240", "--", *map(str, command)], capture_output=True,
                          text=True, timeout=300, cwd=folder, check=False)


def test_trains_on_an_emulated_cluster_over_routed_messages_to_the_losses_of_one_rank(training):
    # A packer that weighs documents would pack by another cost than the emulated one.
    exact = dict(training__precision="float64", training__steps=2, packing__packer="plain")
    assert training(run__folder="one", **exact).returncode == 0
    done = in_cluster_or_skip(training.folder, *training.command("--emulate", EMULATION, run__folder="emulated", parallel__cp=4,
                                                sharding__strategy="zeppelin", **exact))
    assert done.returncode == 0, done.stderr
    assert training.losses("emulated") == pytest.approx(training.losses("one"), rel=1e-9)
    assert all(step["predicted_step_seconds"] > 0 for step in training.metrics("emulated"))


def paced(training, *arguments, **settings):
    """On an emulated device but this machine's own links: a cost in seconds, which needs no root."""
    return training("--emulate", EMULATION, *arguments, run__folder="paced", parallel__cp=4, sharding__strategy="zeppelin",
                    packing__packer="plain", training__checkpoint_every=1, **settings)


def test_leaves_the_placement_of_its_first_step_in_rings_and_keeps_it_on_resume(training):
    done = paced(training, training__steps=1)
    assert done.returncode == 0, done.stderr
    file = training.folder / "paced/placement.json"
    shown = json.loads(file.read_text())
    plan = json.loads((training.folder / "paced/plan.jsonl").read_text().splitlines()[0])
    documents = plan["micro_batches"][shown["dp_rank"]][shown["micro_batch"]]["documents"]
    assert shown["step"] == 0 and shown["placement"]["tokens"] == sum(document[3] for document in documents)
    assert [rank["rank"] for rank in shown["placement"]["ranks"]] == [0, 1, 2, 3]
    assert shown["zones"]["points"] and shown["placement"]["slowest_seconds"] > 0
    before = file.stat().st_mtime_ns
    done = paced(training, "--resume", training__steps=2)
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mtime_ns == before
    assert not list((training.folder / "paced").glob("*.partial*"))


def test_leaves_no_placement_without_a_cost_in_seconds(training):
    assert training(run__folder="rings", parallel__cp=2, sharding__strategy="ring", training__steps=1).returncode == 0
    assert not (training.folder / "rings/placement.json").exists()


def test_refuses_an_emulated_cluster_of_other_ranks_or_without_a_card(training, tmp_path):
    assert_refused(training("--emulate", EMULATION, parallel__cp=2), "nodes x ranks_per_node = 4, the run has 2 ranks")
    bare = tmp_path / "bare.toml"
    bare.write_text(EMULATION.read_text().replace("cards_per_node = 2", "cards_per_node = 0"))
    assert_refused(training("--emulate", bare, parallel__cp=4), "cards_per_node = 0: a node needs a network card")


def test_explains_zones_and_a_placement_on_a_published_cluster(tmp_path):
    page = tmp_path / "page.html"
    links = ["--cluster", ROOT / "profiles/clusters/zeppelin_a.toml", "--model", "llama-7b", "--cp", "16"]
    zones = subprocess.run([PROGRAM, "explain", "zones", "--json", *links], capture_output=True, text=True, check=True)
    zones = json.loads(zones.stdout)
    assert zones["longest_tokens"] == 262144
    assert 0 < zones["intra_node_from_tokens"] < zones["inter_node_from_tokens"] < 262144
    done = subprocess.run([PROGRAM, "explain", "placement", "--json", "--lengths", "64K,9K,3K,1K,700,500", "--out", page,
                           *links], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    seconds = {name: trial["seconds"] for name, trial in found["trials"].items()}
    assert found["placement"]["slowest_seconds"] == pytest.approx(min(seconds.values()))
    assert found["placement"]["over_even_share"] == pytest.approx(
        found["placement"]["slowest_seconds"] / found["placement"]["even_share_seconds"])
    assert found["placement"]["sharding"] in seconds and "per_document" in seconds  # one spelling
    assert len(found["placement"]["ranks"]) == 16
    assert page.stat().st_size > 10000
