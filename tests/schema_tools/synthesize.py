"""Run by the Python that has the CDK: synthesizes the stack of each module of a folder, into a template beside it."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import aws_cdk
from aws_cdk.assertions import Template

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
for path in sorted(folder.glob("*.py")):
    stack = importlib.import_module(path.stem).TablesStack(aws_cdk.App(), "TablesStack")
    template = json.dumps(Template.from_stack(stack).to_json())
    path.with_suffix(".json").write_text(template, encoding="utf-8")
