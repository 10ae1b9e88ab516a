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


def without_placement(browser):
    sections = browser.value("[...document.querySelectorAll('section')].map((section) => section.id)")
    return "placement" not in sections and "zones" not in sections


def test_a_plan_that_gathers_keys_shows_no_placement(planned, browser):
    assert without_placement(browser)


@pytest.fixture
def planned_in_rings(ballast, browser, tmp_path):
    (tmp_path / "run.toml").write_text(
        RUN.replace("h100_dgx", "zeppelin_a").replace("llama3-8b", "llama-7b").replace('"16K"', '"64K"')
        .replace("gpus = 16", "gpus = 16\ncp = [16]").replace("micro_batches = 8", 'micro_batches = 2\noversize = "truncate"')
        + '[sharding]\nstrategy = "zeppelin"\n')
    (tmp_path / "lengths.txt").write_text("\n".join(["48000", "6000", "6000", "3000", "2000", "536"] * 60))
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    done = ballast("plan", "run.toml", "--json", "--extrapolate", "--page", "plan.html")
    assert done.returncode == 0, done.stderr
    browser.size(1280)
    browser.open(tmp_path / "plan.html")
    assert browser.errors == []
    return json.loads(done.stdout)


def test_a_plan_that_may_use_the_stated_rings_shows_zones_placement_and_queues_of_its_best(planned_in_rings, browser):
    in_rings = [i for i, c in enumerate(planned_in_rings["candidates"], 1) if c["sharding"] == "zeppelin"]
    assert in_rings  # [sharding] strategy is among what is chosen from
    page = json.loads(browser.value("document.getElementById('data').textContent"))
    assert page["placement"]["of"]["ranked"] == in_rings[0]
    said = browser.value("document.getElementById('placement').textContent")
    assert "Of the first candidate" in said if in_rings[0] == 1 else f"Of candidate {in_rings[0]}" in said
    queues = page["placement"]["placement"]["queues"]
    assert f"{queues['inter_node']} across nodes, {queues['intra_node']} in a node, {queues['local']} local" in said
    parts = browser.value("Number(document.querySelector('#placement .plot canvas').dataset.parts)")
    assert parts == sum(len(rank["forward"]) for rank in page["placement"]["placement"]["ranks"]) > 0
    assert browser.value("document.querySelectorAll('#zones line.crossing').length") == 2
