"""Install the clients that cannot live in the development environment, and Azurite, the emulator of Azure's storage.

The clients are the AWS CLI, the JavaScript SDK, and `aws-sdk-dynamodb`, AWS's new SDK for Python.

python tests/sdks/install.py

The AWS CLI pins a botocore of its own, and `aws-sdk-dynamodb` needs Python 3.12 or later: each gets a virtual
environment of its own. All are put under `.peers`, in the versions that are pinned beside this file. Without node,
the JavaScript SDK and Azurite are left out, and without such a Python, `aws-sdk-dynamodb`.
The tests that find one of them missing are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE.parents[1] / ".peers"
AWS_CLI = PEERS / "awscli"
AWS_SDK = PEERS / "awssdk"
JAVASCRIPT = PEERS / "js"
AZURITE = PEERS / "azurite"
HOW = "run `make clients` to install it"


def aws_command() -> list[str] | None:
    """The AWS CLI, if it is installed."""
    script = AWS_CLI / "bin" / "aws"
    return [str(AWS_CLI / "bin" / "python"), str(script)] if script.exists() else None


def install_aws_cli() -> None:
    if not (AWS_CLI / "bin" / "python").exists():
        venv.create(AWS_CLI, with_pip=True, symlinks=True)
    pip = [AWS_CLI / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    pins = HERE / "awscli" / "requirements.txt"
    subprocess.run([*pip, "install", "--requirement", pins], check=True)


def newer_python() -> str | None:
    """A Python 3.12 or later: this one, or one that is found by its name."""
    if sys.version_info >= (3, 12):
        return sys.executable
    for minor in range(14, 11, -1):
        found = shutil.which(f"python3.{minor}")
        # A shim of pyenv is found for versions that are not selected, and fails.
        if (
            found
            and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return found
    pyenv = Path.home() / ".pyenv" / "versions"
    return next((str(each) for each in sorted(pyenv.glob("3.1[2-9]*/bin/python"))), None)


def install_aws_sdk() -> None:
    python = newer_python()
    if python is None:
        print("there is no Python 3.12: aws-sdk-dynamodb is left out", file=sys.stderr)
        return
    if not (AWS_SDK / "bin" / "python").exists():
        subprocess.run([python, "-m", "venv", AWS_SDK], check=True)
    pip = [AWS_SDK / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    pins = HERE / "awssdk" / "requirements.txt"
    subprocess.run([*pip, "install", "--requirement", pins], check=True)


def install_from_npm(pins: str, folder: Path) -> None:
    """Install the packages that are pinned in a folder beside this file."""
    npm = shutil.which("npm")
    if npm is None:
        print(f"there is no npm: {folder.name} is left out", file=sys.stderr)
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / pins / name, folder)
    quietly = ["--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([npm, "ci", *quietly], cwd=folder, check=True)


if __name__ == "__main__":
    PEERS.mkdir(exist_ok=True)
    install_aws_cli()
    install_aws_sdk()
    install_from_npm("javascript", JAVASCRIPT)
    install_from_npm("azurite", AZURITE)
