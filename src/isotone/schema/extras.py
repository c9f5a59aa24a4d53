"""Imports the packages of the extra `schema`, which only readers of YAML and of Terraform's language need."""

from __future__ import annotations

import importlib
from typing import Any

from isotone.errors import UsageError


def extra_module(name: str, package: str, purpose: str) -> Any:
    """A module of an extra package; raises `UsageError` that says how to install it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(f"{purpose}, install {package}: pip install 'isotone[schema]'") from None
