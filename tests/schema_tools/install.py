"""Install the tools that check what `isotone schema` writes: cfn-lint, the AWS CDK in Python and in TypeScript.

python tests/schema_tools/install.py

They are put under `.peers`, in the versions that are pinned beside this file. Both forms of the CDK need node; without
it, they are left out. The tests that find a tool missing are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE.parents[1] / ".peers"
PYTHON_TOOLS = PEERS / "schema"
TYPESCRIPT_CDK = PEERS / "schema-cdk"
HOW = "run `make schemas` to install it"


def install_python_tools() -> None:
    if not (PYTHON_TOOLS / "bin" / "python").exists():
        venv.create(PYTHON_TOOLS, with_pip=True, symlinks=True)
    pip = [PYTHON_TOOLS / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--requirement", HERE / "requirements.txt"], check=True)


def install_typescript_cdk() -> None:
    npm = shutil.which("npm")
    if npm is None:
        print("there is no npm: the CDK in TypeScript is left out", file=sys.stderr)
        return
    TYPESCRIPT_CDK.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / "cdk" / name, TYPESCRIPT_CDK)
    quietly = ["--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run([npm, "ci", *quietly], cwd=TYPESCRIPT_CDK, check=True)


if __name__ == "__main__":
    PEERS.mkdir(exist_ok=True)
    install_python_tools()
    install_typescript_cdk()
