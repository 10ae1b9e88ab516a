"""Whole trainings, with ranks as real processes: layouts, launchers, failures, resume."""

import json
import os
import shutil
import signal
import subprocess
import time
import tomllib

import pytest
from program import PROGRAM, ROOT
from refusal import assert_refused
from rank_processes import processes_in, rank_process


def last_lines(text, number=3):
    return "\n".join(text.strip().splitlines()[-number:])


def test_trains_on_one_rank_and_leaves_a_run_folder(training):
    done = training("--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["steps"] == 6
    assert summary["loss"]["last"] < summary["loss"]["first"]
    run = training.folder / "run"
    for name in ["run.toml", "plan.jsonl", "metrics.jsonl", "summary.json", "corpus.json",
                 "timeline/measured-rank-00000.jsonl", "checkpoints/step-000006/manifest.json"]:
        assert (run / name).exists(), name
    assert len(training.metrics()) == 6
    assert sum(step["tokens"] for step in training.metrics()) == summary["tokens"]


def test_tunes_the_queues_on_its_own_documents_and_resumes_with_the_same(training):
    tuned = dict(packing__tune_queues="true", packing__queues="[]")
    done = training(run__folder="whole", **tuned)
    assert done.returncode == 0, done.stderr
    resolved = tomllib.loads((training.folder / "whole/run.toml").read_text())["packing"]
    assert not resolved["tune_queues"]
    assert len(resolved["queues"]) > 0
    # Set up again, as a resumed run is: the same queues, so that it packs the same.
    assert training("--resume", run__folder="whole", training__steps=8, **tuned).returncode == 0
    again = tomllib.loads((training.folder / "whole/run.toml").read_text())["packing"]
    assert again["queues"] == resolved["queues"]
    assert len(training.metrics("whole")) == 8


def test_gives_the_same_losses_with_eight_ranks_as_with_one(training):
    one = training(run__folder="one", training__precision="float64")
    assert one.returncode == 0, one.stderr
    eight = training(run__folder="eight", training__precision="float64", parallel__dp=2, parallel__pp=2, parallel__cp=2)
    assert eight.returncode == 0, eight.stderr
    assert training.losses("eight") == pytest.approx(training.losses("one"), rel=1e-10)


def test_executes_the_plan_of_a_file(training):
    assert training(run__folder="planned").returncode == 0
    shutil.copy(training.folder / "planned" / "plan.jsonl", training.folder / "plan.jsonl")
    done = training("--plan", "plan.jsonl", run__folder="from_file", packing__packer="plain")
    assert done.returncode == 0, done.stderr
    assert training.losses("from_file") == training.losses("planned")
    assert_refused(training("--plan", "plan.jsonl", run__folder="small", packing__window=64, packing__max_tokens=0),
                   "plan.jsonl", "takes 64", "another window")
    assert not (training.folder / "small").exists()


def test_resumes_bit_for_bit(training):
    whole = dict(run__folder="whole", parallel__dp=2)
    assert training(**whole).returncode == 0
    parts = dict(run__folder="parts", parallel__dp=2)
    # The schedule of the learning rate spans six steps in both, so the first part is ended by a signal.
    first = training.start(**parts, training__checkpoint_every=2, training__steps=6)
    training.wait_for_steps(2, "parts")
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0, err
    assert 2 <= len(training.losses("parts")) <= 6
    again = training("--resume", **parts)
    assert again.returncode == 0, again.stderr
    assert training.losses("parts") == training.losses("whole")
    final = "checkpoints/step-000006/rank-00000.safetensors"
    assert (training.folder / "parts" / final).read_bytes() == (training.folder / "whole" / final).read_bytes()


def test_resumes_after_a_kill_from_the_last_checkpoint(training):
    settings = dict(training__steps=8, training__checkpoint_every=2)
    assert training(run__folder="whole", **settings).returncode == 0
    run = training.start(run__folder="killed", **settings)
    training.wait_for_steps(3, "killed")
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=60)
    again = training("--resume", run__folder="killed", **settings)
    assert again.returncode == 0, again.stderr
    assert training.losses("killed") == training.losses("whole")


def test_resumes_under_another_layout_with_the_same_losses(training):
    settings = dict(training__precision="float64", training__steps=6, training__checkpoint_every=3)
    assert training(run__folder="whole", **settings).returncode == 0
    shutil.copytree(training.folder / "whole", training.folder / "moved")
    shutil.rmtree(training.folder / "moved" / "checkpoints" / "step-000006")
    again = training("--resume", run__folder="moved", parallel__pp=2, parallel__cp=2, **settings)
    assert again.returncode == 0, again.stderr
    assert training.losses("moved") == pytest.approx(training.losses("whole"), rel=1e-10)


