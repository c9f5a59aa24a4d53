"""Azurite, Microsoft's emulator of Azure's storage: its tables, in memory, on a free port of this machine."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests import guard
from tests.sdks.install import AZURITE, HOW

_MAIN = AZURITE / "node_modules" / "azurite" / "dist" / "src" / "table" / "main.js"
_LONGEST_START = 60.0


def missing() -> str | None:
    """Why there is no Azurite here; None if there is."""
    if shutil.which("node") is None:
        return "there is no node"
    return None if _MAIN.exists() else f"Azurite is not installed; {HOW}"


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Start Azurite, and stop it at the end of the block: its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ["--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck"]
    process = guard.start(
        ["node", str(_MAIN), *options, "--tableHost", "127.0.0.1", "--tablePort", str(port)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(process, port)
        yield f"azure-table://127.0.0.1:{port}/devstoreaccount1"
    finally:
        process.terminate()
        process.communicate()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _LONGEST_START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"Azurite ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise RuntimeError(f"Azurite did not start within {_LONGEST_START:.0f} s")
