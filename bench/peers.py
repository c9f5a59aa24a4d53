"""The other DynamoDBs: how to get them, how to start them.

    python -m bench.peers            install all of them into .peers/ (the Rust one takes minutes)

A peer that cannot be installed or started is absent from the report; it is never counted as beaten.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.oracle import local

from bench import requests

ROOT: Final = Path(__file__).resolve().parents[1]
PEERS: Final = ROOT / ".peers"
MOTO: Final = PEERS / "moto" / "bin"
MODELS: Final = PEERS / "models" / "bin"
DYNOXIDE: Final = PEERS / "dynoxide" / "bin" / "dynoxide"
DYNALITE: Final = PEERS / "dynalite"

INSTALL: Final[dict[str, Sequence[Sequence[str]]]] = {
    "dynalite": [["npm", "install", "--prefix", str(DYNALITE), "--no-audit", "dynalite@4.0.0"]],
    "moto": [
        [sys.executable, "-m", "venv", str(PEERS / "moto")],
        [str(MOTO / "pip"), "install", "-q", "moto[server,dynamodb]==5.2.5"],
    ],
    "modelling libraries": [
        [sys.executable, "-m", "venv", str(PEERS / "models")],
        [
            str(MODELS / "pip"),
            "install",
            "-q",
            "pydynox==1.8.0",
            "pynamodb==6.1.0",
            "boto3==1.44.5",
        ],
    ],
    "dynoxide": [
        ["cargo", "install", "dynoxide-rs", "--version", "3.2.0", "--root", str(PEERS / "dynoxide")]
    ],
    "DynamoDB Local": [[sys.executable, str(ROOT / "tests" / "oracle" / "local.py"), "fetch"]],
}


@dataclass(frozen=True, slots=True)
class Server:
    """A server to measure: its command for a port and a folder of its own, and how it is called."""

    name: str
    command: Callable[[int, Path], Sequence[str]]
    needs: Path | None = None
    durable: bool = False

    @property
    def is_here(self) -> bool:
        return self.needs is None or self.needs.exists()


def isotone(port: int, *where: str) -> Sequence[str]:
    """Isotone of this tree, in memory unless a file is named."""
    return [sys.executable, "-m", "isotone", "serve", *where, "--port", str(port)]


def _constant(port: int, folder: Path) -> Sequence[str]:
    body = folder / "body.json"
    body.write_text(json.dumps({"Item": requests.item(1)}))
    return [sys.executable, "-m", "bench.constant", str(port), str(body)]


def _java(port: int, folder: Path) -> Sequence[str]:
    where = [f"-Djava.library.path={local.FOLDER}", "-cp", f"{local.FOLDER}/*", local.MAIN]
    return ["java", *where, "-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)]


def _dynalite(port: int, folder: Path) -> Sequence[str]:
    program = str(DYNALITE / "node_modules" / "dynalite" / "cli.js")
    return ["node", program, "--port", str(port), "--createTableMs", "0", "--deleteTableMs", "0"]


def _dynoxide(port: int, folder: Path, *where: str) -> Sequence[str]:
    return [str(DYNOXIDE), "--port", str(port), *where]


def _verifying(port: int, folder: Path, *more: str) -> Sequence[str]:
    """Isotone with the key of the requests in its credentials."""
    file = folder / "users.json"
    key = {"access_key_id": requests.KEY.access_key, "secret_access_key": requests.KEY.secret_key}
    file.write_text(json.dumps({"users": {"bench": {"keys": [key]}}}))
    file.chmod(0o600)
    return isotone(port, "--no-workbench", "--credentials", str(file), *more)


ISOTONE_VERIFYING: Final = Server("Isotone (memory), signatures verified", _verifying)
ISOTONE_AUDITED: Final = Server(
    "Isotone (memory), signatures verified, audit log",
    lambda port, folder: _verifying(port, folder, "--audit-log", str(folder / "audit.log")),
)
ISOTONE_MEMORY: Final = Server("Isotone (memory)", lambda port, _: isotone(port))
ISOTONE_FILE: Final = Server(
    "Isotone (file, durable)",
    lambda port, folder: isotone(port, str(folder / "isotone.db")),
    durable=True,
)
CONSTANT: Final = Server("constant answer (floor)", _constant)
DYNALITE_MEMORY: Final = Server("dynalite (memory)", _dynalite, DYNALITE / "node_modules")
DYNAMODB_LOCAL: Final = Server("DynamoDB Local (memory)", _java, local.FOLDER)
MOTO_SERVER: Final = Server(
    "moto server", lambda port, folder: [str(MOTO / "moto_server"), "-p", str(port)], MOTO
)
DYNOXIDE_MEMORY: Final = Server("dynoxide (memory)", _dynoxide, DYNOXIDE)
DYNOXIDE_FILE: Final = Server(
    "dynoxide (file)",
    lambda port, folder: _dynoxide(port, folder, "--db-path", str(folder / "dynoxide.db")),
    DYNOXIDE,
)


class Running:
    """A started server: ask it, or leave it to the load generator."""

    def __init__(self, server: Server, port: int, process: subprocess.Popen[bytes]) -> None:
        self.server = server
        self.port = port
        self.process = process

    def ask(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """One request on a connection of its own; anything but 200 raises."""
        body = json.dumps(request).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", "/", body, requests.headers(operation, body, self.port))
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise RuntimeError(f"{self.server.name}: {operation}: {response.status} {text[:300]!r}")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def resident(self) -> int:
        """Its resident memory in bytes (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) * 1024


def wait_until_ready(running: Running, seconds: float = 60.0, pause: float = 0.002) -> None:
    """Ask again and again until the server answers ListTables."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            running.ask("ListTables", {})
            return
        except (OSError, http.client.HTTPException):
            if running.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{running.server.name} does not answer") from None
            time.sleep(pause)


@contextmanager
def started(server: Server, **environment: str) -> Iterator[Running]:
    """The server on a free port, with a folder of its own, until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=data_folder()))
    port = local.free_port()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        server.command(port, folder),
        stdout=quiet,
        stderr=quiet,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    try:
        running = Running(server, port, process)
        wait_until_ready(running)
        yield running
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def data_folder() -> Path:
    """Where databases under measurement lie: on the disk of the repository, not in a RAM disk."""
    folder = PEERS / "data"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def install() -> int:
    """Install every peer; go on where one fails."""
    failed = 0
    for name, commands in INSTALL.items():
        print(f"{name}: ", end="", flush=True)
        try:
            for command in commands:
                Path(PEERS).mkdir(exist_ok=True)
                subprocess.run(command, check=True, capture_output=True, cwd=PEERS)
            print("installed")
        except (OSError, subprocess.CalledProcessError) as error:
            failed = 1
            print(f"absent ({error})")
    return failed


if __name__ == "__main__":
    sys.exit(install())
