#!/usr/bin/env python3
"""Our own runs on this machine, predicted and measured: two ranks, a core each, by data, pipeline and context parallelism,
plain and balanced, on the quickstart's documents. A profile is measured first; every step is predicted before it runs,
by the simulator, on the plan that the trainer then executes. One JSON object: step times, the order of strategies,
memory, and what `calibrate` makes of the first half of the runs for the second.
"""

import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUNS = Path("runs/benchmark/own")
RECIPE = "recipes/quickstart/two_ranks.toml"
PROFILE = RUNS / "profile.json"
LAYOUTS = {"dp 2": [], "pp 2": ["parallel.dp=1", "parallel.pp=2", "packing.micro_batches=4"],
           "cp 2": ["parallel.dp=1", "parallel.cp=2"]}
PACKING = {"plain, per sequence": ["packing.packer=plain", "sharding.strategy=per-sequence"],
           "wlb, adaptive": ["packing.packer=wlb", "packing.max_tokens=16K", "packing.queues=[4096, 6144, 8192]",
                             "sharding.strategy=adaptive"]}


def ballast(*arguments, settings=()):
    command = ["build/ballast", *map(str, arguments)]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def train(name, settings):
    folder = RUNS / name.replace(", ", "_").replace(" ", "_")
    summary = ballast("train", RECIPE, "--json", settings=[*settings, f"run.folder={folder}", f"cost.profile={PROFILE}"])
    steps = [json.loads(line) for line in (ROOT / folder / "metrics.jsonl").read_text().splitlines()][1:]
    measured, predicted = (sum(s[key] for s in steps) for key in ("step_seconds", "predicted_step_seconds"))
    tokens = sum(s["tokens"] for s in steps)
    row = {"run": name, "folder": str(folder), "steps": len(steps), "step_seconds": measured / len(steps),
           "predicted_step_seconds": predicted / len(steps), "error": predicted / measured - 1,
           "tokens_per_second": tokens / measured, "predicted_tokens_per_second": tokens / predicted,
           "peak_memory_bytes": summary["peak_memory_bytes"],
           "memory_error": summary["predicted_peak_memory_bytes"] / summary["peak_memory_bytes"] - 1}
    print(f"{name:<28} step {row['step_seconds']:.3f} s, predicted {row['error']:+.1%}; memory predicted "
          f"{row['memory_error']:+.1%}", file=sys.stderr, flush=True)
    return row


def order(rows):
    """Of pairs of strategies that differ by over 2% measured, the share whose order is predicted."""
    pairs = [(a, b) for a, b in itertools.combinations(rows, 2)
             if abs(a["tokens_per_second"] / b["tokens_per_second"] - 1) > 0.02]
    right = [(a["tokens_per_second"] > b["tokens_per_second"])
             == (a["predicted_tokens_per_second"] > b["predicted_tokens_per_second"]) for a, b in pairs]
    return {"pairs": len(pairs), "right_share": sum(right) / len(right) if right else None}


def main():
    shutil.rmtree(ROOT / RUNS, ignore_errors=True)
    (ROOT / RUNS).mkdir(parents=True)
    ballast("profile", "--run", RECIPE, "--out", PROFILE, "--json")
    rows = [train(f"{layout}, {packing}", [*LAYOUTS[layout], *PACKING[packing]])
            for packing in PACKING for layout in LAYOUTS]
    calibrated = ballast("calibrate", *[row["folder"] for row in rows[:3]], "--out", RUNS / "refitted.json", "--json")
    later = [ballast("simulate", RECIPE, "--json", "--plan", Path(row["folder"]) / "plan.jsonl", "--skip-steps", 1,
                     settings=[*LAYOUTS[row["run"].split(",")[0]], *PACKING["wlb, adaptive"],
                               f"cost.profile={RUNS / 'refitted.json'}"]) for row in rows[3:]]
    for row, found in zip(rows[3:], later):
        row["error_after_calibrating_on_others"] = found["step_seconds"]["mean"] / row["step_seconds"] - 1
    errors = [abs(row["error"]) for row in rows]
    print(json.dumps({"rows": rows, "mean_error": sum(errors) / len(errors), "worst_error": max(errors),
                      "order": order(rows), "worst_memory_error": max(abs(row["memory_error"]) for row in rows),
                      "calibration": calibrated}, indent=2))


if __name__ == "__main__":
    main()
