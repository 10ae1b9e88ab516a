"""The page of `ballast explain` as a reader meets it."""

import json

import pytest
from program import ROOT

CLUSTER = ("--cluster", ROOT / "profiles/clusters/a100_dgx.toml", "--model", "llama-7b")
# On 2 nodes of 8: two documents in rings, ten local, tokens moved to even out the linear modules.
SHORT = "3K,3K,2K,2K,2K,2K,1K,1K,1K,1K,700,500"
# One document over both nodes, all others local.
LONG = "48K,8K,8K,6K,6K,4K,3K,2K,2K,2K,2K,1K,1K,1K,1K,700,500"


@pytest.fixture
def explained(ballast, browser, tmp_path):
    """Opens the page of `explain ARGUMENTS...`; gives its data, which is also what --json prints."""

    def run(*arguments, width=1200):
        done = ballast("explain", *arguments, *CLUSTER, "--json", "--out", "page.html")
        assert done.returncode == 0, done.stderr
        browser.size(width)
        browser.open(tmp_path / "page.html")
        assert browser.errors == []
        assert all(not address.startswith("http") for address in browser.requests)
        return json.loads(done.stdout)

    return run


def text(browser, selector):
    return browser.value(f"document.querySelector({json.dumps(selector)}).textContent")


def tip_at(browser, selector, x_share, y):
    """The tip at a share of the width of what the selector finds, y pixels below its top."""
    browser.value(f"document.querySelector('{selector}').scrollIntoView({{block: 'center'}})")
    browser.frame()  # scrolling hides the tip, and is told only before a frame
    left, top, width = browser.value(f"(() => {{ const b = document.querySelector('{selector}').getBoundingClientRect();"
                                     "return [b.x, b.y, b.width]; })()")
    browser.mouse("mouseMoved", left + x_share * width, top + y)
    return browser.value("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")


def overlapping_texts(browser, selector):
    return browser.value(f"""(() => {{
        const boxes = [...document.querySelectorAll('{selector} text')].map((t) => [t.textContent, t.getBoundingClientRect()]);
        return boxes.flatMap(([a, p], i) => boxes.slice(i + 1)
            .filter(([, q]) => Math.min(p.right, q.right) - Math.max(p.left, q.left) > 2
                            && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 5)
            .map(([b]) => a + ' / ' + b));
    }})()""")


def test_the_answer_stands_on_top(explained, browser):
    data = explained("placement", "--lengths", SHORT, "--cp", 16)
    placement, queues = data["placement"], data["placement"]["queues"]
    assert placement["moved_tokens"] > 0 and queues["intra_node"] > 0
    title = text(browser, "h1")
    assert title.startswith(placement["sharding"]) and "an even share" in title
    counts = f"{queues['inter_node']} across nodes, {queues['intra_node']} in a node, {queues['local']} local"
    assert counts in title
    answer = text(browser, "#placement > p")
    assert counts in answer and f"{placement['moved_tokens']:,} tokens" in answer


def test_every_part_of_every_rank_is_drawn_and_tells_what_it_is(explained, browser):
    data = explained("placement", "--lengths", LONG, "--cp", 16)
    ranks = data["placement"]["ranks"]
    assert {part[0] for rank in ranks for part in rank["forward"]} >= {"inter_node", "local", "linear"}
    parts = browser.value("Number(document.querySelector('#placement .plot canvas').dataset.parts)")
    assert parts == sum(len(rank["forward"]) for rank in ranks) > 0
    first = tip_at(browser, "#placement .plot canvas", 0.4, 10)
    for words in ("rank 0, node 0 · ring across nodes", "begins", "lasts", "ends"):
        assert words in first
    assert f"of them in rings across nodes{ranks[0]['queue_tokens']['inter_node']:,}" in tip_at(browser, "#placement .plot canvas", 0.12, 10)


def test_a_ranks_tokens_are_those_of_its_queues_and_its_last_part_is_the_linear_modules(explained):
    for rank in explained("placement", "--lengths", SHORT, "--cp", 16)["placement"]["ranks"]:
        assert sum(rank["queue_tokens"].values()) == rank["tokens"]
        assert [part[0] for part in rank["forward"]].index("linear") == len(rank["forward"]) - 1


def test_says_which_rank_ends_last(explained, browser):
    data = explained("placement", "--lengths", LONG, "--cp", 16)
    ends = [max((part[2] for part in rank["forward"]), default=0) for rank in data["placement"]["ranks"]]
    assert f"Rank {ends.index(max(ends))} ends last" in text(browser, "#placement-ranks figcaption p")


def test_arrow_keys_go_through_ranks_and_parts(explained, browser):
    explained("placement", "--lengths", LONG, "--cp", 16)
    browser.value("document.querySelector('#placement .plot canvas').focus()")
    tips = []
    for key in ("ArrowDown", "ArrowRight", "ArrowDown"):
        browser.press(key)
        tips.append(text(browser, "#tip"))
    assert "tokens in attention" in tips[0] and "ring across nodes" in tips[1] and tips[2].startswith("rank 1")


