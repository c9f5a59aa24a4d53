"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import isotone.model
from isotone.backends import retry

MODULES = [retry.__name__] + [
    f"isotone.model.{each.name}" for each in pkgutil.iter_modules(isotone.model.__path__)
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert not failed
