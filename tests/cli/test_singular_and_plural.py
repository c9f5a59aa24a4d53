"""Counts in messages: one item is in the singular, in each command that counts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.cli.conftest import Run

SOURCE = Path(__file__).parents[2] / "src" / "isotone"
PLURAL = re.compile(r" (items|entries|rows|records|tables|findings|losses)\b")


def test_one_is_in_the_singular(isotone: Run, tmp_path: Path) -> None:
    file, copy = tmp_path / "one.db", tmp_path / "copy.db"
    assert isotone("create", file, "Orders", "customer").code == 0
    assert isotone("put", file, "Orders", '{"customer": "ann"}').code == 0
    assert isotone("check", file).out.endswith("all is well (1 item)\n")
    assert isotone("copy", file, copy, "--dry-run").out == "Orders: about 1 item would be copied\n"
    assert isotone("copy", file, copy).out.startswith("copy Orders: 1 item, ")
    assert isotone("diff", file, copy).out == "Orders: equal, 1 item\n"
    assert isotone("sql", file, "SELECT * FROM Orders").out.endswith(
        "1 item (0.5 units; Scan of Orders)\n"
    )
    assert isotone("scan", file, "Orders").out.endswith("1 item (0.5 units)\n")
    assert isotone("scan", file, "Orders", "--consistent").out.endswith("1 item (1 unit)\n")
    assert "all 1 item of the table" in isotone("explain", file, "SELECT * FROM Orders").out
    assert "verified with 1 item\n" in isotone("model", file, "Orders").err
    assert isotone("put", file, "Orders", '{"customer": "bob"}').code == 0
    few = isotone("scan", file, "Orders", "--limit=1", "--format=jsonl")
    assert few.err == "the first 1 item; --all shows everything\n"


def test_no_message_has_a_count_before_a_plural() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for folder in ("cli", "advisor", "inference", "moving", "schema")
        for path in sorted((SOURCE / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.JoinedStr)
        for before, after in zip(node.values, node.values[1:], strict=False)
        if isinstance(before, ast.FormattedValue)
        and isinstance(after, ast.Constant)
        and PLURAL.match(str(after.value))
    ]
    assert found == [], "use isotone.text_table.counted"
