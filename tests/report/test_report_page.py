"""The report page as a reader meets it: made by the program, opened in headless Chromium."""

import json
import re

import pytest
from synthetic_run import write_run

HOSTILE = """</script><script>alert(1)</script>"'&<b>ü漢🙂"""


@pytest.fixture
def page(ballast, browser, tmp_path):
    """page(run, ...) makes runs with these options (packer, replayed, ...), reports on them and opens the page."""

    def make(*runs, arguments=()):
        written = {}
        for name, options in runs:
            written[name] = write_run(tmp_path / name, **options)
        result = ballast("report", *written, *arguments, "--out", "report.html")
        assert result.returncode == 0, result.stderr
        browser.size(1280)
        browser.open(tmp_path / "report.html")
        assert browser.errors == []
        return written

    return make


def count(browser, selector):
    return browser.value(f"document.querySelectorAll({json.dumps(selector)}).length")


def text(browser, selector):
    return browser.value(f"document.querySelector({json.dumps(selector)}).textContent")


def tokens_per_second(written, skip=1):
    steps = written["metrics"][skip:]
    return sum(m["tokens"] for m in steps) / sum(m["step_seconds"] for m in steps)


def test_one_run_has_every_section(page, browser):
    written = page(("only", {"steps": 6}))["only"]
    assert f"{round(tokens_per_second(written)):,}" in text(browser, "h1")
    assert count(browser, "#timeline canvas") == 1
    assert count(browser, "#waits figure") == 1
    assert count(browser, "#waits figure svg text.row-label") == 4  # a rank
    for chart in ("imbalance", "step-time", "imbalance-cp", "loss", "predicted-scatter", "lengths-documents", "lengths-tokens", "delay"):
        assert count(browser, f"#{chart} svg") == 1, chart
    assert count(browser, "#predicted-scatter circle.step") == 6
    assert count(browser, "#loss path.series") == 1
    assert count(browser, "#loss circle.point") == 6


def test_the_page_asks_for_nothing_but_itself(page, browser, tmp_path):
    page(("plain", {"steps": 3}), ("balanced", {"steps": 3, "packer": "wlb"}))
    assert [address for address in browser.requests if not address.startswith("data:")] == [(tmp_path / "report.html").as_uri()]


def test_the_headline_states_the_ratio_of_the_runs_figures(page, browser):
    runs = page(("plain", {"steps": 8}), ("balanced", {"steps": 8, "packer": "wlb"}), arguments=["--skip-steps", "2"])
    ratio = tokens_per_second(runs["balanced"], 2) / tokens_per_second(runs["plain"], 2)
    assert f"{ratio:.2f}x" in text(browser, "h1")
    assert f"{ratio:.2f}×" in text(browser, "#figures tbody tr:nth-child(2) td:nth-child(3)")


def test_a_replayed_run_is_judged_and_labelled_by_its_replay(page, browser):
    runs = page(("plain", {"steps": 5, "replayed": True}), ("balanced", {"steps": 5, "packer": "wlb", "replayed": True}))
    warm = [r["metrics"][1:] for r in runs.values()]
    rate = [sum(m["tokens"] for m in steps) / sum(m["replayed_step_seconds"] for m in steps) for steps in warm]
    assert f"{rate[1] / rate[0]:.2f}x" in text(browser, "h1")
    assert "replayed" in text(browser, "#figures")
    assert browser.value("[...document.querySelectorAll('.panel')].map((panel) => panel.dataset.source)") == ["replayed", "replayed"]


def test_three_runs_stand_side_by_side(page, browser):
    page(("a", {"steps": 3}), ("b", {"steps": 3, "packer": "wlb"}), ("c", {"steps": 3, "packer": "wlb", "seed": 5}))
    assert count(browser, "#figures tbody tr") == 3
    assert count(browser, "#timeline canvas") == 3
    assert count(browser, "#loss path.series") == 3
    assert "seed" in text(browser, ".story")  # c differs in more than its packing


def test_the_timeline_draws_every_span_of_the_step(page, browser, tmp_path):
    page(("run", {"steps": 3}))
    step = int(browser.value("document.querySelector('.panel').dataset.step"))
    spans = 0
    for rank in range(4):
        for line in (tmp_path / f"run/timeline/measured-rank-{rank:05}.jsonl").read_text().splitlines()[1:]:
            entry = json.loads(line)
            spans += len(entry["spans"]) if entry["step"] == step else 0
    assert int(browser.value("document.querySelector('.panel canvas').dataset.spans")) == spans
    assert int(browser.value("document.querySelector('.panel canvas').dataset.drawn")) == spans


