"""Zeppelin's strategies on simulated clusters A, B and C: one packed micro-batch over all GPUs, models of 3B to 30B, from
16 to 128 GPUs, 64K to 256K tokens in all; lengths as ProLong64k's histogram and ProLong's list (the ArXiv-like mix: long
documents, few short ones). Prints one JSON object: per case the predicted seconds of a step, and what each strategy gains
over even ring context parallelism (Transformer Engine's).

  benchmarks/run zeppelin_clusters
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS = {"llama-3b": 1, "llama-7b": 1, "llama-13b": 2, "llama-30b": 4}  # tp: the paper says that the last two use it
MIXES = {"prolong64k": "prolong64k.json", "prolong": "dist_prolong.json"}
SIZES = [(16, "64K"), (32, "128K"), (128, "256K")]  # GPUs, tokens in all
STRATEGIES = {
    "ring": ["sharding.strategy=ring", "sharding.routing=off"],
    "ring, routed": ["sharding.strategy=ring"],
    "all-gather": ["sharding.strategy=per-sequence"],
    "hybrid DP": ["sharding.strategy=hybrid-dp", "sharding.routing=off"],
    "zeppelin, neither routed nor moved": ["sharding.strategy=zeppelin", "sharding.routing=off", "sharding.moves=off"],
    "zeppelin, routed": ["sharding.strategy=zeppelin", "sharding.moves=off"],
    "zeppelin": ["sharding.strategy=zeppelin"],
    "auto": ["sharding.strategy=auto"],
}
RUN = """
[model]
preset = "{model}"
vocab_size = 32000
[parallel]
tp = {tp}
cp = {cp}
zero = 1
[packing]
packer = "plain"
window = "{tokens}"
micro_batches = 1
oversize = "truncate"
[cluster]
file = "{root}/profiles/clusters/zeppelin_{cluster}.toml"
[workload]
lengths = "{root}/benchmarks/data/{lengths}"
[training]
steps = 2
precision = "bfloat16"
"""


def simulate(run, overrides):
    command = [ROOT / "build/ballast", "simulate", run, "--json", "--extrapolate"]
    for override in overrides:
        command += ["--set", override]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr}")
    found = json.loads(done.stdout)
    return {"step_seconds": found["step_seconds"]["mean"], "mfu": found["mfu"],
            "exposed_communication_share": found["exposed_communication_share"]}


def measure(cluster, model, gpus, tokens, mix):
    tp = MODELS[model]
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run.toml"
        run.write_text(RUN.format(model=model, tp=tp, cp=gpus // tp, tokens=tokens, root=ROOT, cluster=cluster,
                                  lengths=MIXES[mix]))
        found = {name: simulate(run, keys) for name, keys in STRATEGIES.items()}
    over_ring = {name: found["ring"]["step_seconds"] / f["step_seconds"] for name, f in found.items()}
    print(cluster, model, gpus, mix, {k: round(v, 2) for k, v in over_ring.items()}, file=sys.stderr)
    return {"cluster": cluster.upper(), "model": model, "gpus": gpus, "tokens": tokens, "mix": mix,
            "strategies": found, "over_ring": over_ring}


def main():
    jobs = [(cluster, model, gpus, tokens, mix)
            for cluster in "abc" for model in MODELS for gpus, tokens in SIZES for mix in MIXES]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        cases = list(pool.map(lambda job: measure(*job), jobs))
    summary = {}
    for by in ("all", "cluster", "model", "gpus", "mix"):
        groups = {}
        for case in cases:
            groups.setdefault("all" if by == "all" else str(case[by]), []).append(case)
        summary[by] = {group: {name: round(statistics.mean(c["over_ring"][name] for c in members), 3)
                               for name in STRATEGIES} for group, members in groups.items()}
    print(json.dumps({"mean_over_ring": summary, "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
