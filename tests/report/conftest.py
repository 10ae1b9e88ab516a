"""A browser for the tests of this folder, started once."""

import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import Browser  # noqa: E402


@pytest.fixture(scope="session")
def browser():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        opened = Browser(profile)
        yield opened
        opened.close()
