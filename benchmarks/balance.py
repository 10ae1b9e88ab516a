#!/usr/bin/env python3
"""Balanced against plain, two data parallel ranks on two cores, window 16K: interleaved pairs, one JSON object.

Both variants of a pair train on the same documents, each once and all of them, so no figure gains from what a queue still
holds. Speeds are over all steps.

  equal   arrival order cut at the window, against the same pieces repacked: equal attention work
  whole   whole documents by next fit in arrival order, against wlb with queues
  parts   what each part gives on two ranks, one core each, equal attention work: packing on dp 2; sharding, and packing
          beside it, on cp 2
  replay  eight ranks (dp 2, pp 2, cp 2) under a core lease, whole documents, replayed as if each had a core;
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

WLB_16K = ["packing.packer=wlb", "packing.max_tokens=32K", "packing.queues=[3072, 6144, 9216, 12288, 16384]"]
VARIANTS = {
    "equal": {"plain": ["packing.packer=plain", "sharding.strategy=per-sequence"], "balanced": WLB_16K},
    "whole": {"plain": ["packing.packer=next-fit", "packing.cut_at_windows=false", "sharding.strategy=per-sequence"],
              "balanced": [*WLB_16K, "packing.cut_at_windows=false"]},
}

# Arrival order cut at the window, and what changes; the same pieces everywhere.
PARTS = {
    "dp 2": {"plain": VARIANTS["equal"]["plain"], "packing": VARIANTS["equal"]["balanced"]},
    "cp 2": {"plain": ["packing.packer=plain", "sharding.strategy=per-sequence"],
             "per-document": ["packing.packer=plain", "sharding.strategy=per-document"],
             "adaptive": ["packing.packer=plain", "sharding.strategy=adaptive"],
             "packing": [*WLB_16K, "sharding.strategy=per-sequence"],
             "all": [*WLB_16K, "sharding.strategy=adaptive"]},
}
LAYOUTS = {"dp 2": ["parallel.dp=2", "parallel.cp=1"], "cp 2": ["parallel.dp=1", "parallel.cp=2"]}

EIGHT_RANKS = {"plain": ["packing.packer=next-fit", "sharding.strategy=per-sequence"],
               "balanced": WLB_16K}


def train(recipe, settings, folder):
    shutil.rmtree(ROOT / folder, ignore_errors=True)
    command = ["build/ballast", "train", f"recipes/quickstart/{recipe}.toml", "--json"]
    for setting in [*settings, f"run.folder={folder}"]:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    summary = json.loads(done.stdout)
    steps = [json.loads(line) for line in (ROOT / folder / "metrics.jsonl").read_text().splitlines()]
    print(f"{folder}: {speed(steps):.0f} tokens/s", file=sys.stderr, flush=True)
    return summary, steps


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "pairs": len(values)}


def speed(steps, seconds="step_seconds"):
    return sum(s["tokens"] for s in steps) / sum(s[seconds] for s in steps)


def require_equal_data(plain, balanced):
    tokens = [sum(s["tokens"] for s in steps) for steps in (plain, balanced)]
    if tokens[0] != tokens[1]:
        sys.exit(f"balance: plain trained on {tokens[0]} tokens, balanced on {tokens[1]}: more steps are needed")


def share(steps, part):
    return sum(part(s) for s in steps) / sum(s["step_seconds"] for s in steps)


def compare(mode, pairs, documents):
    results = {"plain": [], "balanced": []}
    for seed in range(1, pairs + 1):
        for variant, settings in VARIANTS[mode].items():
            results[variant].append(train("two_ranks", [*settings, "packing.window=16K", f"corpus.documents={documents}",
                                                        f"run.seed={seed}", "training.steps=1000"],
                                          RUNS / f"{mode}-{variant}-{seed}"))
    for (_, plain), (_, balanced) in zip(results["plain"], results["balanced"]):
        require_equal_data(plain, balanced)
    ratio = [speed(b) / speed(a) for (_, a), (_, b) in zip(results["plain"], results["balanced"])]
    every = [step for runs in results.values() for _, run in runs for step in run]
    return {
        "seeds": list(range(1, pairs + 1)),
        "documents": documents,
        "steps": {v: spread([len(steps) for _, steps in runs]) for v, runs in results.items()},
        "balanced_over_plain_tokens_per_second": spread(ratio),
        "step_over_bound_balanced": spread([bound(run) for _, run in results["balanced"]]),
        "tokens_per_second": {v: spread([speed(steps) for _, steps in runs]) for v, runs in results.items()},
        "imbalance_measured": {v: spread([s["imbalance_measured"] for s, _ in runs]) for v, runs in results.items()},
        "loss_last": {v: spread([s["loss"]["last"] for s, _ in runs]) for v, runs in results.items()},
        "prediction_error_mean": statistics.mean(s["prediction_error"]["mean"] for runs in results.values() for s, _ in runs),
        "token_delay_steps_mean": {v: statistics.mean(s["token_delay_steps"]["mean"] for s, _ in runs)
                                   for v, runs in results.items()},
        "planning_share": share(every, lambda s: s["planning_seconds"]),
        "recording_share": share(every, lambda s: s["recording_seconds"]),
    }


def bound(steps):
    """Step over the best that balance can do: the work that was measured, shared out evenly, and nothing else."""
    return sum(s["step_seconds"] for s in steps) / sum(s["work_seconds"]["mean"] for s in steps)


def parts(pairs, documents):
    result = {"documents": documents}
    for layout, variants in PARTS.items():
        runs = {variant: [] for variant in variants}
        for seed in range(1, pairs + 1):
            for variant, settings in variants.items():
                runs[variant].append(train("two_ranks", [*LAYOUTS[layout], *settings, "packing.window=16K",
                                                         f"corpus.documents={documents}", f"run.seed={seed}",
                                                         "training.steps=1000"],
                                           RUNS / f"parts-{layout.replace(' ', '')}-{variant}-{seed}")[1])
                require_equal_data(runs["plain"][-1], runs[variant][-1])
        result[layout] = {
            variant: {"over_plain_tokens_per_second": spread([speed(b) / speed(a) for a, b in zip(runs["plain"], of)]),
                      "step_over_bound": spread([bound(steps) for steps in of]),
                      "measured_work_over_plain": spread(
                          [sum(s["work_seconds"]["mean"] for s in b) / sum(s["work_seconds"]["mean"] for s in a)
                           for a, b in zip(runs["plain"], of)])}
            for variant, of in runs.items()}
    return result


def replay(pairs, documents):
    ratio, error, replayed = [], [], "replayed_step_seconds"
    for seed in range(1, pairs + 1):
        runs = {}
        for variant, settings in EIGHT_RANKS.items():
            summary, runs[variant] = train("eight_ranks", [*settings, "packing.window=16K",
                                                           f"corpus.documents={documents}", f"run.seed={seed}",
                                                           "training.steps=1000"], RUNS / f"eight-{variant}-{seed}")
            error.append(summary["prediction_error"]["mean"])
        require_equal_data(runs["plain"], runs["balanced"])
        ratio.append(speed(runs["balanced"], replayed) / speed(runs["plain"], replayed))
    # Two ranks, a core each, under the lease: what the replay says against what the clock said.
    _, run = train("two_ranks", [*VARIANTS["equal"]["plain"], "launch.lease=on"], RUNS / "two-leased")
    wall = sum(s["step_seconds"] for s in run)
    return {"documents": documents,
            "balanced_over_plain_tokens_per_second_replayed": spread(ratio),
            "prediction_error_mean_against_replayed": statistics.mean(error),
            "two_rank_replay_over_wall_clock": sum(s[replayed] for s in run) / wall}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["equal", "whole", "parts", "replay"])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--documents", type=int, default=120)
    options = parser.parse_args()
    if options.mode in VARIANTS:
        result = compare(options.mode, options.pairs, options.documents)
    else:
        result = {"parts": parts, "replay": replay}[options.mode](options.pairs, options.documents)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
