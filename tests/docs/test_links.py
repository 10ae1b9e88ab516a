"""Documents name only what exists."""

import re

import pytest
from program import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page):
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text())]
    missing = [target for target in targets if target and "://" not in target and not (page.parent / target).exists()]
    assert missing == []


def test_every_path_on_the_map_exists():
    paths = re.findall(r"`([\w./-]*/[\w./-]*)`", (ROOT / "docs" / "map.md").read_text())
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_map_names_every_folder_of_the_library():
    text = (ROOT / "docs" / "map.md").read_text()
    folders = {path.parent for path in (ROOT / "ballast").rglob("*.h")}
    assert [str(folder.relative_to(ROOT)) for folder in folders if f"{folder.relative_to(ROOT)}/" not in text] == []
