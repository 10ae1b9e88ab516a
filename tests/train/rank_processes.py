"""Finds the processes of a run by their folder and environment."""

import os
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
