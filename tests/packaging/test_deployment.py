"""The files of deploy/: their command lines are commands of ours, and what they copy exists."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from isotone.cli.program import parser_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PORT = 8000


def text(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def command_of(name: str) -> list[str]:
    """The words after `isotone`."""
    if name == "isotone.service":
        (line,) = re.findall(r"^ExecStart=\S+/isotone (.*)$", text(name), re.MULTILINE)
        return shlex.split(line)
    (words,) = re.findall(r"^\s*(?:CMD|command:|args:) (\[\"serve.*\])$", text(name), re.MULTILINE)
    found: list[str] = json.loads(words)
    return found


@pytest.mark.parametrize(
    "name", ["Containerfile", "compose.yaml", "isotone.service", "kubernetes.yaml"]
)
def test_a_command_line_can_be_meant_as_written(name: str) -> None:
    command, *words = command_of(name)
    arguments = parser_of(command).parse_args(words)
    assert arguments.port == PORT
    assert Path(arguments.file).is_absolute()
    if arguments.host == "0.0.0.0":
        assert arguments.insecure is (arguments.credentials is None)


def test_the_commands_that_replace_dynamodb_local_are_ours() -> None:
    page = (ROOT / "docs/deploying.md").read_text(encoding="utf-8")
    _, in_memory, _, with_data = re.findall(r"^    command: (.*)$", page, re.MULTILINE)
    for after, where in ((in_memory, (True, None)), (with_data, (False, "/data"))):
        command, *words = shlex.split(after)
        arguments = parser_of(command).parse_args(words)
        assert (arguments.memory, arguments.dbPath) == where
        assert (arguments.host, arguments.insecure) == ("0.0.0.0", True)


def test_without_users_the_port_is_published_on_this_machine_alone() -> None:
    assert "--insecure" in command_of("compose.yaml")
    assert f'ports: ["127.0.0.1:{PORT}:{PORT}"]' in text("compose.yaml")


def test_the_image_copies_what_exists_and_does_not_run_as_root() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text("Containerfile"), re.MULTILINE)
    files = [name for words in copied for name in words.split()]
    assert files
    assert [name for name in files if not (ROOT / name).exists()] == []
    users = re.findall(r"^USER (\d+):", text("Containerfile"), re.MULTILINE)
    assert users == ["10001"]
    assert "runAsUser: 10001" in text("kubernetes.yaml")


def test_probes_ask_for_paths_that_the_server_has() -> None:
    paths = re.findall(r"httpGet: \{ path: (\S+),", text("kubernetes.yaml"))
    assert paths == ["/", "/"]


def test_the_unit_is_protected() -> None:
    assert "\nType=notify\n" in text("isotone.service")
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    command = [program, "security", "--offline=true", "--threshold=20", "--no-pager"]
    ran = subprocess.run(
        [*command, str(DEPLOY / "isotone.service")], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout


def test_the_workflows_are_sound() -> None:
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip("go install github.com/rhysd/actionlint/cmd/actionlint@latest")
    workflows = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
    assert workflows
    ran = subprocess.run([program, *workflows], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_kubernetes_knows_each_field_of_the_manifests(tmp_path: Path) -> None:
    program = shutil.which("kubernetes-validate", path=ROOT / ".venv-packages" / "bin")
    if program is None:
        pytest.skip("make packages installs kubernetes-validate, and runs it")
    command = [program, "--strict", "--quiet"]
    assert subprocess.run([*command, DEPLOY / "kubernetes.yaml"], check=False).returncode == 0
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text("kubernetes.yaml").replace("replicas:", "replica:"), encoding="utf-8")
    assert subprocess.run([*command, wrong], check=False).returncode != 0
