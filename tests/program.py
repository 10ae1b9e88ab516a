"""Where the repository and the program under test are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "ballast"
