#!/usr/bin/env python3
"""Writes a run folder of made-up figures: 4 ranks (pp 2 x cp 2), heavy-tailed lengths, deterministic. Nothing in it was
measured; it is for tests of what reads run folders.

Usage: tests/report/synthetic_run.py FOLDER [--packer plain|wlb] [--steps N] [--replayed] [--seed N]
"""

import argparse
import json
import random
from pathlib import Path

WINDOW = 4096
MICRO_BATCHES = 4
PP, CP, LAYERS = 2, 2, 2  # layers a stage
DOMAINS = ["code", "docs", "letters"]
MOVE = 0.0004             # seconds that any message takes
TOKEN, SQUARE = 1e-6, 6e-9  # seconds of a forward pass: a token, a squared token


def documents_of(rng, step):
    """Heavy-tailed documents of one step, cut to fill exactly MICRO_BATCHES windows."""
    left, documents = WINDOW * MICRO_BATCHES, []
    while left > 0:
        length = min(int(40 / rng.random() ** 1.1), WINDOW, left)
        domain = 0 if length > 1500 else rng.choice([0, 1, 1, 2, 2, 2])
        documents.append({"length": length, "domain": domain, "due": step})
        left -= length
    return documents


def pack(documents, packer, step, rng):
    """Cut at windows as plain packing does; wlb deals the same pieces out by their cost, so the work is equal."""
    cut, room = [[]], WINDOW
    for document in documents:
        rest = document["length"]
        while rest > 0:
            if room == 0:
                cut.append([])
                room = WINDOW
            part = min(room, rest)
            cut[-1].append({**document, "length": part})
            rest -= part
            room -= part
    if packer == "plain":
        return cut
    bins = [[] for _ in range(MICRO_BATCHES)]
    load = [0.0] * MICRO_BATCHES
    for document in sorted(sum(cut, []), key=lambda d: -d["length"]):
        if document["length"] > 1500 and step > 2:
            document = {**document, "due": step - rng.choice([0, 1, 1, 2, 3])}
        slot = load.index(min(load))
        bins[slot].append(document)
        load[slot] += TOKEN * document["length"] + SQUARE * document["length"] ** 2
    return bins


def forward_seconds(micro_batch):
    return sum(TOKEN * d["length"] + SQUARE * d["length"] ** 2 for d in micro_batch)


def actions_of(stage):
    """1F1B, lowered, for P = 2."""
    warm = PP - 1 - stage
    forwards, backwards, order = iter(range(MICRO_BATCHES)), iter(range(MICRO_BATCHES)), []
    for _ in range(warm):
        order.append(("F", next(forwards)))
    for _ in range(MICRO_BATCHES - warm):
        order += [("F", next(forwards)), ("B", next(backwards))]
    order += [("B", m) for m in backwards]
    lowered = []
    for kind, m in order:
        source = stage > 0 if kind == "F" else stage < PP - 1
        target = stage < PP - 1 if kind == "F" else stage > 0
        lowered += ([("RECV_" + kind, m)] if source else []) + [(kind, m)] + ([("SEND_" + kind, m)] if target else [])
    return lowered


def schedule_text():
    lines = [f"schedule 1f1b ranks {PP} virtual_stages 1 micro_batches {MICRO_BATCHES}"]
    lines += [" ".join(f"{stage}{kind}{m}" for kind, m in actions_of(stage)) for stage in range(PP)]
    return "\n".join(lines) + "\n"


