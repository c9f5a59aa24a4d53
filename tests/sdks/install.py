"""Install the clients that cannot live in the development environment: the AWS CLI and the JavaScript SDK.

python tests/sdks/install.py

The AWS CLI pins a botocore of its own, so it gets a virtual environment of its own. Both are put under
`.peers`, in the versions that are pinned beside this file; without node, the JavaScript SDK is left out.
The tests that find a client missing are skipped.
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
JAVASCRIPT = PEERS / "js"
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


def install_javascript() -> None:
    npm = shutil.which("npm")
    if npm is None:
        print("there is no npm: the JavaScript SDK is left out", file=sys.stderr)
        return
    JAVASCRIPT.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "javascript" / name, JAVASCRIPT)
    quietly = ["--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([npm, "ci", *quietly], cwd=JAVASCRIPT, check=True)


if __name__ == "__main__":
    PEERS.mkdir(exist_ok=True)
    install_aws_cli()
    install_javascript()
