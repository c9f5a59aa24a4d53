"""The block on Azure of docs/engines.md runs as it is written, but for the emulator's port."""

from __future__ import annotations

import re

from tests.docs.pages import page


def test_the_page_runs(azure_address: str) -> None:
    (block,) = [each for each in page("docs/engines.md").blocks("python") if each.needs_azurite]
    text, count = re.subn('azure-table://127[^"]*', azure_address, block.text)
    assert count == 1
    exec(compile(text, "docs/engines.md", "exec"), {"__name__": "azure"})
