"""--json prints one JSON object on stdout and nothing else, whose keys say their units."""

import json
import re

import pytest

LENGTHS = [7, 4096, 900, 3, 1200, 64, 2500, 333, 4000, 18, 700, 1024]

# Small work for each verb that needs no training run; files are made by the fixture below.
COMMANDS = {
    "corpus build": ["corpus", "build", "texts", "--out", "corpus"],
    "corpus info": ["corpus", "info", "corpus"],
    "pack": ["pack", "lengths.txt", "--packer", "wlb", "--window", "4096", "--micro-batches", "2", "--cost", "1,1"],
    "shard": ["shard", "--lengths", "7,4096,3", "--cp", "2", "--sharding", "all", "--cost", "1,1"],
}
EXPECTED = {
    "corpus build": {"documents", "tokens", "longest_tokens", "domains"},
    "corpus info": {"documents", "tokens", "longest_tokens", "domains"},
    "pack": {"packer", "steps", "micro_batches", "imbalance", "token_delay_steps", "micro_batch_tokens", "step_tokens",
             "held_tokens", "documents", "packing_seconds", "lower_bound_gap"},
    "shard": {"strategies", "chosen"},
}


@pytest.fixture
def workplace(ballast, tmp_path):
    (tmp_path / "texts").mkdir()
    for name, text in {"one.txt": "To balance is to weigh.\n" * 40, "two.txt": "Short.\n"}.items():
        (tmp_path / "texts" / name).write_text(text)
    (tmp_path / "lengths.txt").write_text("".join(f"{length}\n" for length in LENGTHS))
    return tmp_path


@pytest.mark.parametrize("verb", COMMANDS)
def test_json_is_one_object_and_nothing_else(ballast, workplace, verb):
    if verb == "corpus info":
        assert ballast(*COMMANDS["corpus build"]).returncode == 0
    done = ballast(*COMMANDS[verb], "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    assert EXPECTED[verb] <= result.keys()


@pytest.mark.parametrize("verb", COMMANDS)
def test_without_json_a_person_reads_text(ballast, workplace, verb):
    if verb == "corpus info":
        assert ballast(*COMMANDS["corpus build"]).returncode == 0
    done = ballast(*COMMANDS[verb])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(r"[a-z]", done.stdout) and not done.stdout.startswith("{")


@pytest.mark.parametrize("packer", ["plain", "fixed-greedy", "wlb"])
def test_a_pipe_of_lengths_packs_as_the_file_does(ballast, workplace, packer):
    rest = ["--packer", packer, "--window", "4K", "--micro-batches", "2", "--cost", "1,1", "--json"]
    piped = json.loads(ballast("pack", "-", *rest, stdin="".join(f"{length}\n" for length in LENGTHS)).stdout)
    filed = json.loads(ballast("pack", "lengths.txt", *rest).stdout)
    for result in (piped, filed):
        del result["packing_seconds"]
    assert piped == filed
