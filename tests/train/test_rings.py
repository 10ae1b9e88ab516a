"""Rings and moves on real processes: the same losses as one rank, bad plans refused, failures that end in time."""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from emulated import TWO_BY_TWO
from program import PROGRAM, ROOT
from rank_processes import ends, rank_process, start_by_hand
from refusal import assert_refused

ZEPPELIN_A = ["--cluster", ROOT / "profiles/clusters/zeppelin_a.toml", "--model", "llama-7b"]


@pytest.mark.parametrize("strategy", ["ring", "hybrid-dp", "zeppelin", "auto"])
def test_gives_the_losses_of_one_rank_with_rings_over_four(training, strategy):
    exact = dict(training__precision="float64", training__steps=3)
    assert training(run__folder="one", **exact).returncode == 0
    done = training(run__folder="rings", parallel__cp=4, sharding__strategy=strategy, **exact)
    assert done.returncode == 0, done.stderr
    assert strategy != "ring" or "RING_KV" in training.span_kinds("rings")
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
    assert "REMAP" in training.span_kinds("moved")
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


def test_ranks_that_disagree_on_a_plan_of_rings_end_and_one_says_which(training):
    commands = [training.command(parallel__cp=3, sharding__strategy=strategy) for strategy in ["ring", "ring", "per-document"]]
    ended = ends(start_by_hand(commands, training.folder), 60)
    assert [code for code, _ in ended] == [1, 1, 1], ended
    said = "".join(errors for _, errors in ended)
    assert len(said.splitlines()) == 1, said
    assert "ranks have different plans for the next step; rank 2: " in said
    assert "; ranks 0, 1: " in said


def test_ranks_of_another_launcher_say_a_fault_of_the_input_once(training):
    assert training(run__folder="used", parallel__cp=2, sharding__strategy="ring", training__steps=1).returncode == 0
    shutil.copy(training.folder / "used/plan.jsonl", training.folder / "two.jsonl")
    for command, fault in [
        (training.command(parallel__cpp=3), 'did you mean "pp"?'),
        (training.command(run__folder="used", parallel__cp=3), "used: this run folder already has steps"),
        (training.command("--plan", "two.jsonl", parallel__cp=3), "two.jsonl: step 0: is for dp 1 x pp 1 x cp 2"),
        (training.command(parallel__cp=3, sharding__strategy="zeppelin", sharding__rank_tokens=20), "too many; raise"),
    ]:
        ended = ends(start_by_hand([command] * 3, training.folder), 60)
        assert [code for code, _ in ended] == [2, 2, 2], ended
        assert all(errors == "" for _, errors in ended[1:]), ended
        assert len(ended[0][1].splitlines()) == 1 and fault in ended[0][1], ended


def paced(training, *arguments, **settings):
    """On an emulated device but this machine's own links: a cost in seconds, which needs no root."""
    return training("--emulate", TWO_BY_TWO, *arguments, run__folder="paced", parallel__cp=4, sharding__strategy="zeppelin",
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


def test_a_rank_that_refuses_its_input_alone_leaves_no_other_waiting(training):
    commands = [training.command(parallel__cp=cp) for cp in [3, 2, 3]]
    began = time.monotonic()
    ended = ends(start_by_hand(commands, training.folder), 60)
    assert [code for code, _ in ended] == [2, 2, 2], ended
    assert "".join(errors for _, errors in ended).startswith("ballast: rank 1: [parallel] dp 1 x pp 1 x cp 2")
    assert time.monotonic() - began < 20  # which is the time-out


def test_explains_zones_and_a_placement_on_a_published_cluster(tmp_path):
    page = tmp_path / "page.html"
    links = [*ZEPPELIN_A, "--cp", "16"]
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


def test_explains_a_plan_only_on_the_cluster_and_ranks_that_it_is_of(training, ballast):
    assert training(parallel__cp=4, sharding__strategy="ring", training__steps=1).returncode == 0
    plan = ["explain", "placement", "--plan", training.folder / "run/plan.jsonl"]
    assert_refused(ballast(*plan, "--cp", 16), "--cp = 16", "is of 4 ranks")
    assert ballast(*plan, *ZEPPELIN_A).returncode == 0
    of_nodes = (training.folder / "run/plan.jsonl").read_text().replace('"ranks_per_node":0', '"ranks_per_node":2')
    (training.folder / "nodes.jsonl").write_text(of_nodes)
    assert_refused(ballast(*plan[:3], training.folder / "nodes.jsonl", *ZEPPELIN_A), "4 ranks on nodes of 2",
                   "take 4 of them")


def test_explains_one_rank_in_all(ballast):
    done = ballast("explain", "placement", "--json", "--lengths", "4K,1K", "--cp", "1", *ZEPPELIN_A)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [trial["seconds"] for trial in found["trials"].values()] == [found["placement"]["slowest_seconds"]]
    assert found["placement"]["slowest_seconds"] == pytest.approx(found["placement"]["even_share_seconds"])
