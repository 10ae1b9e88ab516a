"""Zeppelin on an emulated cluster of 2 nodes x 4 ranks with 4 cards of 200 Mbit/s a node: real sockets, the real executor,
computation paced as on A800 and H100. One crossing and a ring, routed and direct; then a step of every strategy on three
mixes of documents, measured and predicted. Needs root; nothing else may run meanwhile. Prints one JSON object.

  benchmarks/run emulated_links zeppelin_emulated    the first is the crossing and the ring alone: a minute
"""

import itertools
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MIXES = ["prolong", "prolong64k", "own documents"]
CASES = {"a800_two_nodes": MIXES, "h100_two_nodes": MIXES}
CONTEXT = 65536  # tokens; documents are cut there
STRATEGIES = {
    "ring": ["sharding.strategy=ring", "sharding.routing=off"],
    "ring, routed": ["sharding.strategy=ring"],
    "all-gather": ["sharding.strategy=per-sequence", "sharding.routing=off"],
    "hybrid DP": ["sharding.strategy=hybrid-dp", "sharding.routing=off"],
    "zeppelin, neither routed nor moved": ["sharding.strategy=zeppelin", "sharding.routing=off", "sharding.moves=off"],
    "zeppelin, routed": ["sharding.strategy=zeppelin", "sharding.moves=off"],
    "zeppelin": ["sharding.strategy=zeppelin"],
}
BASELINES = ["ring", "all-gather", "hybrid DP"]
TOKEN_SCALE = 64
HEADS = 4 * TOKEN_SCALE // 16  # the recipe has 4 where a token stands for 16
SCALED = [f"model.num_heads={HEADS}", f"model.num_kv_heads={HEADS}", f"packing.window={CONTEXT // TOKEN_SCALE}"]
STEPS = 4  # the first warms up and does not count
SAME = 0.02  # two strategies nearer than this have no order


def emulation(profile):
    return ROOT / f"profiles/emulated/{profile}.toml"


def coarser(profile, folder):
    """The emulation with a token of the run for TOKEN_SCALE: as many bytes to send, and less for two cores to compute."""
    text = emulation(profile).read_text().replace('"../', f'"{ROOT}/profiles/')
    text, found = re.subn(r"^token_scale = 16$", f"token_scale = {TOKEN_SCALE}", text, flags=re.M)
    assert found == 1
    path = folder / f"{profile}.toml"
    path.write_text(text)
    return path


def own_lengths():
    """Of the documents of this machine that `make quickstart` found, in bytes: taken for tokens."""
    with tempfile.NamedTemporaryFile() as packed:
        subprocess.run(["build/ballast", "pack", "data/quickstart", "--packer", "plain", "--window", str(CONTEXT),
                        "--micro-batches", "1", "--out", packed.name, "--quiet"], cwd=ROOT, check=True)
        steps = [json.loads(line) for line in Path(packed.name).read_text().splitlines()]
    return [d[3] for step in steps for m in step["micro_batches"] for d in m["documents"]]


def published_lengths(name, rng, count=20000):
    data = json.loads((ROOT / "benchmarks/data" / name).read_text())
    if isinstance(data, list):
        return data
    ranges = [tuple(map(int, re.findall(r"\d+", key))) for key in data]
    return [rng.randrange(low, high) for low, high in rng.choices(ranges, weights=list(data.values()), k=count)]


def a_few_like(lengths, rng):
    """As many as the steps take and a tenth more, evenly spaced in length among all: so few drawn at random may have no
    long one."""
    lengths = sorted(min(length, CONTEXT) for length in lengths)
    count = round(1.1 * STEPS * CONTEXT / statistics.mean(lengths))
    few = [lengths[int((i + 0.5) / count * len(lengths))] for i in range(count)]
    rng.shuffle(few)
    return few


