"""ballast pack and ballast shard, as users and scripts meet them."""

import json

import pytest
from refusal import assert_refused


def lines(values):
    return "".join(f"{value}\n" for value in values)


def pack(ballast, lengths, *arguments):
    done = ballast("pack", "-", "--json", *arguments, stdin=lines(lengths))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def shard(ballast, *arguments, stdin=""):
    done = ballast("shard", "--json", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WINDOW_8 = ("--window", 8, "--micro-batches", 2)
PACKERS = ("plain", "next-fit", "fixed-greedy", "wlb", "pool")


def test_eight_sevens_under_a_cap_of_eight_never_share(ballast):
    figures = pack(ballast, [7] * 8, "--packer", "wlb", "--window", 8, "--micro-batches", 8)
    assert figures["steps"] == 1
    assert figures["micro_batch_tokens"] == {"min": 7, "mean": 7.0, "max": 7}


@pytest.mark.parametrize("packer", PACKERS)
def test_documents_in_are_documents_out(ballast, packer):
    figures = pack(ballast, [90, 2, *[10] * 7, 1], "--packer", packer, "--window", 100, "--micro-batches", 2)
    documents = figures["documents"]
    assert documents["in"] == documents["out"] == 10
    assert documents["held"] == documents["truncated"] == documents["refused"] == 0
    assert figures["micro_batch_tokens"]["max"] <= 100


def test_a_long_document_is_refused_by_name_before_anything_is_written(ballast, tmp_path):
    done = ballast("pack", "-", "--packer", "wlb", "--window", 8192, "--micro-batches", 2, "--oversize", "refuse",
                   "--out", "packed.jsonl", stdin=lines([100, 9000, 100]))
    assert_refused(done, "document 1", "9000", "8192")
    assert list(tmp_path.iterdir()) == []


def test_a_long_document_is_truncated_or_split_and_counted(ballast):
    truncated = pack(ballast, [9, 1], "--packer", "wlb", *WINDOW_8)["documents"]
    assert (truncated["truncated"], truncated["truncated_tokens"]) == (1, 1)
    split = pack(ballast, [9, 1], "--packer", "wlb", *WINDOW_8, "--oversize", "split")["documents"]
    assert (split["truncated"], split["split"], split["out"]) == (0, 1, 2)


def test_delay_is_reported_by_domain(ballast):
    text = lines(json.dumps({"length": n, "domain": d}) for n, d in [(8, "books")] + [(2, "chat")] * 40)
    done = ballast("pack", "-", "--json", "--packer", "wlb", *WINDOW_8, "--queues", 8, stdin=text)
    delay = json.loads(done.stdout)["token_delay_steps"]
    assert delay["by_domain"]["books"]["mean"] > delay["by_domain"]["chat"]["mean"] == 0


def test_the_mix_of_domains_is_kept_where_it_is_worth_something(ballast):
    text = lines(json.dumps({"length": 7 if i % 4 == 0 else 1 + i % 2, "domain": "long" if i % 4 == 0 else "short"})
                 for i in range(400))

    def apart(weight):
        done = ballast("pack", "-", "--json", "--packer", "pool", *WINDOW_8, "--max-tokens", 12, "--mix-weight", weight,
                       stdin=text)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["domain_mix_apart"]

    assert apart(10) <= apart(0)


def test_the_same_seed_packs_the_same_bytes(ballast, tmp_path):
    written = []
    for name in "ab":
        pack(ballast, range(1, 50), "--packer", "wlb", "--window", 64, "--micro-batches", 2, "--shuffle", 3, "--out", name)
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
    pack(ballast, range(1, 50), "--packer", "wlb", "--window", 64, "--micro-batches", 2, "--shuffle", 4, "--out", "c")
    assert (tmp_path / "c").read_bytes() != written[0]


def test_a_histogram_is_sampled_by_its_seed(ballast):
    histogram = json.dumps({"[1,64)": 0.9, "[64,1024)": 0.1})
    done = ballast("pack", "-", "--json", "--packer", "plain", "--window", "1K", "--micro-batches", 2, "--documents", 500,
                   "--seed", 9, stdin=histogram)
    figures = json.loads(done.stdout)
    assert figures["sampled"] == {"documents": 500, "seed": 9}
    assert figures["documents"]["in"] == 500


def test_text_names_the_cost_and_quiet_says_nothing(ballast):
    arguments = ("pack", "-", "--packer", "wlb", *WINDOW_8)
    assert "predicted by cost" in ballast(*arguments, stdin="7\n").stdout
    assert ballast(*arguments, "--quiet", stdin="7\n").stdout == ""


@pytest.mark.parametrize(
    "lengths, arguments, mentions",
    [
        ("", (), ["standard input", "empty"]),
        ("7\n-5\n", (), ["line 2", "-5"]),
        ("7\nseven\n", (), ["line 2", "seven"]),
        ("7\n0\n", (), ["line 2", "\"0\""]),
        ("7\n3000000000\n", (), ["line 2", "2^31"]),
        ("7\n", ("--micro-batches", "-1"), ["micro_batches = -1"]),
        ("7\n", ("--mix-weight", "1"), ["mix_weight", "pool"]),
        ("7\n", ("--queues", "8,4"), ["queues"]),
        ("7\n", ("--token-swing", "1.5"), ["token_swing"]),
        ("7\n", ("--max-delay", "-1"), ["max_delay = -1"]),
        ("7\n", ("--packer", "wlbb"), ["wlbb", "did you mean wlb"]),
        ("7\n", ("--max-tokens", "4"), ["max_tokens = 4", "window = 8"]),
        ("7\n", ("--window", "8.5"), ["--window", "8.5"]),
        ("7\n", ("--window", "0"), ["window = 0"]),
        ("7\n", ("--micro-batches", "0"), ["micro_batches = 0"]),
        ("7\n", ("--queues", "4,4"), ["queues"]),
        ("7\n", ("--cost", "1"), ["--cost", "A,B"]),
        ("7\n", ("--cost", "0,0"), ["cost"]),
        ("7\n", ("--oversize", "truncat"), ["truncat", "did you mean truncate"]),
        ("7\n", ("--skip-steps", "1"), ["--skip-steps"]),
        ("7\n", ("--profile", "none.json"), ["--model"]),
        ("7\n", ("--profile", "none.json", "--model", "tiny"), ["none.json"]),
        ("7\n", ("--profile", "none.json", "--model", "tinny"), ["tinny", "did you mean tiny"]),
    ],
)
def test_bad_input_is_one_clear_line(ballast, lengths, arguments, mentions):
    given = {"--packer": "wlb", "--window": "8", "--micro-batches": "2", **dict(zip(arguments[::2], arguments[1::2]))}
    done = ballast("pack", "-", *[word for pair in given.items() for word in pair], stdin=lengths)
    assert_refused(done, *mentions)


def test_a_missing_file_is_named(ballast):
    assert_refused(ballast("pack", "none.jsonl", "--packer", "wlb", *WINDOW_8), "none.jsonl")
    assert_refused(ballast("shard", "none.jsonl", "--cp", 2, "--sharding", "all"), "none.jsonl")


def test_per_document_sharding_is_even_where_per_sequence_is_not(ballast):
    strategies = shard(ballast, "--lengths", "4,12", "--cp", 2, "--sharding", "all")["strategies"]
    assert strategies["per_document"]["attention_pairs"]["max_over_mean"] == 1
    assert strategies["per_sequence"]["attention_pairs"]["max_over_mean"] == pytest.approx(52 / 44)


@pytest.mark.parametrize("lengths, cp", [("7", 2), ("3", 4), ("0", 4), ("9000,100,0,1", 6), ("1", 1024)])
def test_any_length_shards_under_any_degree(ballast, lengths, cp):
    found = shard(ballast, "--lengths", lengths, "--cp", cp, "--sharding", "all")
    total = sum(map(int, lengths.split(",")))
    for figures in found["strategies"].values():
        assert figures["tokens"]["max_over_mean"] * total / cp <= total / cp + 1
    assert found["chosen"] in ("per_sequence", "per_document")


def test_shard_reads_what_pack_writes(ballast, tmp_path):
    pack(ballast, [4, 12, 9, 2, 1], "--packer", "wlb", "--window", 16, "--micro-batches", 2, "--out", "packed.jsonl")
    found = shard(ballast, "packed.jsonl", "--cp", 2, "--sharding", "adaptive")
    assert found["micro_batches"] == 2
    assert found["why"]
    piped = shard(ballast, "-", "--cp", 2, "--sharding", "adaptive", stdin=(tmp_path / "packed.jsonl").read_text())
    assert piped == found


@pytest.mark.parametrize(
    "arguments, mentions",
    [
        (("--lengths", "7", "--cp", "0", "--sharding", "all"), ["--cp = 0"]),
        (("--lengths", "7", "--cp", "2", "--sharding", "per-docment"), ["did you mean per-document"]),
        (("--lengths", "7,-1", "--cp", "2", "--sharding", "all"), ["--lengths", "-1"]),
        (("--cp", "2", "--sharding", "all"), ["--lengths"]),
    ],
)
def test_bad_shard_input_is_one_clear_line(ballast, arguments, mentions):
    assert_refused(ballast("shard", *arguments), *mentions)
