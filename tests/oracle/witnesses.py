"""One request, three answers: Isotone, DynamoDB Local and dynoxide side by side.

    python -m tests.oracle.witnesses DescribeTable '{"TableName": "ab"}'
    python -m tests.oracle.witnesses < requests.txt     one `Action {json}` a line; `#` begins a comment
    python -m tests.oracle.witnesses serve              run the two others until interrupted

A file is a history: all its requests go to the same three databases, which are empty at first. `serve` prints
a line to export, with which later runs ask the same two servers and start at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests import guard
from tests.oracle import local
from tests.oracle.endpoints import Answer, Isotone, RawApi, drop_tables
from tests.oracle.normalized_answers import canonical

DYNOXIDE = local.FOLDER.parent / "dynoxide" / "bin" / "dynoxide"
PORTS = "ISOTONE_WITNESSES"  # "8001,8002": DynamoDB Local and dynoxide, which already run


class Dynoxide(local.Endpoint):
    """A dynoxide process of our own, in memory, from `with` to the end of its block."""

    def __init__(self, port: int | None = None) -> None:
        super().__init__(port or local.free_port())

    def __enter__(self) -> Dynoxide:
        quiet = subprocess.DEVNULL
        command = [str(DYNOXIDE), "--port", str(self.port)]
        self._process = guard.start(command, stdout=quiet, stderr=quiet)
        deadline = time.monotonic() + local.STARTUP_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("dynoxide does not answer")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._process.terminate()
        self._process.communicate()

    def _answers(self) -> bool:
        try:
            return self.ask("ListTables", {})[0] == 200
        except OSError:
            self.close()
            return False


@contextmanager
def witnesses() -> Iterator[dict[str, RawApi]]:
    """Isotone and those of the two others that are here, each without tables."""
    with ExitStack() as stack:
        sides: dict[str, RawApi] = {"isotone": stack.enter_context(Isotone())}
        if PORTS in os.environ:
            ports = map(int, os.environ[PORTS].split(","))
            sides |= dict(zip(("local", "dynoxide"), map(local.Endpoint, ports), strict=True))
        else:
            if local.is_here():
                sides["local"] = stack.enter_context(local.DynamoDBLocal())
            if DYNOXIDE.exists():
                sides["dynoxide"] = stack.enter_context(Dynoxide())
        for side in sides.values():
            drop_tables(side)
        yield sides


def shown(answer: Answer) -> str:
    """An answer in one line: the members of a response, or the code and the message of an error."""
    status, body = answer
    if status == 200:
        return canonical(body)
    code = str(body.get("__type", "")).rpartition("#")[2]
    message = body.get("message", body.get("Message", ""))
    rest = {
        name: value for name, value in body.items() if name.lower() not in ("__type", "message")
    }
    return f"{status} {code}: {message}" + (f" {canonical(rest)}" if rest else "")


def ask_all(sides: dict[str, RawApi], operation: str, request: Any) -> dict[str, str]:
    """What each side answers, as `shown`."""
    return {name: shown(side.ask(operation, request)) for name, side in sides.items()}


def requests(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The requests in lines of `Action {json}`; a text that is no JSON is sent as it is."""
    for line in lines:
        operation, _, text = line.strip().partition(" ")
        if operation and not operation.startswith("#"):
            try:
                yield operation, json.loads(text or "{}")
            except ValueError:
                yield operation, text.encode()


def main(arguments: list[str]) -> int:
    """The command line of this file."""
    if arguments[:1] == ["serve"]:
        with local.DynamoDBLocal() as theirs, Dynoxide() as other:
            print(f"export {PORTS}={theirs.port},{other.port}", flush=True)
            try:
                time.sleep(10**8)
            except KeyboardInterrupt:
                return 0
    lines = [" ".join(arguments)] if arguments else sys.stdin
    with witnesses() as sides:
        for operation, request in requests(lines):
            text = request.decode() if isinstance(request, bytes) else json.dumps(request)
            print(f"{operation} {text[:300]}")
            for name, answer in ask_all(sides, operation, request).items():
                print(f"  {name:9} {answer[:1500]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