def make_corpus(folder, name, lengths, rng):
    """Documents of a TOKEN_SCALE-th of the lengths, 2 tokens at least. What they say does not matter."""
    path = folder / f"{name}.jsonl"
    with path.open("w") as file:
        for length in lengths:
            text = "".join(rng.choices("etaoin shrdlu", k=max(2, min(length, CONTEXT) // TOKEN_SCALE)))
            file.write(json.dumps({"text": text}) + "\n")
    subprocess.run(["build/ballast", "corpus", "build", path, "--out", folder / name, "--quiet"], cwd=ROOT, check=True)
    return folder / name


def in_cluster(file, command):
    done = subprocess.run(["tools/emulated_cluster", "run", file, "--", *map(str, command)], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr[-2000:]}")
    return done


def train(file, corpus, keys, folder):
    run = folder / "run"
    subprocess.run(["rm", "-rf", run], check=True)
    command = ["build/ballast", "train", "recipes/emulated/run.toml", "--emulate", file, "--json", "--set",
               f"run.folder={run}", "--set", f"corpus.path={corpus}", "--set", f"training.steps={STEPS}"]
    for key in [*SCALED, *keys]:
        command += ["--set", key]
    done = in_cluster(file, command)
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][1:]
    late, worked = map(float, re.search(r"was ([\d.]+) s late .* in ([\d.]+) s", done.stderr).groups())
    return {"step_seconds": statistics.mean(s["step_seconds"] for s in steps),
            "predicted_step_seconds": statistics.mean(s["predicted_step_seconds"] for s in steps),
            "planning_share": max(s["planning_seconds"] / s["step_seconds"] for s in steps),
            "machine_late_share": late / worked}


def right_order(strategies):
    """Of pairs of strategies that differ in measured time, how many are predicted in that order."""
    right = []
    for a, b in itertools.combinations(strategies.values(), 2):
        if abs(a["step_seconds"] / b["step_seconds"] - 1) > SAME:
            right.append((a["step_seconds"] < b["step_seconds"]) ==
                         (a["predicted_step_seconds"] < b["predicted_step_seconds"]))
    return right


def measured_links():
    links = {}
    for way in ("direct", "routed"):
        done = in_cluster(emulation("a800_two_nodes"), ["build/bench_emulated_links", emulation("a800_two_nodes"), way])
        links[way] = json.loads(done.stdout)
    ring = {way: f["ring_forward_seconds"] + f["ring_backward_seconds"] for way, f in links.items()}
    return {**links, "routed_crossing_over_direct": links["direct"]["crossing_seconds"] /
            links["routed"]["crossing_seconds"], "routed_ring_over_direct": ring["direct"] / ring["routed"]}


def main():
    links = measured_links()
    if sys.argv[1:] == ["links"]:
        print(json.dumps(links, indent=1))
        return
    cases = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for profile in CASES:
            file = coarser(profile, folder)
            rng = random.Random(5)
            mixes = {"prolong": published_lengths("dist_prolong.json", rng),
                     "prolong64k": published_lengths("prolong64k.json", rng), "own documents": own_lengths()}
            for mix in CASES[profile]:
                lengths = a_few_like(mixes[mix], rng)
                corpus = make_corpus(folder, f"{profile}-{mix.replace(' ', '-')}", lengths, rng)
                strategies = {s: train(file, corpus, keys, folder) for s, keys in STRATEGIES.items()}
                best = min(strategies[b]["step_seconds"] for b in BASELINES)
                case = {"profile": profile, "mix": mix, "strategies": strategies,
                        "over_ring": {s: strategies["ring"]["step_seconds"] / f["step_seconds"]
                                      for s, f in strategies.items()},
                        "zeppelin_over_best_baseline": best / strategies["zeppelin"]["step_seconds"],
                        "pairs_in_right_order": right_order(strategies)}
                cases.append(case)
                print(profile, mix, {s: f"{f['step_seconds']:.2f}/{f['predicted_step_seconds']:.2f}"
                                     for s, f in strategies.items()}, file=sys.stderr, flush=True)
    errors = [abs(f["predicted_step_seconds"] / f["step_seconds"] - 1) for c in cases for f in c["strategies"].values()]
    pairs = [right for c in cases for right in c["pairs_in_right_order"]]
    print(json.dumps({
        "token_scale": TOKEN_SCALE,
        "links": links,
        "prediction": {"mean_error": statistics.mean(errors), "largest_error": max(errors),
                       "pairs": len(pairs), "pairs_in_right_order": sum(pairs) / len(pairs)},
        "planning_share_max": max(f["planning_share"] for c in cases for f in c["strategies"].values()),
        "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
