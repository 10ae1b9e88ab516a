#!/usr/bin/env python3
"""Simulated against Hugging Face's sweep of nanotron on H100 (benchmarks/data/nanotron_h100.csv): step times, the order
of configurations, which would be picked, and what runs out of memory. One JSON object; every third row of the file is held
back: LAUNCH was fitted without it.

Shapes, vocabulary and tied embeddings are those of the sweep's own generator (huggingface/nanotron
scripts/scaling_benchmarks.py @0e0a27e), as are sequence parallelism and float32 gradients; they give the operations a
token that the sweep's MFU counts. A stage gets layers as nanotron shares them out, the head counting by its operations.
Tensor parallel exchanges are not overlapped: nanotron's are asynchronous, but on one node what they hide cannot be seen.
[software], the same for all rows, was counted from nanotron's kernels: FlashAttention-2; rotation, activation and loss as
one tensor operation after another; and gradients added up in float32 after every backward, 12 bytes of traffic a parameter.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SEQUENCE, VOCABULARY = 4096, 131072
# The host's time to start the kernels of a layer, forward and backward: the least mean error, to 0.05 ms, of rows that are not
# held back and have tp of at most 8 and no pipeline across nodes (see started()).
LAUNCH = [1.25e-3, 2.95e-3]
# layers, width, heads, feed-forward, tied
MODELS = {"1B": (16, 2048, 32, 8192, True), "3B": (28, 3072, 32, 8192, True), "8B": (32, 4096, 32, 14336, False),
          "80B": (80, 8192, 64, 28672, False)}


def read_rows(most_nodes):
    rows = []
    for number, line in enumerate(csv.DictReader((ROOT / "benchmarks" / "data" / "nanotron_h100.csv").open())):
        row = {key: int(line[key]) for key in ("nodes", "dp", "pp", "tp", "zero", "mbs", "grad_acc")}
        row |= {"model": line["model"], "ok": line["status"] == "ok", "held_back": number % 3 == 2}
        if row["ok"]:
            row["measured"] = row["dp"] * row["mbs"] * row["grad_acc"] * SEQUENCE / float(line["tok_s"])
            row["memory_gb"] = float(line["gpu_mem_gb"])
            # A few rows of the largest model count fewer operations a token: 8 heads of keys and values, not 64.
            operations = float(line["mfu_pct"]) / 100 * 989.4e12 / float(line["tok_s_gpu"])
            row["kv_heads"] = 8 if row["model"] == "80B" and operations < 480e9 else MODELS[row["model"]][2]
        if row["nodes"] <= most_nodes:
            rows.append(row)
    return rows


def stage_layers(model, pp):
    """A stage is full with the block that takes it past its share of all blocks' cost: layers, and the head."""
    layers, width, _, ffn, _ = MODELS[model]
    costs = [4 * width * width + 3 * width * ffn] * layers + [VOCABULARY * width]
    share = sum(costs) / pp
    stages, passed = [0] * pp, 0
    stage = 0
    for number, cost in enumerate(costs):
        if number < layers:
            stages[stage] += 1
        passed += cost
        if passed > share * (stage + 1) and stage + 1 < pp:
            stage += 1
    for empty in range(pp - 2, 0, -1):  # only the first and the last stage may be without a layer
        if stages[empty] == 0:
            stages[max(s for s in range(empty) if stages[s] > 1)] -= 1
            stages[empty] = 1
    return stages


