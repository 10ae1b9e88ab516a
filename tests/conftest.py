"""What Python tests share: how to run the program under test."""

import subprocess

import pytest
from program import PROGRAM


@pytest.fixture
def ballast(tmp_path):
    """Runs `ballast ARGUMENTS...` in an empty folder; gives exit code, stdout and stderr."""

    def run(*arguments, cwd=tmp_path, stdin="", timeout=120):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=cwd, input=stdin, capture_output=True, text=True,
                              timeout=timeout)

    return run
