"""The page of a planner's candidates as a reader meets it."""

import json
import shutil

import pytest
from program import ROOT

RUN = """
[model]
preset = "llama3-8b"
vocab_size = 32000
[packing]
window = "16K"
micro_batches = 8
[cluster]
file = "profiles/clusters/h100_dgx.toml"
[workload]
lengths = "lengths.txt"
[training]
precision = "bfloat16"
[plan]
gpus = 16
windows = [1]
packers = ["plain", "pool"]
"""


@pytest.fixture
def planned(ballast, browser, tmp_path):
    (tmp_path / "run.toml").write_text(RUN)
    (tmp_path / "lengths.txt").write_text("\n".join(str(200 + i * 7919 % 9000) for i in range(2000)))
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    done = ballast("plan", "run.toml", "--json", "--page", "plan.html")
    assert done.returncode == 0, done.stderr
    browser.size(1280)
    browser.open(tmp_path / "plan.html")
    assert browser.errors == []
    return json.loads(done.stdout)


def test_shows_the_choice_all_candidates_and_what_one_change_costs(planned, browser):
    best = planned["candidates"][0]
    assert f"{round(best['tokens_per_second']):,}" in browser.value("document.querySelector('h1').textContent")
    rows = "document.querySelectorAll('#{} tbody tr').length"
    assert browser.value(rows.format("variations")) == len(planned["variations"])
    assert browser.value(rows.format("degrees")) == len(planned["degrees"])
    points = browser.value("document.querySelectorAll('#time-memory circle.point').length")
    assert 1 <= points <= planned["simulated"]
    assert all(not address.startswith("http") for address in browser.requests)


def test_a_point_says_what_it_is_and_why_it_is_not_the_first(planned, browser):
    box = browser.value("(() => { const b = [...document.querySelectorAll('#time-memory circle.point')].at(-1)"
                        ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
    browser.mouse("mouseMoved", *box)
    tip = browser.value("document.getElementById('tip').textContent")
    for words in ("tokens a second", "to the first", "bubble", "exposed communication", "memory", "tp "):
        assert words in tip
