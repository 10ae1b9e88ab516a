"""Ranks as processes: found by their folder and environment, and started by hand, as a launcher of others' would."""

import os
import socket
import subprocess
from pathlib import Path


def processes_in(folder):
    """Process ids whose working folder is `folder`: the ranks of a run there."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if Path(os.readlink(entry / "cwd")) == Path(folder) and "State:\tZ" not in (entry / "status").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)


def rank_process(folder, rank):
    """The process id of a rank, by the RANK in its environment."""
    for pid in processes_in(folder):
        try:
            if f"RANK={rank}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return pid
        except OSError:
            continue
    raise AssertionError(f"no process of rank {rank}")


def start_by_hand(commands, folder, environment=None, inside=lambda rank: []):
    """One process a rank of `commands`, which nobody watches; `inside` gives the words that start it elsewhere."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    meeting = {"WORLD_SIZE": str(len(commands)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
               "OMP_NUM_THREADS": "1", **(environment or {})}
    return [subprocess.Popen([*inside(rank), *command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True, env={**os.environ, **meeting, "RANK": str(rank)})
            for rank, command in enumerate(commands)]


def ends(ranks, seconds):
    """Exit code and standard error of each; none is left, also where one has not ended in time."""
    try:
        errors = [rank.communicate(timeout=seconds)[1] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return [(rank.returncode, error) for rank, error in zip(ranks, errors)]
