"""tools/setup on a machine whose dpkg-query, apt-get, sudo and python are stand-ins that write down their calls."""

import os
import shutil
import subprocess

import pytest
from program import ROOT

PYTHON = """
if [ "$2" = venv ]; then mkdir -p .venv/bin && cp "$0" .venv/bin/python; exit; fi
if [ "$2" = pip ]; then echo "pip $*" >>calls; [ ! -e pip-fails ] || { echo "$(cat pip-fails)"; exit 1; }; fi
"""


class Machine:
    """A folder with tools/setup and package lists, and a bin/ of stand-ins that comes first in PATH."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "setup", folder / "tools" / "setup")
        self.write("packages.txt", "# needed to build\nalpha\nbeta\n")
        self.write("packages-dev.txt", "gamma\n")
        self.write("requirements.txt", "torch==1\n")
        self.write("requirements-dev.txt", "pytest==1\n")
        self.command("dpkg-query", 'for last; do :; done; if grep -qx "$last" installed; then printf installed; fi')
        self.command("apt-get", 'echo "apt-get $*" >>calls; [ ! -e apt-fails ] || { cat apt-fails; exit 100; }')
        self.command("id", "echo 0")
        self.command("python3", PYTHON)
        self.write("installed", "alpha\n")

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def command(self, name, body):
        self.write(f"bin/{name}", f"#!/bin/sh\n{body}\n")
        (self.folder / "bin" / name).chmod(0o755)

    def setup(self, *arguments):
        environment = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "HOME": str(self.folder)}
        return subprocess.run(["bash", self.folder / "tools" / "setup", *arguments], env=environment, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60)

    def take_calls(self):
        calls = self.folder / "calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_only_what_is_missing_is_installed(machine):
    done = machine.setup("dev")
    assert done.returncode == 0, done.stderr
    update, install, pip = machine.take_calls()
    assert update.endswith("update")
    assert install.endswith(" beta gamma")
    assert pip.endswith("-r requirements.txt -r requirements-dev.txt")


def test_run_leaves_out_what_only_tests_need(machine):
    assert machine.setup("run").returncode == 0
    _, install, pip = machine.take_calls()
    assert install.endswith(" beta")
    assert pip.endswith("-r requirements.txt")


def test_a_second_time_nothing_is_repeated_and_nothing_is_said(machine):
    machine.setup("dev")
    machine.take_calls()
    machine.write("installed", "alpha\nbeta\ngamma\n")
    done = machine.setup("dev")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.setup("run").stdout == ""
    assert machine.take_calls() == []


def test_a_changed_pin_is_installed_again(machine):
    machine.write("installed", "alpha\nbeta\ngamma\n")
    machine.setup("dev")
    machine.take_calls()
    machine.write("requirements.txt", "torch==2\n")
    assert machine.setup("dev").returncode == 0
    assert len(machine.take_calls()) == 1


def test_without_root_and_sudo_the_packages_are_named(machine):
    machine.command("id", "echo 1000")
    machine.command("sudo", "exit 1")
    done = machine.setup("dev")
    assert done.returncode == 1
    assert done.stderr == "setup: neither root nor sudo; have someone run: apt-get install beta gamma\n"
    assert machine.take_calls() == []


def test_without_root_nothing_missing_needs_no_sudo(machine):
    machine.command("id", "echo 1000")
    machine.command("sudo", "echo sudo >>calls; exit 1")
    machine.write("installed", "alpha\nbeta\ngamma\n")
    assert machine.setup("dev").returncode == 0
    assert [call for call in machine.take_calls() if not call.startswith("pip")] == []


def test_a_failed_package_download_is_one_line_with_its_reason_and_log(machine):
    machine.write("apt-fails", "Get:1 something\nE: Failed to fetch beta.deb\nsome trailing words\n")
    done = machine.setup("dev")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "E: Failed to fetch beta.deb (log: build/logs/apt-update.log)" in done.stderr
    assert "trailing" in (machine.folder / "build/logs/apt-update.log").read_text()


def test_a_failed_python_download_is_one_line_and_is_tried_again(machine):
    machine.write("pip-fails", "ERROR: No matching distribution found for torch==1")
    done = machine.setup("dev")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "ERROR: No matching distribution found for torch==1 (log: build/logs/pip.log)" in done.stderr
    (machine.folder / "pip-fails").unlink()
    assert machine.setup("dev").returncode == 0


def test_a_failure_without_an_error_line_shows_the_last_line(machine):
    machine.write("apt-fails", "first\nno space left\n\n")
    done = machine.setup("dev")
    assert done.returncode == 1
    assert "no space left (log: build/logs/apt-update.log)" in done.stderr
    machine.write("apt-fails", "")
    assert "no output yet" in machine.setup("dev").stderr


def test_an_unknown_argument_is_refused(machine):
    done = machine.setup("everything")
    assert done.returncode == 1
    assert "unknown argument 'everything'; use run or dev" in done.stderr
