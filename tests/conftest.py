"""What Python tests share: the program under test and how to run it."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def program():
    """Path of the command line, build/ballast."""
    path = ROOT / "build" / "ballast"
    assert path.exists(), f"{path} is not built: run `make build`"
    return path


@pytest.fixture
def ballast(program, tmp_path):
    """Runs `ballast ARGUMENTS...` in an empty folder; gives exit code, stdout and stderr."""

    def run(*arguments, cwd=tmp_path, stdin="", timeout=120):
        return subprocess.run([program, *map(str, arguments)], cwd=cwd, input=stdin, capture_output=True, text=True,
                              timeout=timeout)

    return run