class Step:
    """Runs one step's schedule on a clock a rank and keeps its spans."""

    def __init__(self, micro_batches, begin, noise, lease):
        self.clock = [begin] * (PP * CP)
        self.spans = [[] for _ in range(PP * CP)]
        self.noise, self.lease = noise, lease
        self.collective("CONTROL", range(PP * CP), "world", 64)
        for rank in range(PP * CP):
            self.work(rank, "LOAD", 0.002)
        sent = {}
        queues = [actions_of(stage) for stage in range(PP)]
        while any(queues):
            for stage, queue in enumerate(queues):
                while queue and (not queue[0][0].startswith("RECV") or (queue[0][0][-1], queue[0][1], stage) in sent):
                    kind, m = queue.pop(0)
                    self.act(stage, kind, m, micro_batches[m], sent)
        for stage in range(PP):
            self.collective("REDUCE_GRAD", [stage * CP + c for c in range(CP)], "dp_cp", 1 << 20)
        self.collective("REDUCE_NORM", range(PP * CP), "world", 8)
        for rank in range(PP * CP):
            self.work(rank, "OPTIMIZER", 0.004)
        self.end = max(self.clock)

    def add(self, rank, kind, begin, end, stage=-1, m=-1, layer=-1, wait=0.0, lease=0.0, size=0, peer=-1, axis="none"):
        self.spans[rank].append([rank, kind, stage, m, layer, begin, end, wait, lease, size, peer, axis])
        self.clock[rank] = end

    def work(self, rank, kind, seconds):
        begin = self.clock[rank]
        self.add(rank, kind, begin, begin + seconds * self.noise())

    def collective(self, kind, ranks, axis, size, **labels):
        arrived = max(self.clock[r] for r in ranks)
        for r in ranks:
            begin = self.clock[r]
            lease = self.lease() if arrived > begin else 0.0
            self.add(r, kind, begin, arrived + lease + MOVE, wait=arrived - begin, lease=lease, size=size, axis=axis, **labels)

    def act(self, stage, kind, m, micro_batch, sent):
        ranks = [stage * CP + c for c in range(CP)]
        if kind.startswith("SEND"):
            other = stage + (1 if kind == "SEND_F" else -1)
            for c, r in enumerate(ranks):
                begin = self.clock[r]
                self.add(r, kind, begin, begin + MOVE, stage, m, size=WINDOW * 256, peer=other * CP + c)
                sent.setdefault((kind[-1], m, other), {})[c] = begin + MOVE
        elif kind.startswith("RECV"):
            other = stage + (-1 if kind == "RECV_F" else 1)
            for c, r in enumerate(ranks):
                begin = self.clock[r]
                ready = max(begin, sent[kind[-1], m, stage][c])
                lease = self.lease() if ready > begin else 0.0
                self.add(r, kind, begin, ready + lease + MOVE, stage, m, wait=ready - begin, lease=lease, peer=other * CP + c)
        else:
            inner = "GATHER_KV" if kind == "F" else "REDUCE_KV"
            seconds = forward_seconds(micro_batch) * (1 if kind == "F" else 2)
            begins = [self.clock[r] for r in ranks]
            places = [len(self.spans[r]) for r in ranks]
            for layer in range(stage * LAYERS, (stage + 1) * LAYERS):
                self.collective(inner, ranks, "cp", WINDOW * 64, stage=stage, m=m, layer=layer)
                for c, r in enumerate(ranks):
                    self.clock[r] += seconds / CP / LAYERS * (1.06 if c else 0.94) * self.noise()
            for r, begin, place in zip(ranks, begins, places):
                end = self.clock[r]
                self.add(r, kind, begin, end, stage, m)
                outer = self.spans[r].pop()
                outer[7], outer[8] = (sum(s[i] for s in self.spans[r][place:]) for i in (7, 8))
                self.spans[r].insert(place, outer)

    def work_seconds(self):
        own = []
        for spans in self.spans:
            inner = sum(s[6] - s[5] for s in spans if s[1] in ("GATHER_KV", "REDUCE_KV"))
            own.append(sum(s[6] - s[5] for s in spans if s[1] in ("F", "B", "LOAD", "OPTIMIZER")) - inner)
        return own

    def wait_seconds(self):
        return [sum(s[7] for s in spans if s[1] not in ("F", "B")) for spans in self.spans]


def rounded(spans, shift=0.0):
    return [[*s[:5], round(s[5] - shift, 7), round(s[6] - shift, 7), round(s[7], 7), round(s[8], 7), *s[9:]] for s in spans]


