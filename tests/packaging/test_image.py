"""The container image, built from a root of Debian in place of Python's image, without a hub: `make image`.

buildah runs it with the isolation of a chroot, which needs no more rights than root has in a container. Such a run has no
network and no signals of its own: the server listens on loopback, and is stopped by its process.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import boto3
import pytest

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / ".peers" / "image"
BASE: Final = "docker.io/library/python:3.13-slim"
PATIENCE: Final = 120  # seconds

_TOOLS: Final = ("buildah", "debootstrap")
_MISSING: Final = [name for name in _TOOLS if shutil.which(name) is None]

pytestmark = [
    pytest.mark.skipif("ISOTONE_IMAGE" not in os.environ, reason="takes minutes: make image"),
    pytest.mark.skipif(
        bool(_MISSING), reason=f"apt-get install {' '.join(_MISSING)} builds the image"
    ),
    pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root"),
]


def buildah(*words: str | Path) -> list[str]:
    """A command of buildah, with storage of its own."""
    storage = ["--root", FOLDER / "storage", "--runroot", FOLDER / "run", "--storage-driver", "vfs"]
    return [str(word) for word in ("buildah", *storage, *words)]


def run(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    return ran.stdout.strip()


def base_image() -> None:
    """Debian with its Python, under the name of the image that the Containerfile asks for."""
    if run(buildah("images", "--quiet", "--filter", f"reference={BASE}")):
        return
    root = FOLDER / "root"
    if not (root / "usr/bin/python").is_symlink():
        shutil.rmtree(root, ignore_errors=True)
        packages = "--include=python3,python3-venv,ca-certificates"
        run(["debootstrap", "--variant=minbase", packages, "bookworm", str(root)])
        for folder in ("cache/apt/archives", "lib/apt/lists"):
            shutil.rmtree(root / "var" / folder)
        (root / "usr/bin/python").symlink_to("python3")
    container = run(buildah("from", "scratch"))
    run(buildah("copy", "--quiet", container, root, "/"))
    run(buildah("commit", "--quiet", "--rm", container, BASE))


@pytest.fixture(scope="module")
def image() -> str:
    """The image of deploy/Containerfile."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    base_image()
    # How this machine reaches the package index.
    settings = [path for path in ("/etc/ssl/certs", "/etc/pip.conf") if Path(path).exists()]
    mounts = [word for path in settings for word in ("--volume", f"{path}:{path}:ro")]
    run(
        buildah(
            *("bud", "--isolation=chroot", "--pull-never", "--network=host", "--quiet", *mounts),
            *("--tag=isotone", f"--file={ROOT / 'deploy/Containerfile'}", ROOT),
        )
    )
    return "localhost/isotone"


@pytest.fixture(scope="module")
def container(image: str) -> Iterator[str]:
    """A container of the image. buildah keeps its volume for as long as the container exists."""
    name = run(buildah("from", "--pull-never", image))
    try:
        yield name
    finally:
        run(buildah("rm", name))


def inside(container: str, *words: str) -> list[str]:
    """A command that runs in the container, as the image's user."""
    return buildah("run", "--isolation=chroot", "--network=host", container, "--", *words)


def descendants(process: int) -> list[int]:
    """The processes below a process, the innermost last."""
    lists = Path(f"/proc/{process}/task").glob("*/children")  # any thread may have started some
    children = [int(word) for path in lists for word in path.read_text(encoding="ascii").split()]
    return [each for child in children for each in (child, *descendants(child))]


@contextmanager
def serving(container: str) -> Iterator[str]:
    """The address of a server in the container, which then has to stop at SIGTERM."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"/data/isotone.db --host 127.0.0.1 --port {port} --credentials /data/users.json"
    began = time.monotonic()
    with subprocess.Popen(inside(container, "isotone", "serve", *options.split())) as server:
        try:
            while not is_healthy(f"http://127.0.0.1:{port}"):
                assert server.poll() is None
                assert time.monotonic() - began < PATIENCE
                time.sleep(0.05)
            print(f"it answers after {time.monotonic() - began:.1f} s")
            yield f"http://127.0.0.1:{port}"
        finally:
            for process in descendants(server.pid)[-1:]:
                os.kill(process, signal.SIGTERM)
        assert server.wait(PATIENCE) == 0


def is_healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/healthz", timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False


def test_it_does_not_run_as_root(container: str) -> None:
    assert run(inside(container, "id", "-u")) == "10001"
    size = run(buildah("images", "--format={{.Name}} {{.Size}}"))
    print(f"sizes: {size}")


def test_it_can_write_nothing_but_its_volume_and_temporary_files(container: str) -> None:
    search = "find / -xdev -type d -writable 2> /dev/null; true"  # it may not look into some
    found = run(inside(container, "sh", "-c", search)).split()
    outside = ("/proc", "/dev", "/sys")
    written = ("/data", "/tmp", "/var/tmp", "/run/lock")
    assert "/data" in found
    assert [each for each in found if not each.startswith(outside + written)] == []


def test_it_serves_stops_and_keeps_its_data(container: str) -> None:
    added = run(
        inside(container, "isotone", "user", "add", "ann", "--credentials=/data/users.json")
    )
    found = dict(line.split(" = ") for line in added.splitlines() if " = " in line)

    def client(address: str):
        return boto3.client("dynamodb", region_name="eu-west-1", endpoint_url=address, **found)

    key = {"id": {"S": "1"}}
    with serving(container) as address:
        client(address).create_table(
            TableName="shop",
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        client(address).put_item(TableName="shop", Item=key)
    with serving(container) as address:
        assert client(address).get_item(TableName="shop", Key=key)["Item"] == key