def test_the_table_holds_every_rank(explained, browser):
    data = explained("placement", "--lengths", SHORT, "--cp", 16)
    browser.value("document.querySelector('#placement details').open = true")
    browser.frame()
    rows = browser.value("[...document.querySelectorAll('#placement tbody tr')].map((row) => [...row.cells].slice(0, 4)"
                         ".map((cell) => Number(cell.textContent)))")
    assert rows == [[rank["rank"], rank["node"], rank["tokens"], rank["linear_tokens"]] for rank in data["placement"]["ranks"]]


def test_sharders_are_sorted_and_the_chosen_one_is_marked(explained, browser):
    data = explained("placement", "--lengths", SHORT, "--cp", 16)
    names = browser.value("[...document.querySelectorAll('#sharders text.row-label[text-anchor=end]')].map((t) => t.textContent)")
    assert sorted(name.replace("-", "_") for name in names) == sorted(data["trials"])
    seconds = [data["trials"][name.replace("-", "_")]["seconds"] for name in names]
    assert seconds == sorted(seconds)
    chosen = browser.value("[...document.querySelectorAll('#sharders text.chosen')].map((t) => t.textContent)")
    assert chosen[0] == data["placement"]["sharding"] and "an even share · chosen" in chosen[1]
    assert data["why"] in text(browser, "#sharders")


@pytest.mark.parametrize("width", [1200, 700, 480])
def test_no_text_covers_another_and_nothing_is_wider_than_the_page(explained, browser, width):
    explained("placement", "--lengths", LONG, "--cp", 16, width=width)
    assert overlapping_texts(browser, "#zones-chart") == []
    assert overlapping_texts(browser, "#sharders-trials") == []
    assert browser.value("document.documentElement.scrollWidth <= innerWidth")


def test_crossings_are_lines_with_their_length_between_named_zones(explained, browser):
    data = explained("zones")  # --json of zones alone is the zones themselves
    inside, across = data["intra_node_from_tokens"], data["inter_node_from_tokens"]
    assert 64 < inside < across
    assert browser.value("document.querySelectorAll('#zones line.crossing').length") == 2
    names = browser.value("[...document.querySelectorAll('#zones text')].map((t) => t.textContent)")
    assert {f"in a node from {inside:,}", f"across nodes from {across:,}", "local", "in a node", "across nodes"} <= set(names)
    assert {"attention", "linear modules", "transfer in a node", "transfer across nodes", "1K", "64K"} <= set(names)
    assert f"from {inside:,} on a ring in a node" in text(browser, "#zones > p")
    # A page of zones alone has no empty sections, and its skip link leads somewhere.
    assert browser.value("[...document.querySelectorAll('section')].map((s) => s.id)") == ["zones"]


def test_crossings_that_do_not_exist_are_said_in_words(explained, browser):
    data = explained("zones", "--longest", "1K")
    assert data["longest_tokens"] == 1024
    assert data["intra_node_from_tokens"] is None and data["inter_node_from_tokens"] is None
    assert "No length up to 1K tokens hides a ring's messages" in text(browser, "#zones > p")
    assert browser.value("document.querySelectorAll('#zones line.crossing').length") == 0


def test_a_plan_that_gathers_keys_has_bars_of_tokens_and_no_time(ballast, browser, tmp_path):
    # Without links rings gain nothing, and the first sharder is kept.
    done = ballast("explain", "placement", "--lengths", "64K,9K,3K,1K", "--cp", 16, "--json", "--out", "page.html")
    assert done.returncode == 0, done.stderr
    assert all(rank["forward"] == [] for rank in json.loads(done.stdout)["placement"]["ranks"])
    browser.size(1200)
    browser.open(tmp_path / "page.html")
    assert browser.errors == []
    assert "keys and values are gathered" in text(browser, "h1")
    assert "tokens in linear modules" in tip_at(browser, "#placement .plot canvas", 0.3, 10)


def test_hundreds_of_ranks_are_drawn_in_thin_rows(explained, browser):
    data = explained("placement", "--lengths", "400K,40K,40K,9K,3K,1K,700", "--cp", 256)
    assert len(data["placement"]["ranks"]) == 256
    height = browser.value("document.querySelector('#placement .plot canvas').clientHeight")
    assert 256 * 3 <= height <= 256 * 10
    drawn, parts = browser.value("(({drawn, parts}) => [Number(drawn), Number(parts)])"
                                 "(document.querySelector('#placement .plot canvas').dataset)")
    assert 256 <= drawn < parts  # parts of one queue without a gap are one rectangle


def test_in_the_dark_too(explained, browser, tmp_path):
    explained("placement", "--lengths", LONG, "--cp", 16)
    pixel = ("(() => { const c = document.querySelector('#placement .plot canvas');"
             "return [...c.getContext('2d').getImageData(Math.round(c.width * 0.4), 8, 1, 1).data]; })()")
    light = browser.value(pixel)
    browser.size(1200, dark=True)
    browser.open(tmp_path / "page.html")
    assert browser.errors == []
    assert browser.value(pixel) != light
    browser.size(1200)