def write_lines(path, values):
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def write_run(folder, packer="plain", seed=1, steps=12, replayed=False, domains=DOMAINS, machine="made-up machine", **summary_changes):
    """Writes the folder and gives the figures it wrote: {"summary": ..., "metrics": [...]}."""
    folder = Path(folder)
    (folder / "timeline").mkdir(parents=True)
    data, noise_rng = random.Random(seed), random.Random(f"{seed} {packer}")
    noise = lambda: 1 + 0.04 * (noise_rng.random() - 0.5)  # noqa: E731
    lease = (lambda: 0.02 * noise_rng.random()) if replayed else (lambda: 0.0)
    dims = {"dp": 1, "pp": PP, "cp": CP}
    plans, metrics, arrival, clock = [], [], 0, 0.5
    timelines = {"predicted": [], "measured": [[] for _ in range(PP * CP)], "replayed": []}
    for step in range(steps):
        packed = pack(documents_of(data, step), packer, step, noise_rng)
        micro_batches = []
        for documents in packed:
            entries = []
            for d in documents:
                entries.append([arrival % 1000, arrival, 0, d["length"], d["domain"] % len(domains), 1, d["due"]])
                arrival += 1
            micro_batches.append({"documents": entries})
        shards = [{"sharding": "per_sequence", "ranges": [[[0, t // 2]] if t else [], [[t // 2, t]] if t else []]}
                  for t in (sum(d["length"] for d in documents) for documents in packed)]
        plans.append({"version": 1, "step": step, "dims": dims, "stage_layers": [LAYERS] * PP, "schedule": schedule_text(),
                      "micro_batches": [micro_batches], "shard_plans": [shards]})
        predicted = Step(packed, 0.0, lambda: 0.96, lambda: 0.0)
        measured = Step(packed, clock, noise, lease)
        replay = Step(packed, 0.0, lambda: 1.0, lambda: 0.0)
        timelines["predicted"].append({"step": step, "spans": rounded(sum(predicted.spans, []))})
        timelines["replayed"].append({"step": step, "spans": rounded(sum(replay.spans, []))})
        for rank, spans in enumerate(measured.spans):
            timelines["measured"][rank].append({"step": step, "spans": rounded(spans)})
        seconds = measured.end - clock
        clock = measured.end + 0.003
        works, waits = measured.work_seconds(), measured.wait_seconds()
        costs = [forward_seconds(b) for b in packed]
        tokens = sum(d["length"] for b in packed for d in b)
        delays = [(step - d["due"], d["length"]) for b in packed for d in b]
        metrics.append({
            "step": step, "loss": 5.5 * 0.93 ** step + 0.02 * noise_rng.random(), "tokens": tokens, "labels": tokens - len(delays),
            "step_seconds": seconds, "tokens_per_second": tokens / seconds, "grad_norm": 1.0, "lr": 0.001,
            "imbalance": {"micro_batch": max(costs) * len(costs) / sum(costs), "cp": 1.06},
            "imbalance_measured": max(works) * len(works) / sum(works), "predicted_step_seconds": predicted.end,
            "replayed_step_seconds": replay.end if replayed else None, "planning_seconds": 0.001, "recording_seconds": 0.0005,
            "wait_seconds": {"mean": sum(waits) / len(waits), "max": max(waits)},
            "work_seconds": {"mean": sum(works) / len(works), "max": max(works)},
            "token_delay_steps": {"mean": sum(d * t for d, t in delays) / tokens, "max": max(d for d, _ in delays)}})
    total, tokens = sum(m["step_seconds"] for m in metrics), sum(m["tokens"] for m in metrics)
    times = sorted(m["step_seconds"] for m in metrics)
    truth = [m["replayed_step_seconds"] or m["step_seconds"] for m in metrics]
    errors = [abs(m["predicted_step_seconds"] - t) / t for m, t in zip(metrics, truth)]
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    summary = {
        "command": f"ballast train {packer}.toml --nproc 4", "date": "2001-02-03", "machine": {"device": machine, "cores": 4},
        "model": "layers 4, hidden 256, heads 4/4 x 64, ffn 768, vocab 256", "precision": "float32", "window": WINDOW,
        "parallel": {**dims, "virtual_stages": 1}, "packer": packer, "sharding": "per_sequence", "profile": "made-up.json",
        "seed": seed, "steps": steps, "loss": {"first": metrics[0]["loss"], "last": metrics[-1]["loss"]}, "tokens": tokens,
        "tokens_per_second": tokens / total, "step_seconds": {"mean": total / steps, "p50": times[len(times) // 2], "max": times[-1]},
        "tokens_per_second_replayed": tokens / sum(truth) if replayed else None,
        "imbalance": {"micro_batch": mean([m["imbalance"]["micro_batch"] for m in metrics]), "cp": 1.06},
        "imbalance_measured": mean([m["imbalance_measured"] for m in metrics]),
        "prediction_error": {"mean": mean(errors), "max": max(errors)},
        "documents": {"in": arrival, "out": arrival, "truncated": 0, "split": 0, "held": 0},
        "token_delay_steps": {"mean": 0.5, "p50": 0, "p99": 3, "max": 3, "by_domain": {domains[0]: {"mean": 0.5, "p50": 0, "p99": 3, "max": 3}}},
        **summary_changes}
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    (folder / "corpus.json").write_text(json.dumps({"path": "data/made-up", "domains": domains, "documents": 1000, "tokens": 2000000}), encoding="utf-8")
    write_lines(folder / "plan.jsonl", plans)
    write_lines(folder / "metrics.jsonl", metrics)
    header = lambda source: {"version": 1, "source": source, "dims": dims}  # noqa: E731
    write_lines(folder / "timeline" / "predicted.jsonl", [header("predicted"), *timelines["predicted"]])
    for rank, lines in enumerate(timelines["measured"]):
        write_lines(folder / "timeline" / f"measured-rank-{rank:05}.jsonl", [header("measured"), *lines])
    if replayed:
        write_lines(folder / "timeline" / "replayed.jsonl", [header("replayed"), *timelines["replayed"]])
    return {"summary": summary, "metrics": metrics}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--packer", default="plain", choices=["plain", "wlb"])
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replayed", action="store_true")
    options = parser.parse_args()
    write_run(options.folder, options.packer, options.seed, options.steps, options.replayed)


if __name__ == "__main__":
    main()