def run_toml(row, folder):
    layers, width, heads, ffn, tied = MODELS[row["model"]]
    sequences = row["dp"] * row["mbs"] * row["grad_acc"]
    (folder / "lengths.txt").write_text(f"{SEQUENCE}\n" * sequences)
    (folder / "run.toml").write_text(f"""[model]
num_layers = {layers}
hidden_dim = {width}
num_heads = {heads}
num_kv_heads = {row.get("kv_heads", heads)}
head_dim = {width // heads}
ffn_dim = {ffn}
vocab_size = {VOCABULARY}
tied_head = {str(tied).lower()}
[parallel]
dp = {row["dp"]}
pp = {row["pp"]}
tp = {row["tp"]}
zero = {row["zero"]}
[schedule]
stage_layers = {stage_layers(row["model"], row["pp"])}
[packing]
packer = "plain"
window = {row["mbs"] * SEQUENCE}
micro_batches = {row["dp"] * row["grad_acc"]}
[sharding]
strategy = "per-sequence"
[cluster]
file = "profiles/clusters/p5_efa.toml"
[software]
attention = "flash2"
fused = false
accumulation_bytes = 12
layer_launch_seconds = {LAUNCH}
[workload]
lengths = "{folder / 'lengths.txt'}"
[training]
steps = 1
precision = "bfloat16"
""")
    return folder / "run.toml"


def simulate(row, folder):
    # Micro-batches of 128 sequences and more are longer than any product that was measured.
    command = ["build/ballast", "simulate", run_toml(row, folder), "--json", "--extrapolate"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"simulate_nanotron: {row} failed")
    found = json.loads(done.stdout)
    row["predicted"] = found["step_seconds"]["mean"]
    row["predicted_bytes"], row["fits"] = found["peak_memory_bytes"]["max"], found["fits"]
    if row["ok"]:
        row["error"] = row["predicted"] / row["measured"] - 1


def slot_seconds(row):
    return row["measured"] / (row["grad_acc"] + row["pp"] - 1)


def hangs(row):
    """A pipeline whose slots took 0.6 s or more, and over 2.5 times what is predicted."""
    return row["ok"] and row["pp"] > 1 and slot_seconds(row) > 0.6 and row["error"] < -0.6


def started(row):
    """Whether nothing but the host bounds a layer of a small micro-batch from below."""
    return row["tp"] <= 8 and (row["pp"] == 1 or row["nodes"] == 1)


def ranks(values):
    order = sorted(values)
    return [order.index(value) + (order.count(value) - 1) / 2 for value in values]


def spearman(a, b):
    return statistics.correlation(ranks(a), ranks(b)) if len(a) > 2 else None


def errors(rows):
    held_back = [abs(r["error"]) for r in rows if r["held_back"]]
    return {"rows": len(rows), "median_error": statistics.median(abs(r["error"]) for r in rows),
            "held_back_median_error": statistics.median(held_back) if held_back else None,
            "median_signed_error": statistics.median(r["error"] for r in rows)}


