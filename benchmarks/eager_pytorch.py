"""Tokens a second on one core: Ballast's step against the same model in eager PyTorch, interleaved step by step.

  taskset -c 0 .venv/bin/python benchmarks/eager_pytorch.py build/bench_trainer_step

The peer is what a PyTorch user would write without packing tricks: one scaled_dot_product_attention a document (the
same flash kernel), everything else on the packed tokens, AdamW fused. Both sides start from small random weights, so
their losses agree only roughly; equality of numbers is the tests' business.
"""

import argparse
import json
import statistics
import subprocess
import time

import torch
import torch.nn.functional as F
from torch import nn

TINY = dict(layers=2, hidden=256, heads=4, kv_heads=4, head_dim=64, ffn=768, vocab=256, theta=10000.0, eps=1e-5)
# Heavy-tailed, 16,384 tokens: drawn once from a log-normal and fixed.
LENGTHS = [5921, 201, 744, 1502, 96, 2410, 388, 1123, 57, 1890, 640, 312, 1100]


class Attention(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m
        self.wq = nn.Linear(m["hidden"], m["heads"] * m["head_dim"], bias=False)
        self.wk = nn.Linear(m["hidden"], m["kv_heads"] * m["head_dim"], bias=False)
        self.wv = nn.Linear(m["hidden"], m["kv_heads"] * m["head_dim"], bias=False)
        self.wo = nn.Linear(m["heads"] * m["head_dim"], m["hidden"], bias=False)

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x, cos, sin, bounds):
        m = self.m
        q = self.rotate(self.wq(x).view(-1, m["heads"], m["head_dim"]), cos, sin)
        k = self.rotate(self.wk(x).view(-1, m["kv_heads"], m["head_dim"]), cos, sin)
        v = self.wv(x).view(-1, m["kv_heads"], m["head_dim"])
        outs = []
        for begin, end in zip(bounds, bounds[1:]):
            qd, kd, vd = (t[begin:end].transpose(0, 1).unsqueeze(0) for t in (q, k, v))
            out = F.scaled_dot_product_attention(qd, kd, vd, is_causal=True, enable_gqa=m["heads"] != m["kv_heads"])
            outs.append(out.squeeze(0).transpose(0, 1))
        return self.wo(torch.cat(outs).reshape(x.shape[0], -1))


class Layer(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.attention_norm = nn.RMSNorm(m["hidden"], eps=m["eps"])
        self.attention = Attention(m)
        self.mlp_norm = nn.RMSNorm(m["hidden"], eps=m["eps"])
        self.gate = nn.Linear(m["hidden"], m["ffn"], bias=False)
        self.up = nn.Linear(m["hidden"], m["ffn"], bias=False)
        self.down = nn.Linear(m["ffn"], m["hidden"], bias=False)

    def forward(self, x, cos, sin, bounds):
        x = x + self.attention(self.attention_norm(x), cos, sin, bounds)
        n = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Model(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.m = m
        self.embedding = nn.Embedding(m["vocab"], m["hidden"])
        self.layers = nn.ModuleList(Layer(m) for _ in range(m["layers"]))
        self.norm = nn.RMSNorm(m["hidden"], eps=m["eps"])
        self.head = nn.Linear(m["hidden"], m["vocab"], bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, positions, bounds):
        m = self.m
        frequencies = m["theta"] ** (-torch.arange(0, m["head_dim"], 2).double() / m["head_dim"])
        angles = torch.outer(positions.double(), frequencies)
        x = self.embedding(tokens)
        cos, sin = (t.to(x.dtype).unsqueeze(1) for t in (angles.cos(), angles.sin()))
        for layer in self.layers:
            x = layer(x, cos, sin, bounds)
        return self.head(self.norm(x))


class Eager:
    def __init__(self, m, lengths, precision):
        self.dtype = torch.bfloat16 if precision == "bfloat16" else None
        self.model = Model(m)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        self.bounds = [0]
        for length in lengths:
            self.bounds.append(self.bounds[-1] + length)
        self.tokens = torch.arange(self.bounds[-1]).mul(7919).remainder(10007).remainder(m["vocab"])
        self.positions = torch.cat([torch.arange(length) for length in lengths])
        self.labels = self.tokens.roll(-1)
        self.labels[torch.tensor(self.bounds[1:]) - 1] = -100

    def step(self):
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=self.dtype or torch.bfloat16, enabled=self.dtype is not None):
            logits = self.model(self.tokens, self.positions, self.bounds)
        loss = F.cross_entropy(logits.float(), self.labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizer.step()
        return time.perf_counter() - begin, loss.item()


class Ballast:
    def __init__(self, program, lengths, precision):
        self.process = subprocess.Popen([program, "tiny", precision, ",".join(map(str, lengths))], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def step(self):
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        seconds, loss = self.process.stdout.readline().split()
        return float(seconds), float(loss)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="build/bench_trainer_step")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--rounds", type=int, default=10, help="steps of each, after two that warm up")
    parser.add_argument("--lengths", type=lambda text: [int(x) for x in text.split(",")], default=LENGTHS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    ours = Ballast(arguments.program, arguments.lengths, arguments.precision)
    eager = Eager(TINY, arguments.lengths, arguments.precision)
    times = {"ballast": [], "eager": []}
    losses = {}
    for round_number in range(arguments.rounds + 2):
        for name, side in (("ballast", ours), ("eager", eager)):
            seconds, losses[name] = side.step()
            if round_number >= 2:
                times[name].append(seconds)
    ours.close()

    tokens = sum(arguments.lengths)
    result = {
        "model": TINY, "precision": arguments.precision, "tokens": tokens, "documents": len(arguments.lengths),
        "rounds": arguments.rounds, "torch": torch.__version__, "capability": torch.backends.cpu.get_cpu_capability(),
    }
    for name in times:
        result[name] = {
            "tokens_per_second": round(tokens / statistics.median(times[name])),
            "step_seconds": {"min": min(times[name]), "median": statistics.median(times[name]), "max": max(times[name])},
            "last_loss": losses[name],
        }
    result["speedup"] = statistics.median(e / b for b, e in zip(times["ballast"], times["eager"]))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
