"""What the trainer's tensors hold, as it counts them itself, against what was predicted."""

import json

import pytest

CASES = {
    "one rank": {},
    "data parallel": dict(parallel__dp=2),
    "context parallel": dict(parallel__cp=2, model__num_kv_heads=4),
    "pipeline": dict(parallel__pp=2),
    "virtual stages": dict(parallel__pp=2, schedule__name="interleaved", schedule__virtual_stages=2),
    "more layers": dict(model__num_layers=6, model__ffn_dim=256),
    "float64": dict(training__precision="float64"),
}


@pytest.mark.parametrize("case", CASES)
def test_is_predicted_within_5_percent(training, case):
    done = training("--json", packing__packer="plain", packing__queues="[]", packing__max_tokens=0, packing__window=4096,
                    model__hidden_dim=64, model__head_dim=16, **{"model__ffn_dim": 192, **CASES[case]}, training__steps=2)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["predicted_peak_memory_bytes"] == pytest.approx(summary["peak_memory_bytes"], rel=0.05)
