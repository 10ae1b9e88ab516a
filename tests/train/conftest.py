"""A corpus of small documents and the way to train on it, for the tests that run whole trainings."""

import json
import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from program import PROGRAM

RUN_TOML = """
[run]
folder = "run"

[corpus]
path = "corpus"

[model]
num_layers = 4
hidden_dim = 32
num_heads = 4
num_kv_heads = 2
head_dim = 8
ffn_dim = 48

[packing]
packer = "wlb"
window = 256
max_tokens = 384
micro_batches = 4
queues = [128]

[cost]
synthetic = [100, 1]

[training]
steps = 6
lr = 3e-3
min_lr = 3e-4

[launch]
timeout_seconds = 20
"""


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """300 documents of words, 1 to 700 bytes, in two domains."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = random.Random(1)
    lines = []
    for i in range(300):
        length = 1 if i % 50 == 0 else min(700, int(rng.lognormvariate(4, 1)))
        text = " ".join(rng.choice(["tensor", "rank", "stage", "a", "of"]) for _ in range(length))[: max(1, length)]
        lines.append(json.dumps({"text": text, "domain": ["prose", "code"][i % 2]}))
    (folder / "documents.jsonl").write_text("\n".join(lines) + "\n")
    subprocess.run([PROGRAM, "corpus", "build", "documents.jsonl", "--out", "corpus", "--quiet"], cwd=folder, check=True)
    return folder / "corpus"


class Training:
    def __init__(self, folder: Path, corpus: Path):
        self.folder = folder
        (folder / "corpus").symlink_to(corpus)
        (folder / "run.toml").write_text(RUN_TOML)

    def command(self, *arguments, **settings):
        """settings: section__key=value, as for --set."""
        command = [str(PROGRAM), "train", "run.toml", *map(str, arguments)]
        for name, value in settings.items():
            command += ["--set", f"{name.replace('__', '.', 1)}={value}"]
        return command

    def __call__(self, *arguments, timeout=120, env=None, **settings):
        return subprocess.run(self.command(*arguments, **settings), cwd=self.folder, capture_output=True, text=True,
                              timeout=timeout, env={**os.environ, **(env or {})})

    def start(self, *arguments, **settings):
        return subprocess.Popen(self.command(*arguments, **settings), cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def metrics(self, run="run"):
        path = self.folder / run / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def losses(self, run="run"):
        return [step["loss"] for step in self.metrics(run)]

    def span_kinds(self, run="run"):
        """Of what the ranks did, all of them together."""
        return {span[1] for path in (self.folder / run / "timeline").glob("measured-rank-*.jsonl")
                for line in path.read_text().splitlines() for span in json.loads(line).get("spans", [])}

    def wait_for_steps(self, number, run="run", seconds=60):
        until = time.monotonic() + seconds
        while len(self.metrics(run)) < number:
            assert time.monotonic() < until, f"no {number} steps in {seconds} s"
            time.sleep(0.02)


@pytest.fixture
def training(tmp_path, corpus):
    return Training(tmp_path, corpus)