def test_runs_share_one_time_scale_and_zoom_together(page, browser):
    page(("plain", {"steps": 3}), ("balanced", {"steps": 3, "packer": "wlb"}))
    drawn = "[...document.querySelectorAll('.panel canvas')].map((canvas) => +canvas.dataset.drawn)"
    before = browser.value(drawn)
    browser.value("document.querySelector('.panel canvas').focus()")
    for _ in range(4):
        browser.press("+", "+")
    after = browser.value(drawn)
    assert all(a < b for a, b in zip(after, before))
    browser.press("0", "0")
    assert browser.value(drawn) == before


def test_the_keyboard_reads_the_timeline(page, browser):
    page(("run", {"steps": 3}))
    browser.value("document.querySelector('.panel canvas').focus()")
    browser.press("ArrowDown")
    assert "CONTROL · rank 0 (dp 0, pp 0, cp 0)" in text(browser, "#tip")
    browser.press("ArrowRight")
    assert "LOAD · rank 0" in text(browser, "#tip")
    browser.press("ArrowDown")
    assert "rank 1 (dp 0, pp 0, cp 1)" in text(browser, "#tip")
    browser.press("Escape")
    assert browser.value("document.getElementById('tip').hidden")


def test_the_pointer_reads_exact_labels(page, browser):
    page(("run", {"steps": 3}))
    box = browser.value("(() => { const canvas = document.querySelector('.panel canvas'); canvas.scrollIntoView(); "
                        "const box = canvas.getBoundingClientRect(); return [box.left, box.top, box.width]; })()")
    browser.mouse("mouseMoved", box[0] + box[2] * 0.5, box[1] + 6)
    tip = text(browser, "#tip")
    assert re.search(r"rank 0", tip) and "lasts" in tip and "begins" in tip


def test_a_table_stands_under_every_chart(page, browser):
    page(("plain", {"steps": 4}), ("balanced", {"steps": 4, "packer": "wlb"}))
    assert count(browser, "figure") == count(browser, "figure details")
    browser.value("document.querySelector('#loss details').open = true")
    browser.frame()
    assert count(browser, "#loss tbody tr") == 4
    assert count(browser, "#loss thead th") == 3


def test_the_step_can_be_chosen(page, browser):
    page(("run", {"steps": 5}))
    browser.value("(() => { const select = document.querySelector('#timeline select'); select.value = '3'; select.dispatchEvent(new Event('change')); })()")
    assert browser.value("document.querySelector('.panel').dataset.step") == "3"


def test_hostile_names_stay_text(page, browser, tmp_path):
    name = HOSTILE.replace("/", "∕")  # a folder's name may hold anything but a slash
    runs = page((name, {"steps": 3, "domains": [HOSTILE, "b", "c"], "machine": HOSTILE}))
    assert name in text(browser, "h1")
    assert HOSTILE in text(browser, "#about")
    assert count(browser, "body script") == 2  # the data and the page's own
    assert count(browser, "b") == 0
    assert browser.value("document.title") == "Ballast: " + list(runs)[0]


def test_long_runs_give_small_pages_that_say_what_is_left_out(page, browser, tmp_path):
    page(("long", {"steps": 60}))
    assert (tmp_path / "report.html").stat().st_size < 3e6
    assert "80 are left out" in text(browser, "#left-out")  # 60 measured and 60 predicted, 20 of each shown
    assert count(browser, "#predicted-scatter circle.step") == 60


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_overflows_on_a_desk_or_a_phone(page, browser, width, dark):
    page(("plain", {"steps": 3}), ("balanced", {"steps": 3, "packer": "wlb"}))
    browser.size(width, dark=dark, touch=width < 600)
    browser.frame()
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.errors == []


def test_a_run_without_timelines_or_plans_still_gives_a_page(ballast, browser, tmp_path):
    write_run(tmp_path / "bare", steps=3)
    for file in (tmp_path / "bare" / "timeline").iterdir():
        file.unlink()
    (tmp_path / "bare" / "plan.jsonl").unlink()
    (tmp_path / "bare" / "summary.json").unlink()
    result = ballast("report", "bare", "--out", "report.html")
    assert result.returncode == 0, result.stderr
    browser.open(tmp_path / "report.html")
    assert browser.errors == []
    assert count(browser, "p.note") == 3  # each said
    assert count(browser, "#loss svg") == 1
