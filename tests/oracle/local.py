"""Amazon's DynamoDB Local as a child process: fetched from Maven Central, started, asked, stopped.

    python tests/oracle/local.py fetch     copy it and its dependencies to .peers/dynamodb-local
    python tests/oracle/local.py serve     run it until interrupted, printing its URL

It needs `java` (17 or later) to run and `mvn` once, to be fetched. Nothing is sent to Amazon: the
server listens on loopback, keeps all in memory and has its telemetry switched off. It ends with the process that
started it (`tests/guard.py`).
"""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, Self

HERE: Final = Path(__file__).resolve().parent
FOLDER: Final = HERE.parents[1] / ".peers" / "dynamodb-local"
GUARD: Final = HERE.parent / "guard.py"
MAIN: Final = "software.amazon.dynamodb.services.local.main.ServerRunner"
STREAMS: Final = {"ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"}
STARTUP_SECONDS: Final = 60.0


def is_here() -> bool:
    """Whether it has been fetched and there is a Java to run it with."""
    return shutil.which("java") is not None and any(FOLDER.glob("DynamoDBLocal-*.jar"))


def version() -> str:
    """The version that was fetched, such as `3.3.1`."""
    return next(FOLDER.glob("DynamoDBLocal-*.jar")).stem.removeprefix("DynamoDBLocal-")


def fetch() -> None:
    """Copy DynamoDB Local and its dependencies from Maven Central into `.peers/`."""
    command = ["mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    subprocess.run([*command, f"-DoutputDirectory={FOLDER}"], check=True)


def free_port() -> int:
    """A loopback port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Endpoint:
    """A DynamoDB endpoint asked with raw requests over one kept-alive connection.

    DynamoDB Local has a database for each access key, unless it is started with `-sharedDb`.
    """

    def __init__(self, port: int, access_key: str = "local") -> None:
        self.port = port
        self._headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": (
                f"AWS4-HMAC-SHA256 Credential={access_key}/20260101/us-east-1/dynamodb/aws4_request, "
                "SignedHeaders=host;x-amz-date;x-amz-target, Signature=0"
            ),
            "X-Amz-Date": "20260101T000000Z",
        }
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, operation: str, request: dict[str, Any] | bytes) -> tuple[int, dict[str, Any]]:
        """Send one request and return the status and the decoded body."""
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        service = "DynamoDBStreams" if operation in STREAMS else "DynamoDB"
        headers = {**self._headers, "X-Amz-Target": f"{service}_20120810.{operation}"}
        try:
            return self._exchange(body, headers)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            self._connection.close()  # the server dropped an idle connection: once more on a new one
            return self._exchange(body, headers)

    def _exchange(self, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self._connection.request("POST", "/", body, headers)
        response = self._connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else {}

    def close(self) -> None:
        self._connection.close()


class DynamoDBLocal(Endpoint):
    """A DynamoDB Local process of our own, in memory, from `with` to the end of its block."""

    def __init__(self, port: int | None = None, *, heap: str = "512m", shared: bool = True) -> None:
        super().__init__(port or free_port())
        self._heap = heap
        self._sharing = ["-sharedDb"] if shared else []
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process and wait until it answers."""
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-S", str(GUARD)),
                *("java", f"-Xmx{self._heap}", "-XX:+UseSerialGC", f"-Djava.library.path={FOLDER}"),
                *(f"-Dsqlite4java.library.path={FOLDER}", "-cp", f"{FOLDER}/*", MAIN),
                *("-inMemory", *self._sharing, "-disableTelemetry", "-port", str(self.port)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._await(self._process)
        except BaseException:  # a Ctrl-C as well
            self.stop()
            raise

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + STARTUP_SECONDS
        while not self._answers():
            if process.poll() is not None:
                raise RuntimeError(f"DynamoDB Local ended with status {process.returncode}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"DynamoDB Local did not answer within {STARTUP_SECONDS:.0f} s")
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            return self.ask("ListTables", {})[0] == 200
        except OSError:
            self._connection.close()
            return False

    def stop(self) -> None:
        """End the process that `start` started, and no other."""
        self.close()
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()  # closes its input as well; the guard waits no longer than ten seconds
            self._process = None


def main(arguments: list[str]) -> int:
    """The command line of this file."""
    if arguments[:1] == ["fetch"]:
        fetch()
        return 0
    if arguments[:1] != ["serve"]:
        print(__doc__)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with DynamoDBLocal(int(arguments[1]) if arguments[1:] else None) as server:
            print(server.url, server.pid, flush=True)
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