def test_never_overwrites_a_run(training):
    assert training().returncode == 0
    before = (training.folder / "run" / "metrics.jsonl").read_bytes()
    assert_refused(training(), "run: this run folder already has steps", "--resume")
    assert (training.folder / "run" / "metrics.jsonl").read_bytes() == before


def test_refuses_to_resume_what_is_not_there(training):
    assert_refused(training("--resume"), "run: --resume: there is no such run folder")
    (training.folder / "run").mkdir()
    assert_refused(training("--resume"), "run: --resume: it holds no complete checkpoint")


def test_names_a_flipped_bit_in_a_checkpoint(training):
    assert training().returncode == 0
    path = training.folder / "run" / "checkpoints" / "step-000006" / "rank-00000.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    done = training("--resume", training__steps=8)
    assert_refused(done, "rank-00000.safetensors", "checksum")


def test_refuses_a_checkpoint_of_another_model(training):
    assert training().returncode == 0
    assert_refused(training("--resume", model__ffn_dim=64), "run", "another model")


@pytest.mark.parametrize("settings, mentions", [
    (dict(parallel__dp=3), ["micro_batches = 4", "dp = 3"]),
    (dict(parallel__pp=8), ["num_layers = 4", "pp"]),
    (dict(model__num_kv_heads=3), ["num_heads = 4", "num_kv_heads = 3"]),
    (dict(packing__packer="wbl"), ['packer = "wbl"', 'did you mean "wlb"']),
    (dict(packing__windw=3), ["windw", 'did you mean "window"']),
    (dict(sharding__strategy="per-token"), ["strategy", "per-document"]),
    (dict(model__vocab_size=10), ["vocab_size = 10", "256"]),
    (dict(corpus__path="nowhere"), ["nowhere"]),
    (dict(packing__oversize="refuse"), ["document", "256"]),
    (dict(training__precision="float8"), ["float8", "float32"]),
    (dict(cost__profile="nowhere.json", cost__synthetic="[]"), ["nowhere.json"]),
    (dict(run__folder="run.toml"), ["run.toml", "file"]),
])
def test_refuses_bad_input_in_one_line(training, settings, mentions):
    assert_refused(training(**settings), *mentions)
    assert not (training.folder / "run").exists()


def test_refuses_degrees_that_do_not_multiply_to_the_ranks(training):
    assert_refused(training("--nproc", 3, parallel__dp=2), "dp 2 x pp 1 x cp 1", "3")


def test_a_killed_rank_takes_the_run_down_and_is_named(training):
    run = training.start("--nproc", 4, parallel__dp=2, parallel__cp=2, training__steps=10000)
    training.wait_for_steps(2)
    began = time.monotonic()
    os.kill(rank_process(training.folder, 2), signal.SIGKILL)
    _, err = run.communicate(timeout=30)
    took = time.monotonic() - began
    assert run.returncode == 1
    assert "rank 2" in last_lines(err) and "signal 9" in last_lines(err) and "last action" in last_lines(err), err
    assert took < 3, f"{took:.1f} s"  # the bar is 1 s; the rest is for a busy machine
    assert processes_in(training.folder) == []


def test_a_stopped_rank_is_found_by_the_time_out(training):
    run = training.start("--nproc", 2, parallel__dp=2, training__steps=10000, launch__timeout_seconds=3)
    training.wait_for_steps(2)
    began = time.monotonic()
    os.kill(rank_process(training.folder, 1), signal.SIGSTOP)
    _, err = run.communicate(timeout=40)
    took = time.monotonic() - began
    assert run.returncode == 1
    assert "rank 1" in last_lines(err) and "stopped" in last_lines(err), err
    assert took < 3 + 5 + 3, f"{took:.1f} s"  # time-out + 5 s is the bar
    assert processes_in(training.folder) == []


def test_no_rank_outlives_a_killed_launcher(training):
    run = training.start("--nproc", 2, parallel__dp=2, training__steps=10000)
    training.wait_for_steps(1)
    run.kill()
    run.communicate(timeout=30)
    until = time.monotonic() + 10
    while processes_in(training.folder) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_in(training.folder) == []


