#!/usr/bin/env python3
"""Balanced against plain, two data parallel ranks on two cores, window 16K: interleaved pairs, one JSON object.

  equal   arrival order cut at the window, against the same pieces repacked: equal attention work
  whole   whole documents by next fit in arrival order, against wlb with queues
  replay  eight ranks (dp 2, pp 2, cp 2) under a core lease, window 8K, whole documents, replayed as if each had a core;
          and how near a replay of a two-rank run comes to its own wall-clock
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNS = Path("runs/benchmark")

VARIANTS = {
    "equal": {"plain": ["packing.packer=plain", "sharding.strategy=per-sequence"],
              "balanced": ["packing.packer=wlb", "packing.max_tokens=24K"]},
    "whole": {"plain": ["packing.packer=next-fit", "packing.cut_at_windows=false", "sharding.strategy=per-sequence"],
              "balanced": ["packing.packer=wlb", "packing.cut_at_windows=false", "packing.max_tokens=24K",
                           "packing.queues=[4096, 8192, 12288]"]},
}

EIGHT_RANKS = {"plain": ["packing.packer=next-fit", "sharding.strategy=per-sequence"],
               "balanced": ["packing.packer=wlb", "packing.max_tokens=12K", "packing.queues=[2048, 4096, 6144]"]}


def train(recipe, settings, folder):
    shutil.rmtree(ROOT / folder, ignore_errors=True)
    command = ["build/ballast", "train", f"recipes/quickstart/{recipe}.toml", "--json"]
    for setting in [*settings, f"run.folder={folder}"]:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    summary = json.loads(done.stdout)
    steps = [json.loads(line) for line in (ROOT / folder / "metrics.jsonl").read_text().splitlines()][1:]
    print(f"{folder}: {summary['tokens_per_second']:.0f} tokens/s", file=sys.stderr, flush=True)
    return summary, steps


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "pairs": len(values)}


def share(steps, part):
    return sum(part(s) for s in steps) / sum(s["step_seconds"] for s in steps)


def compare(mode, pairs, steps):
    results = {"plain": [], "balanced": []}
    for seed in range(1, pairs + 1):
        for variant, settings in VARIANTS[mode].items():
            results[variant].append(train("two_ranks", [*settings, f"run.seed={seed}", f"training.steps={steps}"],
                                          RUNS / f"{mode}-{variant}-{seed}"))
    ratio = [b[0]["tokens_per_second"] / a[0]["tokens_per_second"] for a, b in zip(results["plain"], results["balanced"])]
    # The best that balance can do: the work that was measured, shared out evenly, and nothing else.
    bound = [statistics.mean(s["step_seconds"] for s in run) / statistics.mean(s["work_seconds"]["mean"] for s in run)
             for _, run in results["balanced"]]
    every = [step for runs in results.values() for _, run in runs for step in run]
    return {
        "seeds": list(range(1, pairs + 1)),
        "balanced_over_plain_tokens_per_second": spread(ratio),
        "step_over_bound_balanced": spread(bound),
        "tokens_per_second": {v: spread([s["tokens_per_second"] for s, _ in runs]) for v, runs in results.items()},
        "imbalance_measured": {v: spread([s["imbalance_measured"] for s, _ in runs]) for v, runs in results.items()},
        "loss_last": {v: spread([s["loss"]["last"] for s, _ in runs]) for v, runs in results.items()},
        "prediction_error_mean": statistics.mean(s["prediction_error"]["mean"] for runs in results.values() for s, _ in runs),
        "token_delay_steps_mean": {v: statistics.mean(s["token_delay_steps"]["mean"] for s, _ in runs)
                                   for v, runs in results.items()},
        "planning_share": share(every, lambda s: s["planning_seconds"]),
        "recording_share": share(every, lambda s: s["recording_seconds"]),
    }


def replay(pairs, steps):
    ratio, error = [], []
    for seed in range(1, pairs + 1):
        speeds = {}
        for variant, settings in EIGHT_RANKS.items():
            summary, _ = train("eight_ranks", [*settings, f"run.seed={seed}", f"training.steps={steps}"],
                               RUNS / f"eight-{variant}-{seed}")
            speeds[variant] = summary["tokens_per_second_replayed"]
            error.append(summary["prediction_error"]["mean"])
        ratio.append(speeds["balanced"] / speeds["plain"])
    # Two ranks, a core each, under the lease: what the replay says against what the clock said.
    _, run = train("two_ranks", [*VARIANTS["equal"]["plain"], "launch.lease=on", "training.steps=4"], RUNS / "two-leased")
    wall = sum(s["step_seconds"] for s in run)
    return {"balanced_over_plain_tokens_per_second_replayed": spread(ratio),
            "prediction_error_mean_against_replayed": statistics.mean(error),
            "two_rank_replay_over_wall_clock": sum(s["replayed_step_seconds"] for s in run) / wall}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["equal", "whole", "replay"])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    result = replay(options.pairs, options.steps) if options.mode == "replay" else \
        compare(options.mode, options.pairs, options.steps)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
