from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

import pytest
from tests.docs.pages import ROOT, Page, page
from tests.docs.pictures import FOLDER, ILLUSTRATED, marks, pictures

STRUCTURES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted((ROOT / "docs" / "structures").glob("*.md"))
    if path.name != "README.md"
]


@pytest.mark.parametrize("illustrated", ILLUSTRATED, ids=lambda each: each.name)
def test_pictures_show_what_the_code_of_the_page_stores(illustrated: Page) -> None:
    for name, drawn in pictures(illustrated).items():
        written = FOLDER.joinpath(name).read_text(encoding="utf-8")
        assert written == drawn, f"docs/pictures/{name} differs from its page: make pictures"


@pytest.mark.parametrize(
    "name", ["README.md", "docs/tutorial.md", "docs/modelling.md", "docs/explain.md", *STRUCTURES]
)
def test_pages_about_collections_show_them(name: str) -> None:
    assert marks(page(name))


def test_each_picture_is_shown_once_and_found_by_its_page() -> None:
    names = Counter(mark.name for each in ILLUSTRATED for mark in marks(each))
    assert max(names.values()) == 1
    assert names.keys() == {file.name for file in FOLDER.glob("*.svg")}
    for each in ILLUSTRATED:
        for mark in marks(each):
            assert (each.path.parent / mark.path).resolve() == (FOLDER / mark.name).resolve()


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.svg")), ids=lambda file: file.stem)
def test_pictures_are_for_everybody(file: object) -> None:
    tree = ElementTree.parse(str(file)).getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert tree.get("role") == "img"
    title, description = tree.find(f"{space}title"), tree.find(f"{space}desc")
    assert title is not None
    assert title.text
    assert description is not None
    assert description.text
    style = tree.find(f"{space}style")
    assert style is not None
    assert "prefers-color-scheme:dark" in (style.text or "")
    assert not [each for each in tree.iter() if each.tag.endswith(("script", "image", "use"))]
