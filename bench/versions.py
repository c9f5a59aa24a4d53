"""The versions of everything that takes part."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import apsw
from tests.oracle import local

from bench import peers


def _said(*command: str) -> str:
    """The first line that a command says, on either stream."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "absent"
    return ((done.stdout or done.stderr).strip().splitlines() or ["?"])[0]


def _dynalite() -> str:
    package = peers.DYNALITE / "node_modules" / "dynalite" / "package.json"
    return str(json.loads(package.read_text())["version"]) if package.exists() else "absent"


def _installed(folder: Path, package: str) -> str:
    """The version of a package in a virtual environment of its own."""
    program = f"from importlib import metadata as m; print(m.version({package!r}))"
    return _said(str(folder / "python"), "-c", program)


def _dynoxide() -> str:
    """The version of the crate; the program's own `--version` tells another."""
    record = peers.PEERS / "dynoxide" / ".crates.toml"
    installed = record.read_text().split('"') if record.exists() else []
    return installed[1].split()[1] if len(installed) > 1 else "absent"


def versions() -> dict[str, str]:
    """Name to version; `absent` where there is none."""
    return {
        "Python": platform.python_version(),
        **{name: metadata.version(name) for name in ("isotone", "boto3", "httptools", "uvloop")},
        "SQLite": apsw.sqlite_lib_version(),
        "dynalite": _dynalite(),
        "DynamoDB Local": local.version() if local.is_here() else "absent",
        "moto": _installed(peers.MOTO, "moto"),
        "pydynox": _installed(peers.MODELS, "pydynox"),
        "PynamoDB": _installed(peers.MODELS, "pynamodb"),
        "dynoxide": _dynoxide(),
        "node": _said("node", "--version"),
        "java": _said("java", "-version"),
        "load generator": _said("wrk", "-v").partition(" [")[0]
        if shutil.which("wrk")
        else "bench.closed_loop",
    }
