"""A server that a test or a command starts ends with it, however that ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LOCAL = Path(__file__).parent / "oracle" / "local.py"
GUARD = Path(__file__).parent / "guard.py"

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

LONGEST = 60.0

# Answers as DynamoDB Local does, after it has noted its process id, or never.
JAVA = """#!{python}
import http.server, os, sys, time
with open({note!r} + ".part", "w") as note:
    note.write(str(os.getpid()))
os.rename({note!r} + ".part", {note!r})
if {mute}:
    time.sleep(600)

class Answering(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{{}}")

    def log_message(self, *_):
        pass

http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("-port") + 1])), Answering).serve_forever()
"""


def is_running(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def until_gone(pid: int) -> None:
    deadline = time.monotonic() + LONGEST
    while is_running(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            raise AssertionError("it goes on running")
        time.sleep(0.01)


def noted(file: Path) -> int:
    while not file.exists():
        time.sleep(0.01)
    return int(file.read_text())


def serve(folder: Path, *, mute: bool = False) -> tuple[subprocess.Popen[str], int]:
    """`local.py serve` with a Java of ours, and the process of that."""
    note = folder / "pid"
    java = folder / "java"
    java.write_text(JAVA.format(python=sys.executable, note=str(note), mute=mute))
    java.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    server = subprocess.Popen(
        [sys.executable, str(LOCAL), "serve"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=hear_hang_ups,
    )
    return server, noted(note)


def hear_hang_ups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may run under nohup


@pytest.mark.parametrize("mute", [False, True])
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_dynamodb_local_ends_with_the_command_that_serves_it(tmp_path, ending, mute):
    server, java = serve(tmp_path, mute=mute)
    assert server.stdout is not None
    if not mute:
        assert server.stdout.readline().startswith("http://127.0.0.1:")
    assert is_running(java)
    server.send_signal(ending)
    until_gone(java)
    server.communicate()
    if ending in (signal.SIGTERM, signal.SIGINT):
        assert server.returncode == 0


def test_the_pid_that_is_printed_ends_it(tmp_path):
    server, java = serve(tmp_path)
    assert server.stdout is not None
    os.kill(int(server.stdout.readline().split()[1]), signal.SIGTERM)
    until_gone(java)
    server.kill()
    server.communicate()


def test_a_command_that_does_not_want_to_end_is_killed(tmp_path):
    command = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    # The same guard with less patience.
    code = f"import runpy, sys; sys.argv = ['guard', {sys.executable!r}, '-c', {command!r}]; names = runpy.run_path({str(GUARD)!r})"
    code += "; names['_Guard'].run.__globals__['PATIENCE'] = 0.05; sys.exit(names['_Guard']().run(sys.argv[1:]))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as guard:
        assert guard.stdin is not None
        assert guard.stdout is not None
        assert guard.stdout.readline() == "1\n"
        guard.stdin.close()
        guard.stdin = None
        assert guard.wait() == 128 + signal.SIGKILL


def test_a_guard_has_the_status_of_its_command():
    for status in (0, 3):
        command = [sys.executable, str(GUARD), sys.executable, "-c", f"raise SystemExit({status})"]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as guard:
            assert guard.wait() == status
