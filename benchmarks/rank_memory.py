#!/usr/bin/env python3
"""Memory of a training rank beyond its model, gradients and optimizer, on a window so short that activations hardly
count: peak resident set of a one-rank run, as the system accounts it. One JSON object."""

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path("runs/benchmark/memory")


def main():
    shutil.rmtree(ROOT / FOLDER, ignore_errors=True)
    command = ["build/ballast", "train", "recipes/quickstart/two_ranks.toml", "--json"]
    for setting in [f"run.folder={FOLDER}", "parallel.dp=1", "packing.micro_batches=1", "packing.window=256",
                    "training.steps=3", "cost.profile=''"]:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    manifest = json.loads(next((ROOT / FOLDER / "checkpoints").glob("step-*/manifest.json")).read_text())
    sizes = {"F32": 4, "F64": 8, "I64": 8}
    stored = sum(sizes[t["dtype"]] * num_elements(t["shape"]) for t in manifest["tensors"])
    state = stored * 4 // 3  # values and two moments are stored, gradients are as large as the values
    print(json.dumps({"peak_resident_bytes": peak, "model_gradients_optimizer_bytes": state,
                      "beyond_bytes": peak - state}, indent=2))


def num_elements(shape):
    size = 1
    for extent in shape:
        size *= extent
    return size


if __name__ == "__main__":
    main()
