#!/usr/bin/env python3
"""What balancing would give Llama 3 405B's long-context phase, which nobody has published: 16,384 H100, window 128K, 16M
tokens a step (The Llama 3 Herd of Models, table 4), on the lengths of benchmarks/data/dist_wlbllm.json. One JSON object.

Compared by useful FLOPs a second: in few steps a packer that holds long documents back trains other documents than plain.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WINDOW = 131072
# One layer a virtual stage, embedding and head a stage of their own, as simulate_public.py has it.
RUN = f"""[model]
preset = "llama3-405b"
vocab_size = 128256
[parallel]
dp = 8
pp = 16
cp = 16
tp = 8
zero = 1
[schedule]
name = "interleaved"
virtual_stages = 8
stage_layers = {[0] + [1] * 126 + [0]}
[packing]
packer = "plain"
window = {WINDOW}
micro_batches = 128
[cluster]
file = "{ROOT}/profiles/clusters/llama3.toml"
[workload]
lengths = "{ROOT}/benchmarks/data/dist_wlbllm.json"
[training]
precision = "bfloat16"
"""
# cut_at_windows: every packer sees the pieces that plain makes, so attention work is the same.
HELD = ["packing.cut_at_windows=true", f"packing.max_tokens={WINDOW * 5 // 4}"]
POOL = ["packing.packer=pool", "packing.max_delay=20"]
ROWS = {  # settings, steps, seeds
    "plain, per-sequence": (["sharding.strategy=per-sequence"], 6, 2),
    "plain, adaptive": ([], 6, 2),
    "pool, adaptive, S_max 1.25 S": ([*HELD, *POOL], 6, 2),
    "pool, adaptive, S_max S": ([HELD[0], *POOL], 6, 1),
    # A queue releases when 128 documents have come, every third to sixth step.
    "wlb, 2 queues, adaptive, S_max 1.25 S": ([*HELD, "packing.packer=wlb", f'packing.queues=[{WINDOW // 4},{WINDOW // 2}]'], 12, 1),
}


def simulate(run, settings):
    command = ["build/ballast", "simulate", run, "--json"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"llama3_balance: {settings} failed")
    return json.loads(done.stdout)


def main():
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run.toml"
        run.write_text(RUN)
        for name, (settings, steps, seeds) in ROWS.items():
            found = [simulate(run, ["sharding.strategy=adaptive", *settings, f"training.steps={steps}", f"run.seed={seed}"])
                     for seed in range(1, seeds + 1)]
            rows[name] = {"steps": steps, "step_seconds": [f["step_seconds"]["mean"] for f in found],
                          "tflops_per_gpu": [f["tflops_per_gpu"] for f in found],
                          "tokens_per_second": [f["tokens_per_second"] for f in found],
                          "bubble_share": statistics.mean(f["bubble_share"] for f in found),
                          "exposed_communication_share": statistics.mean(f["exposed_communication_share"] for f in found),
                          "memory_headroom_bytes": found[0]["memory_headroom_bytes"]}
            plain = rows["plain, per-sequence"]["tflops_per_gpu"]
            gains = [f / p for f, p in zip(rows[name]["tflops_per_gpu"], plain)]
            rows[name]["gain"] = {"mean": statistics.mean(gains), "by_seed": gains}
            print(f"{name}: {statistics.mean(rows[name]['step_seconds']):.2f} s a step, {gains} of plain's FLOPs a second",
                  file=sys.stderr, flush=True)
    print(json.dumps({"rows": rows}, indent=2))


if __name__ == "__main__":
    main()
