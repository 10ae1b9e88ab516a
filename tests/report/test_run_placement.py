"""Zones, placement and the three queues of a run, on the page of `ballast report`."""

import json
import shutil

import pytest
from program import ROOT
from synthetic_run import write_run

RUN = f"""
[model]
preset = "llama-7b"
vocab_size = 32000
[parallel]
cp = 16
dp = 2
[packing]
packer = "plain"
window = "64K"
micro_batches = 4
oversize = "truncate"
[cluster]
file = "{ROOT}/profiles/clusters/zeppelin_a.toml"
[workload]
lengths = "lengths.txt"
[training]
steps = 2
precision = "bfloat16"
"""
LENGTHS = [48000, 6000, 6000, 3000, 2000, 536] * 40  # one long document a window, as documents come


@pytest.fixture
def report(ballast, browser, tmp_path):
    """report(name=strategy, ...): simulates these runs, reports on all of them and opens the page; gives their folders."""
    (tmp_path / "run.toml").write_text(RUN)
    (tmp_path / "lengths.txt").write_text("\n".join(map(str, LENGTHS)))

    def simulate(**strategies):
        for name, strategy in strategies.items():
            done = ballast("simulate", "run.toml", "--set", f"sharding.strategy={strategy}", "--out", name, "--quiet")
            assert done.returncode == 0, done.stderr
        return open_page(*strategies)

    def open_page(*names, width=1280):
        done = ballast("report", *names, "--out", "report.html", "--quiet")
        assert done.returncode == 0, done.stderr
        browser.size(width)
        browser.open(tmp_path / "report.html")
        assert browser.errors == []
        return [tmp_path / name for name in names]

    simulate.open_page = open_page
    return simulate


def text(browser, selector):
    return browser.value(f"document.querySelector({json.dumps(selector)}).textContent")


def ids(browser):
    return browser.value("[...document.querySelectorAll('section')].map((section) => section.id)")


def test_a_run_in_rings_shows_zones_placement_and_every_part_of_the_three_queues(report, browser):
    [folder] = report(zeppelin="zeppelin")
    shown = json.loads((folder / "placement.json").read_text())
    placement, zones = shown["placement"], shown["zones"]
    queues = placement["queues"]
    assert queues["local"] > 0 and queues["inter_node"] > 0
    counts = f"{queues['inter_node']} across nodes, {queues['intra_node']} in a node, {queues['local']} local"
    assert counts in text(browser, "#placement > p")
    parts = browser.value("Number(document.querySelector('#placement .plot canvas').dataset.parts)")
    assert parts == sum(len(rank["forward"]) for rank in placement["ranks"]) > 0
    legend = text(browser, "#placement .legend")
    assert all(name in legend for name in ("ring across nodes", "local", "linear modules"))
    assert f"from {zones['intra_node_from_tokens']:,} on a ring in a node" in text(browser, "#zones > p")
    assert browser.value("document.querySelectorAll('#zones line.crossing').length") == 2


def test_says_which_micro_batch_is_shown_and_who_predicts_it(report, browser):
    [folder] = report(zeppelin="zeppelin")
    shown = json.loads((folder / "placement.json").read_text())
    assert (f"step {shown['step']}, micro-batch {shown['micro_batch']} of data parallel rank {shown['dp_rank']}"
            in text(browser, "#placement h3"))
    assert "Predicted by A800" in text(browser, "#placement")
    plan = json.loads((folder / "plan.jsonl").read_text().splitlines()[shown["step"]])
    documents = plan["micro_batches"][shown["dp_rank"]][shown["micro_batch"]]["documents"]
    assert sum(document[3] for document in documents) == shown["placement"]["tokens"]
    pairs = [sum(document[3] ** 2 for document in batch["documents"]) for pipeline in plan["micro_batches"] for batch in pipeline]
    assert sum(document[3] ** 2 for document in documents) == max(pairs)


