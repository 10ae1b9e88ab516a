"""tools/check_layers.py on small trees: what it refuses, and that it lets the rest pass."""

import subprocess
import sys

import pytest
from program import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import check_layers


def violations(tmp_path, files):
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return check_layers.check(tmp_path, list(files))


def test_this_repository_has_no_violation():
    done = subprocess.run([sys.executable, ROOT / "tools" / "check_layers.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("including, included", [
    ("ballast/ir/a.h", "ballast/spec/b.h"),
    ("ballast/packing/a.cpp", "ballast/cost/b.h"),
    ("ballast/packing/a.cpp", "ballast/packing/b.h"),
    ("ballast/planner/a.cpp", "ballast/simulate/b.h"),
    ("ballast/runtime/train/a.cpp", "ballast/runtime/comm/b.h"),
    ("ballast/runtime/attention/a.cpp", "ballast/runtime/profiler/b.h"),
    ("cli/a.cpp", "ballast/runtime/train/b.h"),
    ("tests/ir/a.cpp", "ballast/planner/b.h"),
])
def test_an_allowed_include_passes(tmp_path, including, included):
    assert violations(tmp_path, {including: f'#include "{included}"\n', included: "\n"}) == []


@pytest.mark.parametrize("including, included", [
    ("ballast/base/a.h", "ballast/ir/b.h"),
    ("ballast/ir/a.h", "ballast/io/b.h"),
    ("ballast/packing/a.cpp", "ballast/sharding/b.h"),
    ("ballast/simulate/a.cpp", "ballast/packing/b.h"),
    ("ballast/planner/a.cpp", "ballast/io/b.h"),
    ("ballast/planner/a.cpp", "ballast/runtime/comm/b.h"),
    ("ballast/runtime/train/a.cpp", "ballast/planner/b.h"),
    ("ballast/runtime/train/a.cpp", "ballast/cost/b.h"),
    ("ballast/runtime/comm/a.cpp", "ballast/runtime/train/b.h"),
    ("ballast/ir/a.h", "cli/b.h"),
    ("ballast/ir/a.h", "tests/b.h"),
])
def test_a_forbidden_include_is_named_with_its_line(tmp_path, including, included):
    found = violations(tmp_path, {including: f'#pragma once\n#include "{included}"\n', included: "\n"})
    assert len(found) == 1
    assert found[0].startswith(f"{including}:2: ")


@pytest.mark.parametrize("path, library, allowed", [
    ("ballast/io/a.cpp", "nlohmann/json.hpp", True),
    ("ballast/ir/a.cpp", "nlohmann/json.hpp", False),
    ("ballast/io/a.cpp", "toml++/toml.h", True),
    ("cli/a.cpp", "toml++/toml.h", False),
    ("ballast/runtime/model/a.cpp", "ATen/ATen.h", True),
    ("ballast/cost/a.cpp", "ATen/ATen.h", False),
    ("ballast/simulate/a.cpp", "torch/csrc/autograd/custom_function.h", False),
    ("ballast/io/a.cpp", "CLI/CLI.hpp", False),
    ("ballast/io/a.cpp", "gtest/gtest.h", False),
    ("tests/io/a.cpp", "gtest/gtest.h", True),
    ("ballast/base/a.cpp", "vector", True),
])
def test_a_library_belongs_to_its_folders(tmp_path, path, library, allowed):
    assert (violations(tmp_path, {path: f"#include <{library}>\n"}) == []) == allowed


def test_an_include_must_name_a_file_from_the_root(tmp_path):
    found = violations(tmp_path, {"ballast/ir/a.cpp": '#include "b.h"\n', "ballast/ir/b.h": "\n"})
    assert found == ['ballast/ir/a.cpp:1: "b.h" is no file of this repository; write the path from its root']


def test_an_unknown_folder_is_refused(tmp_path):
    assert "no known folder" in violations(tmp_path, {"ballast/extras/a.h": "\n"})[0]


def test_cmake_may_not_link_what_includes_may_not_reach(tmp_path):
    text = "ballast_folder(ir DEPS spec)\nballast_folder(packing DEPS cost sharding LINK fmt::fmt)\n"
    assert violations(tmp_path, {"CMakeLists.txt": text}) == ["CMakeLists.txt:2: packing may not link sharding"]


@pytest.mark.parametrize("name", ["ballast/io/json_utils.h", "ballast/io/common.h", "tests/helpers/a.cpp"])
def test_a_name_that_says_nothing_is_refused(tmp_path, name):
    assert any("says nothing" in what for what in violations(tmp_path, {name: "\n"}))


@pytest.mark.parametrize("path, lines, allowed", [
    ("ballast/ir/a.h", 220, True),
    ("ballast/ir/a.h", 221, False),
    ("ballast/ir/a.cpp", 400, True),
    ("ballast/ir/a.cpp", 401, False),
    ("tools/a.py", 401, False),
    ("docs/a.md", 1000, True),
])
def test_a_file_has_a_length_limit(tmp_path, path, lines, allowed):
    assert (violations(tmp_path, {path: "\n" * lines}) == []) == allowed


@pytest.mark.parametrize("text", ["see ../sha" + "red/design.md", 'open("/wo' + 'rk/main/x")', "/tm" + "p/x"])
def test_a_path_of_one_machine_is_refused(tmp_path, text):
    assert "one machine only" in violations(tmp_path, {"docs/a.md": text + "\n"})[0]
