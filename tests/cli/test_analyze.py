"""ballast analyze: is this workload imbalanced, and what would help."""

import json
import random

from refusal import assert_refused


def lines(values):
    return "".join(f"{value}\n" for value in values)


def analyze(ballast, lengths, *arguments):
    done = ballast("analyze", "-", "--json", *arguments, stdin=lines(lengths))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def heavy_tailed(count):
    rng = random.Random(1)
    return [min(8192, int(rng.lognormvariate(5, 1.8)) + 1) for _ in range(count)]


AT_8K = ("--window", "8K", "--micro-batches", 4)


def test_a_heavy_tail_is_balance_bound_and_says_what_helps(ballast):
    found = analyze(ballast, heavy_tailed(20000), *AT_8K, "--cp", 4, "--cost", "500,1")
    assert found["verdict"] == "balance-bound"
    assert "wait" in found["why"]
    assert found["imbalance"]["micro_batch"] > 1.1 and found["imbalance"]["cp"] > 1.05
    assert found["predicted_speedup"]["plain per-sequence"] == 1
    assert found["predicted_speedup"]["pool adaptive"] > found["predicted_speedup"]["plain adaptive"] > 1


def test_equal_documents_are_not_imbalanced(ballast):
    found = analyze(ballast, [1024] * 2000, *AT_8K, "--cost", "500,1")
    assert found["verdict"] == "not imbalanced"
    assert found["imbalance"] == {"micro_batch": 1.0, "cp": 1.0}


def test_bands_and_domains_add_up(ballast):
    text = lines(json.dumps({"length": n, "domain": d}) for n, d in [(1, "a"), (5, "b"), (7, "b"), (3000, "b")])
    done = ballast("analyze", "-", "--json", *AT_8K, stdin=text)
    found = json.loads(done.stdout)
    assert [(b["from_tokens"], b["documents"]) for b in found["bands"]] == [(1, 1), (4, 2), (2048, 1)]
    assert abs(sum(b["token_share"] for b in found["bands"]) - 1) < 1e-9
    assert abs(sum(b["squared_length_share"] for b in found["bands"]) - 1) < 1e-9
    assert found["domains"]["b"]["documents"] == 3


def test_every_window_from_32k_to_1m_has_a_forecast(ballast):
    found = analyze(ballast, heavy_tailed(5000), *AT_8K)
    assert [w["window_tokens"] for w in found["windows"]] == [8192, *(2**n for n in range(15, 21))]


def test_text_opens_with_the_verdict(ballast):
    done = ballast("analyze", "-", *AT_8K, stdin=lines(heavy_tailed(5000)))
    assert done.stdout.startswith(("balance-bound: ", "not imbalanced: ", "communication-bound: "))


def test_refuses_what_is_not_a_workload(ballast):
    assert_refused(ballast("analyze", "-", *AT_8K, stdin=""), "is empty")
    assert_refused(ballast("analyze", "-", "--window", 0, "--micro-batches", 4, stdin="5\n"), "--window")
    assert_refused(ballast("analyze", "-", "--window", 8, "--micro-batches", 4, "--cp", 0, stdin="5\n"), "--cp")
