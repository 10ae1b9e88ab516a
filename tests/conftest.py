"""What Python tests share: the program under test and how to run it."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "ballast"


@pytest.fixture
def ballast(tmp_path):
    """Runs `ballast ARGUMENTS...` in an empty folder; gives exit code, stdout and stderr."""

    def run(*arguments, cwd=tmp_path, stdin="", timeout=120):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=cwd, input=stdin, capture_output=True, text=True,
                              timeout=timeout)

    return run