def test_a_run_whose_keys_are_gathered_shows_none(report, browser):
    [folder] = report(even="per-sequence")
    assert not (folder / "placement.json").exists()
    assert "placement" not in ids(browser) and "zones" not in ids(browser)


def test_a_run_without_plans_shows_none(ballast, browser, report, tmp_path):
    write_run(tmp_path / "bare", steps=3)
    (tmp_path / "bare" / "plan.jsonl").unlink()
    report.open_page("bare")
    assert "placement" not in ids(browser) and "zones" not in ids(browser)


def test_runs_in_rings_stand_below_each_other_to_one_scale_and_share_their_zones(report, browser):
    report(gathered="per-sequence", ring="ring", placed="zeppelin")
    assert [i for i in ids(browser) if i.startswith(("placement", "zones"))] == ["placement", "placement-2", "zones"]
    titles = [text(browser, f"#{section} h2") for section in ("placement", "placement-2")]
    assert titles == ["Where documents go: ring", "Where documents go: placed"]
    # To one scale: the canvas that ends earlier has its last part further left.
    last = ("[...document.querySelectorAll('.ranks > .plot canvas')].map((c) => { const row = c.getContext('2d')"
            ".getImageData(0, 8, c.width, 1).data; const edge = c.width - 70; let x = edge;"
            "const grey = (i) => Math.abs(row[4 * i] - row[4 * i + 2]) < 30 && row[4 * i] < 200 && row[4 * i] > 100;"
            "while (x > 0 && !grey(x)) --x; return x; })")
    ring, placed = browser.value(last)
    assert 300 < placed < ring


def test_a_run_without_a_cost_in_seconds_shows_tokens_by_queue_and_says_why_no_times(report, browser):
    [folder] = report(placed="zeppelin")
    known = json.loads((folder / "placement.json").read_text())["placement"]["queues"]
    (folder / "placement.json").unlink()  # as a run without a profile leaves it
    report.open_page("placed")
    assert "zones" not in ids(browser)
    assert f"{known['local']} local" in text(browser, "#placement > p")
    assert "no cost in seconds" in text(browser, "#placement figcaption p")
    assert browser.value("Number(document.querySelector('#placement .plot canvas').dataset.parts)") == 0
    assert "ring across nodes" in text(browser, "#placement .legend")


@pytest.mark.parametrize("width", [1280, 480])
def test_nothing_is_wider_than_the_page(report, browser, width):
    report(ring="ring", placed="zeppelin")
    report.open_page("ring", "placed", width=width)
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("change, words", [
    (lambda v: v["placement"]["ranks"][0]["forward"][0].__setitem__(0, "nap"), ["nap", "intra_node"]),
    (lambda v: v["zones"].pop("longest_tokens"), ["zones", "longest_tokens"]),
    (lambda v: v["placement"]["ranks"].clear(), ["placement.ranks", "a rank or more"]),
    (lambda v: v["placement"].__setitem__("tokens", -1), ["placement.tokens", "-1"]),
])
def test_a_broken_placement_is_one_line_naming_file_and_key_and_no_page(ballast, report, tmp_path, change, words):
    [folder] = report(placed="zeppelin")
    value = json.loads((folder / "placement.json").read_text())
    change(value)
    (folder / "placement.json").write_text(json.dumps(value))
    (tmp_path / "report.html").unlink()
    refused = ballast("report", "placed", "--out", "report.html")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert all(word in refused.stderr for word in ["placement.json", *words]), refused.stderr
    assert not (tmp_path / "report.html").exists()


def test_a_new_run_does_not_keep_the_placement_of_another(ballast, report, tmp_path):
    [folder] = report(placed="zeppelin")
    (tmp_path / "again").mkdir()
    shutil.copy(folder / "placement.json", tmp_path / "again")
    done = ballast("simulate", "run.toml", "--set", "sharding.strategy=per-sequence", "--out", "again", "--quiet")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "again/placement.json").exists()
