"""examples/cmake_project builds against an installed core and runs."""

import re
import subprocess

from program import ROOT


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_example_builds_against_an_installed_core_and_runs(tmp_path):
    run("cmake", "--install", ROOT / "build", "--component", "core", "--prefix", tmp_path / "prefix")
    run("cmake", "-S", ROOT / "examples" / "cmake_project", "-B", tmp_path / "build", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
    run("cmake", "--build", tmp_path / "build")
    printed = run(tmp_path / "build" / "balance")
    imbalance = {packer: [float(value) for value in re.findall(rf"^{packer} .*imbalance (\d\.\d+)$", printed, re.M)]
                 for packer in ("plain", "wlb")}
    assert max(imbalance["wlb"]) < max(imbalance["plain"])
    assert re.search(r"^sharded \w+.*: (2048 ){4}tokens$", printed, re.M)
