"""The block of docs/azure.md runs as it is written, but for the emulator's port."""

from __future__ import annotations

import re

from tests.docs.pages import page


def test_the_page_runs(azure_address: str) -> None:
    (block,) = page("docs/azure.md").blocks("python")
    text, count = re.subn('azure-table://127[^"]*', azure_address, block.text)
    assert count == 1
    exec(compile(text, "docs/azure.md", "exec"), {"__name__": "azure"})
