"""ballast corpus build and info, as a user meets them."""

import array
import json
import os
import subprocess
import sys

import pytest
from program import PROGRAM, ROOT

TOKENIZER = """
import sys
from tokenizers import Tokenizer, models, pre_tokenizers
words = ["[UNK]", "</s>", "a", "ship", "sails", "far", "hello", "ballast"]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.save(sys.argv[1])
"""


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "news"
    folder.mkdir()
    (folder / "one.txt").write_text("a ship sails")
    (folder / "two.txt").write_text("hello")
    (folder / "photo").write_bytes(b"\x00\x01")
    (tmp_path / "mail.jsonl").write_text('{"text": "far"}\n{"text": "a ship", "domain": "law"}\n')
    return tmp_path


@pytest.fixture
def tokenizer(tmp_path):
    file = tmp_path / "tokenizer.json"
    subprocess.run([sys.executable, "-c", TOKENIZER, file], check=True)
    return file


def build(ballast, *arguments):
    done = ballast("corpus", "build", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def refused(ballast, *arguments):
    """The one line on stderr of a command that exits with 2."""
    done = ballast("corpus", *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_builds_from_folders_and_jsonl(ballast, texts):
    built = build(ballast, texts / "news", texts / "mail.jsonl", "--out", texts / "out")
    assert built["documents"] == 4
    assert built["tokens"] == len("a ship sails" + "hello" + "far" + "a ship")
    assert built["longest_tokens"] == 12
    assert built["domains"] == [
        {"name": "news", "documents": 2, "tokens": 17},
        {"name": "mail", "documents": 1, "tokens": 3},
        {"name": "law", "documents": 1, "tokens": 6},
    ]
    assert built["skipped"] == {"binary": 1}
    assert built["vocab_size"] == 256
    assert sorted(os.listdir(texts / "out")) == ["corpus.json", "domains.bin", "tokens.bin", "tokens.idx"]


def test_info_prints_what_build_printed(ballast, texts):
    built = build(ballast, texts / "news", "--out", texts / "out", "--append-eod")
    assert built["vocab_size"] == 257
    del built["repaired"]
    done = ballast("corpus", "info", texts / "out", "--json", "--verify")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == built
    assert "2 documents, 19 tokens" in ballast("corpus", "info", texts / "out").stdout


def test_reads_jsonl_from_standard_input(ballast, texts):
    done = ballast("corpus", "build", "-", "--out", texts / "out", "--json", stdin='{"text": "far"}\n')
    assert json.loads(done.stdout)["domains"] == [{"name": "stdin", "documents": 1, "tokens": 3}]


def test_tokenizes_with_a_hugging_face_tokenizer(ballast, texts, tokenizer):
    built = build(ballast, texts / "news", "--out", texts / "out", "--tokenizer", tokenizer, "--append-eod")
    assert (built["documents"], built["tokens"], built["vocab_size"], built["eod"]) == (2, 6, 8, 1)
    assert list(array.array("H", (texts / "out/tokens.bin").read_bytes())) == [2, 3, 4, 1, 6, 1]


def test_tokenizes_more_than_a_batch_alike_with_either_tokenizer(ballast, texts, tokenizer):
    lines = "".join(json.dumps({"text": "a ship sails far " * (i % 7 + 1)}) + "\n" for i in range(2000))
    (texts / "many.jsonl").write_text(lines)
    built = build(ballast, texts / "many.jsonl", "--out", texts / "out", "--tokenizer", tokenizer)
    assert built["documents"] == 2000
    assert built["tokens"] == sum(4 * (i % 7 + 1) for i in range(2000))


def test_names_what_is_wrong_with_a_tokenizer(ballast, texts, tokenizer):
    arguments = ["build", texts / "news", "--out", texts / "out", "--tokenizer"]
    bad = texts / "bad.json"
    bad.write_text("{}")
    assert "none.json: cannot be read: No such file" in refused(ballast, *arguments, texts / "none.json")
    assert "bad.json: not a tokenizer.json" in refused(ballast, *arguments, bad)
    assert "--eod-token <x>: not a token" in refused(ballast, *arguments, tokenizer, "--eod-token", "<x>")
    assert "--python /none/python: cannot be run" in refused(ballast, *arguments, tokenizer, "--python", "/none/python")
    assert not (texts / "out").exists()


def test_says_so_when_the_tokenizers_library_is_missing(ballast, texts, tokenizer):
    python = texts / "python"  # -S -E: a Python that sees no site-packages
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    line = refused(ballast, "build", texts / "news", "--out", texts / "out", "--tokenizer", tokenizer, "--python", python)
    assert "the tokenizers library is missing" in line


def test_a_tokenizer_that_dies_ends_the_build(ballast, texts, tokenizer):
    python = texts / "python"  # greets as the tokenizer does, then dies at the first batch
    python.write_text(
        f"#!{sys.executable}\nimport os, struct, sys\n"
        "sys.stdout.buffer.write(struct.pack('<qq', 8, 1)); sys.stdout.flush()\n"
        "sys.stdin.buffer.read(4); os.kill(os.getpid(), 9)\n"
    )
    python.chmod(0o755)
    arguments = ["build", texts / "news", "--out", texts / "out", "--tokenizer", tokenizer, "--python", python]
    done = ballast("corpus", *arguments)
    assert done.returncode == 1
    assert "tokenizer.json: the tokenizer stopped: its process was killed by signal 9" in done.stderr
    assert not (texts / "out").exists()


def test_does_not_replace_a_corpus_unless_told_to(ballast, texts):
    build(ballast, texts / "news", "--out", texts / "out")
    assert "--force replaces it" in refused(ballast, "build", texts / "news", "--out", texts / "out")
    assert build(ballast, texts / "mail.jsonl", "--out", texts / "out", "--force")["documents"] == 2


def test_refuses_bad_arguments(ballast, texts):
    assert "no PATHS given" in refused(ballast, "build", "--out", texts / "out")
    assert "NAME=PATH" in refused(ballast, "build", texts / "news", "--out", texts / "out", "--domain", "news")
    assert "lies in" in refused(ballast, "build", texts / "news", "--out", texts / "news" / "out")
    assert "none: no such folder" in refused(ballast, "info", texts / "none")
    assert "no corpus.json" in refused(ballast, "info", texts / "news")


def test_names_a_token_outside_the_vocabulary(ballast, texts):
    build(ballast, texts / "news", "--out", texts / "out")
    tokens = bytearray((texts / "out/tokens.bin").read_bytes())
    tokens[3] = 1  # the second token of the first document: 256 + 32
    (texts / "out/tokens.bin").write_bytes(tokens)
    assert "document 0, position 1: token 288" in refused(ballast, "info", texts / "out", "--verify")


def test_the_quickstart_corpus_has_several_domains_and_names_its_licences(texts):
    done = subprocess.run(
        [ROOT / "tools/quickstart_corpus", texts / "out"],
        capture_output=True,
        text=True,
        env={**os.environ, "BALLAST": str(PROGRAM)},
    )
    assert done.returncode == 0, done.stderr
    corpus = json.loads((texts / "out/corpus.json").read_text())
    assert [domain["name"] for domain in corpus["domains"]] == ["python-stdlib", "torch-python", "cpp-headers"]
    assert all(domain["tokens"] > 1_000_000 for domain in corpus["domains"])
    assert corpus["longest_tokens"] > 100 * corpus["tokens"] / corpus["documents"]  # heavy-tailed
    sources = (texts / "out/SOURCES.md").read_text()
    assert all(domain["name"] in sources for domain in corpus["domains"])