def grouped(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return {name: errors(groups[name]) for name in sorted(groups)}


def order(rows):
    """Of one model and number of nodes: configurations of 256 sequences a step, ranked; and the one that would be picked."""
    found = []
    for model in MODELS:
        for nodes in sorted({r["nodes"] for r in rows}):
            ran = [r for r in rows if r["ok"] and (r["model"], r["nodes"]) == (model, nodes)
                   and r["dp"] * r["mbs"] * r["grad_acc"] == 256]
            if len(ran) < 3:
                continue
            picked = min((r for r in ran if r["fits"]), key=lambda r: r["predicted"])
            steady = [r for r in ran if not hangs(r)]
            found.append({"model": model, "nodes": nodes, "rows": len(ran),
                          "spearman": spearman([r["predicted"] for r in ran], [r["measured"] for r in ran]),
                          "spearman_without_hangs": spearman([r["predicted"] for r in steady],
                                                             [r["measured"] for r in steady]),
                          "pick_over_best": picked["measured"] / min(r["measured"] for r in ran) - 1,
                          "pick": degrees(picked)})
    return found


def degrees(row):
    return f"dp {row['dp']} pp {row['pp']} tp {row['tp']} zero {row['zero']} micro-batch {row['mbs']}"


def bytes_error(row):
    return row["predicted_bytes"] / (row["memory_gb"] * 2**30) - 1


def memory(rows):
    ran, failed = [r for r in rows if r["ok"]], [r for r in rows if not r["ok"]]
    over = [bytes_error(r) for r in ran]
    fits, fails = sum(r["fits"] for r in ran), sum(not r["fits"] for r in failed)
    return {"ran": len(ran), "of_them_predicted_to_fit": fits / len(ran), "failed": len(failed),
            "of_them_predicted_not_to_fit": fails / len(failed), "right": (fits + fails) / len(rows),
            "failed_predicted_under_half_of_memory": sum(r["predicted_bytes"] < 40 * 2**30 for r in failed),
            "bytes_median_error": statistics.median(map(abs, over)), "bytes_median_signed_error": statistics.median(over)}


REASONS = """
What is fitted: the host's time to start the kernels of a layer, {forward:.2f} ms forward and {backward:.2f} backward, on
rows that are not held back and have tp of at most 8 and no pipeline across nodes. What else a run's `[software]` says was
counted from nanotron's kernels. FlashAttention-2's rate at heads of 96, of model 3B, was not measured: it is taken to lie
halfway between those at 64 and 128. What an unfused layer keeps (`ballast/cost/memory.cpp`) was found with all rows in
view.

What remains, by its size:

- *Pipelines across nodes with tp 2 and more*: a layer takes 8 (tp 2), 12.5 (tp 4), 20 (tp 8) and 45 ms (tp 16) at least,
  whatever the model and the micro-batch; without a pipeline, or on one node, 4.2 ms. This cluster's, not explained, and
  not priced: off by {piped:.0%} (median of {piped_rows} rows with a pipeline across nodes, tp 2 and more).
- *Rows that hang*: pipelines with 0.6 s or more a slot, over 2.5 times what is predicted ({hangs} rows, {far} of them
  tp 16 and 32; the others take {slot[0]:.1f} to {slot[1]:.1f} s a slot, half of them over {slot[2]:.1f} s, whatever the
  model). Not explained; the sweep's generator has older pipeline rows run again. {full} of the {all_full} rows that
  measured 70 GB or more are among them, but {light} hold less than 40 GB.
- *tp 16 and 32*, across nodes: small gathers over EFA take many times what the bandwidth at 256 MB says; off by
  {wide:.0%} (median of {wide_rows} rows).
- *Memory of tp 16 and 32* is predicted {wide_bytes:+.0%} (median), that of the others {other_bytes:+.0%}: not explained.
  {under} rows that failed are predicted under 40 GiB; the sweep does not say why they failed.
"""


def reasons(rows):
    ran = [r for r in rows if r["ok"]]
    hung = [r for r in ran if hangs(r)]
    near = sorted(slot_seconds(r) for r in hung if r["tp"] <= 8)
    piped = [r for r in ran if r["pp"] > 1 and r["nodes"] > 1 and r["tp"] > 1]
    wide = [r for r in ran if r["tp"] > 8]
    full = [r for r in ran if r["memory_gb"] >= 70]
    of_memory = memory(rows)
    return REASONS.format(
        forward=LAUNCH[0] * 1e3, backward=LAUNCH[1] * 1e3, piped=errors(piped)["median_error"], piped_rows=len(piped),
        hangs=len(hung), far=len(hung) - len(near), slot=(near[0], near[-1], statistics.median(near)),
        full=sum(map(hangs, full)), all_full=len(full), light=sum(r["memory_gb"] < 40 for r in hung),
        wide=errors(wide)["median_error"], wide_rows=len(wide), under=of_memory["failed_predicted_under_half_of_memory"],
        wide_bytes=statistics.median(map(bytes_error, wide)),
        other_bytes=statistics.median(bytes_error(r) for r in ran if r["tp"] <= 8))


def write_page(result, rows):
    ran = [r for r in rows if r["ok"]]
    m, step = result["memory"], result["step"]
    lines = ["# Simulated against a sweep of nanotron on H100", "",
             "Hugging Face's sweep of dense models over parallel degrees, ZeRO stages and micro-batches, on 1 to 8 nodes of AWS p5",
             "(benchmarks/data/SOURCES.md); written by `benchmarks/run simulate_nanotron`. The profile is that of the other H100",
             "rows; one `[software]` section for all rows.", "",
             "Step time, of rows that ran:", "",
             "| | rows | median error | of rows held back | signed |", "|---|---|---|---|---|"]
    for name, e in {"all": step, "without those that hang": result["steady"],
                    "tp up to 8, no pipeline across nodes": result["started"]}.items():
        lines.append(f"| {name} | {e['rows']} | {e['median_error']:.1%} | {e['held_back_median_error']:.1%} | "
                     f"{e['median_signed_error']:+.1%} |")
    lines += ["",
             f"Memory: {m['of_them_predicted_to_fit']:.1%} of {m['ran']} rows that ran are predicted to fit into 80 GiB,",
             f"{m['of_them_predicted_not_to_fit']:.1%} of {m['failed']} that failed are not (the sweep does not say which failed",
             f"for memory; {m['failed_predicted_under_half_of_memory']} are predicted under 40 GiB); {m['right']:.1%} of all are right.",
             f"Bytes are off by {m['bytes_median_error']:.1%} (median, signed {m['bytes_median_signed_error']:+.1%}).", "",
             "| model | nodes | rows | rank correlation | without those that hang | pick over best measured | pick |",
             "|---|---|---|---|---|---|---|"]
    for o in result["order"]:
        steady = "" if o["spearman_without_hangs"] is None else f"{o['spearman_without_hangs']:.2f}"
        lines.append(f"| {o['model']} | {o['nodes']} | {o['rows']} | {o['spearman']:.2f} | {steady} | "
                     f"{o['pick_over_best']:+.1%} | {o['pick']} |")
    for name, groups in result["groups"].items():
        lines += ["", f"| {name} | rows | median error | signed |", "|---|---|---|---|"]
        lines += [f"| {key} | {g['rows']} | {g['median_error']:.1%} | {g['median_signed_error']:+.1%} |"
                  for key, g in groups.items()]
    lines += ["", "The twenty rows that are furthest off, without those that hang:", "",
              "| model | nodes | degrees | measured | predicted | |", "|---|---|---|---|---|---|"]
    for r in sorted((r for r in ran if not hangs(r)), key=lambda r: -abs(r["error"]))[:20]:
        lines.append(f"| {r['model']} | {r['nodes']} | {degrees(r)} | {r['measured']:.2f} s | {r['predicted']:.2f} s | "
                     f"{r['error']:+.0%} |")
    (ROOT / "docs" / "validation_nanotron.md").write_text("\n".join(lines) + "\n" + reasons(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=8, help="the most nodes of a row")
    most_nodes = parser.parse_args().nodes
    every = read_rows(most_nodes)
    rows = [r for r in every if r["pp"] <= MODELS[r["model"]][0] + 1]
    with tempfile.TemporaryDirectory() as folder:
        for number, row in enumerate(rows):
            simulate(row, Path(folder))
            if number % 50 == 0:
                print(f"{number} of {len(rows)} rows", file=sys.stderr, flush=True)
    ran = [r for r in rows if r["ok"]]
    result = {"rows": len(rows), "more_stages_than_layers": len(every) - len(rows), "hangs": sum(map(hangs, ran)),
              "step": errors(ran), "steady": errors([r for r in ran if not hangs(r)]),
              "started": errors([r for r in ran if started(r)]), "order": order(rows), "memory": memory(rows),
              "groups": {"nodes": grouped(ran, lambda r: r["nodes"]), "model": grouped(ran, lambda r: r["model"]),
                         "tp": grouped(ran, lambda r: r["tp"]), "pp": grouped(ran, lambda r: r["pp"]),
                         "micro-batch": grouped(ran, lambda r: r["mbs"]),
                         "nodes, pipeline": grouped(ran, lambda r: f"{r['nodes']}, {'yes' if r['pp'] > 1 else 'no'}")}}
    write_page(result, rows)
    # A row that ran as a line: measured and predicted seconds.
    result["rows_that_ran"] = [f"{r['model']}, {r['nodes']} nodes, {degrees(r)}: {r['measured']:.3f}, {r['predicted']:.3f}, "
                               f"{r['error']:+.1%}{', held back' if r['held_back'] else ''}" for r in ran]
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
