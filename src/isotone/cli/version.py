"""`isotone version`: what runs here."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import isotone

SUMMARY: Final = "Print the versions of Isotone and of what it stands on."
EXAMPLES: Final = """
isotone version
isotone version --short
"""

_FOUNDATIONS: Final = ("apsw", "msgspec", "httptools", "uvloop", "sortedcontainers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--short", action="store_true", help="Isotone's version alone")


def run(arguments: argparse.Namespace) -> int:
    if arguments.short:
        print(isotone.__version__)
        return 0
    print(f"isotone {isotone.__version__}")
    print(f"python {sys.version.split()[0]}")
    for name in _FOUNDATIONS:
        print(f"{name} {_version_of(name)}")
    return 0


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"
