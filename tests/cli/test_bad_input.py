"""Bad input: exit 2 and one line that names what is at fault and what would work; nothing is written."""

import pytest

PACK = ["pack", "lengths.txt", "--packer", "wlb", "--window", "4096", "--micro-batches", "2", "--cost", "1,1"]
SHARD = ["shard", "--lengths", "7,4096,3", "--cp", "2", "--sharding", "all", "--cost", "1,1"]


def changed(command, option, value):
    """`command` with the value of `option` replaced."""
    words = list(command)
    words[words.index(option) + 1] = value
    return words


CASES = {
    "a corpus that is not there": (["corpus", "info", "nowhere"], ["nowhere"]),
    "a text that is not there": (["corpus", "build", "nowhere", "--out", "made"], ["nowhere"]),
    "an empty folder": (["corpus", "build", "empty", "--out", "made"], ["no text"]),
    "lengths that are not there": (["pack", "nowhere.txt", *PACK[2:]], ["nowhere.txt"]),
    "lengths that are no numbers": (["pack", "words.txt", *PACK[2:]], ["words.txt", "seven"]),
    "no lengths": (["pack", "nothing.txt", *PACK[2:]], ["nothing.txt"]),
    "a negative length": (["pack", "negative.txt", *PACK[2:]], ["negative.txt", "-5"]),
    "a misspelt packer": (changed(PACK, "--packer", "plian"), ["plian", "plain"]),
    "a window of 0": (changed(PACK, "--window", "0"), ["window", "0"]),
    "a window that is no size": (changed(PACK, "--window", "12Q"), ["--window", "12Q"]),
    "no micro-batches": (changed(PACK, "--micro-batches", "0"), ["micro", "0"]),
    "half a cost": (changed(PACK, "--cost", "1"), ["--cost", "1"]),
    "a document over the window that is refused": ([*PACK, "--oversize", "refuse"], ["9000"]),
    "a misspelt policy": ([*PACK, "--oversize", "trunkate"], ["trunkate", "truncate"]),
    "a misspelt sharding": (changed(SHARD, "--sharding", "per-dokument"), ["per-dokument", "per-document"]),
    "no ranks": (changed(SHARD, "--cp", "0"), ["cp", "0"]),
    "a run file that is not there": (["train", "nowhere.toml"], ["nowhere.toml"]),
    "a run file with a misspelt key": (["train", "misspelt.toml"], ["misspelt.toml", "num_layer", "num_layers"]),
    "a run file with a misspelt section": (["train", "section.toml"], ["section.toml", "packin", "packing"]),
    "a run file that is no TOML": (["train", "broken.toml"], ["broken.toml:1"]),
    "a run folder that is not there": (["compare", "nowhere", "nowhere"], ["nowhere"]),
    "a report of no run": (["report", "nowhere", "--out", "page.html"], ["nowhere"]),
}


@pytest.fixture
def workplace(tmp_path):
    (tmp_path / "empty").mkdir()
    for name, text in {
        "lengths.txt": "7\n9000\n64\n", "words.txt": "7\nseven\n", "nothing.txt": "", "negative.txt": "7\n-5\n",
        "misspelt.toml": "[model]\nnum_layer = 2\n", "section.toml": "[packin]\n", "broken.toml": "= 1\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_one_line_that_names_it(ballast, workplace, case):
    command, mentions = CASES[case]
    before = sorted(workplace.rglob("*"))
    done = ballast(*command)
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    for mention in mentions:
        assert mention in done.stderr
    assert sorted(workplace.rglob("*")) == before
