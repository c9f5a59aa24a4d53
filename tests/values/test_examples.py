"""The examples in the docstrings of `values` show what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import isotone.values as layer

MODULES = [module.name for module in pkgutil.iter_modules(layer.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(f"{layer.__name__}.{name}"))
    assert failed == 0
