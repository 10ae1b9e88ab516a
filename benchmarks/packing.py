#!/usr/bin/env python3
"""Packers on public document lengths: imbalance against token delay, beside WLB-LLM's Table 2. One JSON object.

Windows of 128K, `--cost 24576,1`, shuffled by seed 1, the first tenth of the steps left out. All figures are predicted,
except planning times, which are measured here.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "benchmarks" / "data"
S = 131072

# WLB-LLM (OSDI 2025), Table 2, 7B at 128K: imbalance by packer.
PAPER = {"plain": 1.44, "fixed-greedy, 1 global batch": 1.41, "fixed-greedy, 8 global batches": 1.08,
         "wlb, 1 queue": 1.24, "wlb, 2 queues": 1.05, "wlb, 3 queues": 1.05}

POOL = ["--packer", "pool", "--max-tokens", S * 3 // 2, "--max-delay", 20]
ROWS = {
    "plain": ["--packer", "plain"],
    "fixed-greedy, 1 global batch": ["--packer", "fixed-greedy"],
    "fixed-greedy, 8 global batches": ["--packer", "fixed-greedy", "--global-batches", 8],
    "wlb, no queue, S_max 1.25 S": ["--packer", "wlb", "--max-tokens", S * 5 // 4],
    "wlb, 2 queues, S_max 1.25 S": ["--packer", "wlb", "--max-tokens", S * 5 // 4, "--queues", f"{S // 4},{S // 2}"],
    "wlb, 3 queues, S_max 1.5 S": ["--packer", "wlb", "--max-tokens", S * 3 // 2, "--queues",
                                   f"{S // 4},{S // 2},{S * 3 // 4}"],
    "wlb, queues auto, S_max 1.5 S": ["--packer", "wlb", "--max-tokens", S * 3 // 2, "--queues", "auto"],
    "pool, S_max 1.5 S, 20 steps": POOL,
    "pool, step tokens within 20%": [*POOL, "--token-swing", 0.2],
    "wlb, 3 queues, step tokens within 20%": ["--packer", "wlb", "--max-tokens", S * 3 // 2, "--queues",
                                              f"{S // 4},{S // 2},{S * 3 // 4}", "--token-swing", 0.2],
}


def pack(lengths, micro_batches, options, skip=None):
    command = ["build/ballast", "pack", DATA / lengths, "--window", S, "--micro-batches", micro_batches, "--cost", "24576,1",
               "--shuffle", 1, "--json", *options]
    if skip:
        command += ["--skip-steps", skip]
    done = subprocess.run([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def figures(lengths, micro_batches, options):
    skip = pack(lengths, micro_batches, ["--packer", "plain"])["steps"] // 10
    found = pack(lengths, micro_batches, options, skip)
    row = {"imbalance": found["imbalance"], "token_delay_steps": {k: found["token_delay_steps"][k] for k in ("mean", "p99", "max")},
           "lower_bound_gap": found["lower_bound_gap"], "step_tokens": found["step_tokens"],
           "held_tokens": found["held_tokens"], "packing_seconds": found["packing_seconds"]}
    if "queue_tuning" in found:
        row["queues_tokens"] = found["queues_tokens"]
    return row


def sharding(lengths):
    """How even the ranks are on the packed steps, N = 4: attention pairs, slowest rank over the mean."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "packed.jsonl"
        for row in ("plain", "wlb, 2 queues, S_max 1.25 S", "pool, S_max 1.5 S, 20 steps"):
            pack(lengths, 4, [*ROWS[row], "--out", packed])
            for cp in (8, 16):
                done = subprocess.run(["build/ballast", "shard", packed, "--cp", str(cp), "--sharding", "all", "--cost",
                                       "24576,1", "--json"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
                rows[f"{row}; cp {cp}"] = {
                    name: {"attention_pairs_max_over_mean": found["attention_pairs"]["max_over_mean"],
                           "predicted_slowest": found["predicted_seconds"]["max"]}
                    for name, found in json.loads(done.stdout)["strategies"].items()}
    return rows


def swing_frontier(lengths):
    """Pool, step tokens within 20%: imbalance against delay, by the steps that a document may wait."""
    frontier = {}
    for max_delay in (1, 2, 4, 8, 12, 20):
        found = figures(lengths, 4, [*POOL[:-1], max_delay, "--token-swing", 0.2])
        frontier[f"wait at most {max_delay}"] = {"imbalance": found["imbalance"]["mean"],
                                                 "token_delay_steps": found["token_delay_steps"]["mean"],
                                                 "step_tokens": found["step_tokens"]}
    return frontier


def main():
    result = {"paper_imbalance": PAPER}
    for lengths in ("dist_wlbllm.json", "dist_prolong.json"):
        for micro_batches in (4, 8, 16):
            name = f"{lengths.removesuffix('.json')}, N = {micro_batches}"
            result[name] = {row: figures(lengths, micro_batches, options) for row, options in ROWS.items()}
            for row, values in result[name].items():
                print(f"{name:<24} {row:<40} imbalance {values['imbalance']['mean']:.3f} (99%: {values['imbalance']['p99']:.3f}) "
                      f"delay {values['token_delay_steps']['mean']:.2f} (at most {values['token_delay_steps']['max']:.0f})",
                      file=sys.stderr, flush=True)
        result[f"{lengths.removesuffix('.json')}, shards"] = sharding(lengths)
        result[f"{lengths.removesuffix('.json')}, N = 4, pool within 20% of nominal tokens"] = swing_frontier(lengths)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