def test_ctrl_c_stops_after_the_step_with_a_checkpoint(training):
    run = training.start("--nproc", 2, parallel__pp=2, training__steps=10000)
    training.wait_for_steps(2)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    steps = len(training.metrics())
    assert (training.folder / "run" / "checkpoints" / f"step-{steps:06d}" / "manifest.json").exists()
    assert processes_in(training.folder) == []


def test_runs_under_torchrun(training):
    torchrun = ROOT / ".venv" / "bin" / "torchrun"
    done = subprocess.run([torchrun, "--no-python", "--nproc-per-node", "2", "--master-port", "29617",
                           *training.command(parallel__dp=2)],
                          cwd=training.folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(training.metrics()) == 6


@pytest.mark.parametrize("variables", [
    dict(SLURM_PROCID="{rank}", SLURM_NTASKS="2", SLURM_LOCALID="{rank}", SLURM_JOB_NODELIST="localhost",
         SLURM_NODEID="0", SLURM_JOB_NUM_NODES="1", MASTER_PORT="29618"),
    dict(OMPI_COMM_WORLD_RANK="{rank}", OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_LOCAL_RANK="{rank}",
         OMPI_COMM_WORLD_LOCAL_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29619"),
], ids=["slurm", "open_mpi"])
def test_runs_with_the_variables_of(training, variables):
    ranks = []
    for rank in range(2):
        env = {**os.environ, **{name: value.format(rank=rank) for name, value in variables.items()}}
        ranks.append(subprocess.Popen(training.command(parallel__dp=2), cwd=training.folder, env=env,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for rank in ranks:
        _, err = rank.communicate(timeout=120)
        assert rank.returncode == 0, err
    assert len(training.metrics()) == 6


def test_says_in_one_line_that_the_port_is_in_use(training):
    import socket
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = training(env=dict(RANK="0", WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1",
                                 MASTER_PORT=str(port)), parallel__dp=2)
    assert done.returncode in (1, 2)
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert str(port) in done.stderr and "in use" in done.stderr


def test_fails_in_one_line_on_a_full_disk(training):
    mount = training.folder / "small"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192k", "none", mount], capture_output=True).returncode:
        pytest.fail("needs root to mount a small file system")
    try:
        done = training(run__folder="small/run", parallel__dp=2)
        assert done.returncode == 1, done.stderr
        assert "No space left on device" in last_lines(done.stderr), done.stderr
        assert not list(mount.glob("run/checkpoints/step-*"))
    finally:
        subprocess.run(["umount", mount], check=True)


def test_loses_nothing_where_documents_are_split_or_truncated(training):
    for policy in ["split", "truncate"]:
        done = training("--json", run__folder=policy, packing__oversize=policy)
        summary = json.loads(done.stdout)
        counted = summary["documents"]["split" if policy == "split" else "truncated"]
        assert counted > 0


def test_ends_with_the_data_and_trains_equally_on_all_of_it_whatever_the_packer(training):
    data = dict(corpus__epochs=1, corpus__documents=40, packing__cut_at_windows="true", training__steps=100)
    plain = json.loads(training("--json", run__folder="plain", packing__packer="plain", **data).stdout)
    wlb = json.loads(training("--json", run__folder="wlb", **data).stdout)
    assert plain["tokens"] == wlb["tokens"] > 0
    assert wlb["documents"]["held"] == 0
    # Resumed before its end, and at it, it ends alike.
    assert training(run__folder="again", **(data | {"training__steps": wlb["steps"] - 1})).returncode == 0
    for _ in range(2):
        done = training("--resume", run__folder="again", **data)
        assert done.returncode == 0, done.stderr
    assert [step["tokens"] for step in training.metrics("again")] == [step["tokens"] for step in training.metrics("wlb")]


def test_every_key_of_a_run_is_in_its_reference(training):
    assert training(training__steps=1).returncode == 0
    reference = (ROOT / "docs/formats/run_toml.md").read_text()
    run = tomllib.loads((training.folder / "run" / "run.toml").read_text())
    missing = [f"[{section}] {key}" for section, keys in run.items() for key in keys if f" {key}" not in reference]
    assert not missing


def test_trains_eight_ranks_under_a_core_lease_and_replays_them(training):
    done = training("--json", parallel__dp=2, parallel__pp=2, parallel__cp=2, launch__lease="on", training__steps=3)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["tokens_per_second_replayed"] > 0
    assert (training.folder / "run" / "timeline" / "replayed.jsonl").exists()
    assert all(step["replayed_step_seconds"] > 0 for step in training.metrics())
