"""Emulated clusters for tests: nodes with slow network cards, made of network namespaces."""

import contextlib
import os
import shutil
import subprocess

import pytest
from program import ROOT
from rank_processes import start_by_hand

CLUSTER = ROOT / "tools/emulated_cluster"
TWO_BY_TWO = ROOT / "profiles/emulated/two_by_two.toml"


def changed(folder, name, **keys):
    """A file like TWO_BY_TWO but for these keys; they may be new."""
    text = TWO_BY_TWO.read_text().replace('"../', f'"{TWO_BY_TWO.parent.parent}/')
    for key, value in keys.items():
        lines = [line for line in text.splitlines() if not line.startswith(f"{key} =")]
        text = "\n".join([*lines, f"{key} = {value}", ""])
    path = folder / name
    path.write_text(text)
    return path


def require_machine():
    """Root with ip at hand is where these tests must run; elsewhere they say why they do not."""
    may = subprocess.run([CLUSTER, "check", TWO_BY_TWO], capture_output=True, text=True, check=False)
    if may.returncode == 0:
        return
    why = f"NO EMULATED CLUSTER WAS TESTED: {may.stderr.strip() or may.stdout.strip()}"
    if may.returncode != 3 or (os.geteuid() == 0 and shutil.which("ip")):
        pytest.fail(why)
    pytest.skip(why)


def run(file, folder, command):
    require_machine()
    return subprocess.run([CLUSTER, "run", file, "--timeout", "100", "--", *map(str, command)], capture_output=True,
                          text=True, timeout=150, cwd=folder, check=False)


@contextlib.contextmanager
def unwatched(file, folder, command):
    """Ranks in a cluster that is up, which nobody ends when one of them fails."""
    require_machine()
    up = subprocess.run([CLUSTER, "up", file], capture_output=True, text=True, timeout=60, check=True).stdout
    ranks = []
    try:
        places = [line.split("ip netns exec ")[1] for line in up.splitlines()[1:]]
        ranks = start_by_hand([command] * len(places), folder, {"MASTER_ADDR": "10.60.0.1", "MASTER_PORT": "29500"},
                              lambda rank: ["ip", "netns", "exec", places[rank]])
        yield ranks
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
        subprocess.run([CLUSTER, "down", file], timeout=60, check=True)
