"""`isotone user`: who is in the file, what is printed, and what is refused."""

from __future__ import annotations

import configparser
import json
import os
import re
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests import programs

import isotone as package
from isotone.errors import UsageError
from isotone.server import running_server
from isotone.server.users import changing_users, read_users


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "isotone-credentials.json"


def keys_of(file, name):
    return read_users(file).by_name[name].keys


def printed(out):
    """The profile and the environment that were printed."""
    profile, environment = out.partition("# as a profile in ~/.aws/credentials\n")[2].split(
        "\n# or in the environment\n"
    )
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(profile)
    exports = dict(re.findall(r"^export (\w+)=(\S+)$", environment, re.MULTILINE))
    return parser, exports


def test_a_user_is_added_with_a_key_that_is_printed_once(isotone, file):
    outcome = isotone("user", "add", "ann")
    assert (outcome.code, outcome.err) == (0, "")
    (key,) = keys_of(file, "ann")
    profile, exports = printed(outcome.out)
    assert profile["ann"]["aws_access_key_id"] == exports["AWS_ACCESS_KEY_ID"] == key.access_key_id
    assert profile["ann"]["aws_secret_access_key"] == key.secret_access_key
    assert exports["AWS_SECRET_ACCESS_KEY"] == key.secret_access_key
    assert "AWS_SESSION_TOKEN" not in exports
    assert re.fullmatch("ISOT[A-Z2-7]{16}", key.access_key_id)
    assert len(key.secret_access_key) == 40
    listed = isotone("user", "list").out
    assert key.access_key_id in listed
    assert key.secret_access_key not in listed


@pytest.mark.skipif(os.name == "nt", reason="permissions as POSIX has them")
def test_only_the_owner_can_read_the_file(isotone, file):
    isotone("user", "add", "ann")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    assert "others may read the secrets" in isotone("user", "list").err
    isotone("user", "add", "bob")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name == "nt", reason="permissions as POSIX has them")
def test_a_group_may_read_a_file_of_another_owner(isotone, file, monkeypatch):
    """So Kubernetes mounts a secret: the owner is root, and the pod reads it through its group."""
    isotone("user", "add", "ann")
    file.chmod(0o440)
    assert "others may read the secrets" in isotone("user", "list").err
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 10_001)
    assert isotone("user", "list").err == ""
    file.chmod(0o444)
    assert "others may read the secrets" in isotone("user", "list").err


def test_a_key_for_a_time(isotone, file):
    outcome = isotone("user", "add", "ci", "--expires", "12h")
    (key,) = keys_of(file, "ci")
    profile, exports = printed(outcome.out)
    assert profile["ci"]["aws_session_token"] == exports["AWS_SESSION_TOKEN"] == key.session_token
    left = key.expires - datetime.now(UTC)
    assert timedelta(hours=11, minutes=59) < left <= timedelta(hours=12)
    assert f"until {key.expires:%Y-%m-%d %H:%M} UTC" in isotone("user", "list").out


def test_a_new_key_ends_the_old_one_at_once_or_later(isotone, file):
    isotone("user", "add", "ann")
    (first,) = keys_of(file, "ann")
    isotone("user", "rotate", "ann")
    (second,) = keys_of(file, "ann")
    assert first.access_key_id != second.access_key_id
    isotone("user", "rotate", "ann", "--overlap", "1h")
    old, new = keys_of(file, "ann")
    assert old.access_key_id == second.access_key_id
    assert old.expires <= datetime.now(UTC) + timedelta(hours=1)
    assert new.expires is None
    isotone("user", "rotate", "ann", "--overlap", "2h")
    assert keys_of(file, "ann")[0].expires == old.expires, "an overlap never lengthens a life"


def test_what_a_user_may_do_is_kept_and_shown(isotone, file, tmp_path):
    policy = {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"},
    }
    (tmp_path / "policy.json").write_text(json.dumps(policy))
    assert isotone("user", "add", "ann").out.startswith(
        "ann was added to isotone-credentials.json: reads and writes every table. The secret"
    )
    isotone("user", "add", "bob", "--read-only", "--tables", "Orders*", "Notes", "--tables", "X")
    isotone("user", "add", "eve", "--actions", "GetItem", "--policy", "policy.json")
    users = read_users(file).by_name
    assert (users["bob"].read_only, users["bob"].tables) == (True, ["Orders*", "Notes", "X"])
    assert (users["eve"].actions, users["eve"].policy) == (["GetItem"], policy)
    listed = isotone("user", "list").out
    assert "reads Orders* Notes X" in listed
    assert "reads and writes every table, only GetItem, as its policy allows" in listed


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("nonsense", "policy.json is not a policy in JSON"),
        ("[]", "policy.json is not a policy in JSON"),
        ('{"Statement": {}}', "the policy of ann cannot be used: statement 1 has the Effect None"),
    ],
)
def test_a_policy_that_cannot_be_used_adds_nobody(isotone, file, tmp_path, policy, told):
    (tmp_path / "policy.json").write_text(policy)
    outcome = isotone("user", "add", "ann", "--policy", "policy.json")
    assert outcome.code == 1
    assert told in outcome.err
    assert not file.exists()


def test_a_user_is_removed(isotone, file):
    isotone("user", "add", "ann")
    isotone("user", "add", "bob")
    assert isotone("user", "remove", "ann").out == (
        f"ann was removed from {file.name}; a running server lets them in until SIGHUP (kill -HUP PID)\n"
    )
    assert set(read_users(file).by_name) == {"bob"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("add", "ann"), "there is a user ann already; isotone user rotate ann gives a new key"),
        (("remove", "bob"), "there is no user bob in isotone-credentials.json"),
        (("rotate", "bob"), "there is no user bob in isotone-credentials.json"),
        (("add", "a b"), "'a b' cannot be a user's name"),
        (("add", "x" * 65), "cannot be a user's name"),
        (("add",), "add takes a NAME"),
        (("list", "ann"), "list takes no NAME"),
        (
            ("add", "bob", "--expires", "soon"),
            "'soon' is not a time; write a number and s, m, h or d",
        ),
        (("add", "bob", "--overlap", "1h"), "--overlap is for rotate"),
        (("rotate", "ann", "--read-only"), "--read-only is for add"),
        (("add", "bob", "--policy", "none.json"), "none.json: No such file or directory"),
        (("add", "bob", "--tables", ""), "--tables: no table can be named ''; write a name, or a"),
        (("add", "bob", "--tables", "Orders", "a b"), "--tables: no table can be named 'a b'"),
        (("add", "bob", "--actions", ""), "--actions: DynamoDB has no action ''"),
        (("remove", "ann", "--expires", "1h"), "--expires is for add and rotate"),
        (("list", "--credentials", "none.json"), "there is no credentials file none.json"),
    ],
)
def test_what_cannot_be_is_reported(isotone, file, words, told):
    isotone("user", "add", "ann")
    before = file.read_bytes()
    outcome = isotone("user", *words)
    assert outcome.code == 1
    assert told in outcome.err
    assert file.read_bytes() == before
    assert not file.with_name(file.name + ".new").exists()


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("", "is not a credentials file"),
        ("[]", "is not a credentials file"),
        ('{"users": {"ann": {"key": []}}}', "unknown field `key`"),
        ('{"users": {"a/b": {}}}', "'a/b' cannot be a user's name"),
        (
            '{"users": {"a": {"keys": [{"access_key_id": "a b", "secret_access_key": "x"}]}}}',
            "'a b' of a",
        ),
        (
            '{"users": {"a": {"keys": [{"access_key_id": "abc", "secret_access_key": ""}]}}}',
            "'abc' of a",
        ),
        (
            '{"users": {"a": {"keys": [{"access_key_id": "abc", "secret_access_key": "x"},'
            '{"access_key_id": "abc", "secret_access_key": "y"}]}}}',
            "the file has the access key abc twice",
        ),
        (
            '{"users": {"a": {"keys": [{"access_key_id": "abc", "secret_access_key": "x",'
            '"expires": "2026-01-01T00:00:00"}]}}}',
            "which has no time zone",
        ),
    ],
)
def test_a_broken_file_is_reported(isotone, file, document, told):
    file.write_text(document)
    file.chmod(0o600)
    outcome = isotone("user", "list")
    assert outcome.code == 1
    assert told in outcome.err
    assert isotone("user", "add", "bob").code == 1
    assert file.read_text() == document


def test_two_commands_do_not_change_the_file_at_once(isotone, file):
    with changing_users(file) as users:
        users.clear()
        outcome = isotone("user", "add", "ann")
        assert outcome.code == 1
        assert "another command is changing isotone-credentials.json" in outcome.err
    assert isotone("user", "add", "ann").code == 0


def test_a_change_that_fails_changes_nothing(isotone, file):
    isotone("user", "add", "ann")
    before = file.read_bytes()
    with (
        pytest.raises(UsageError, match=r"the access key .* twice; remove one"),
        changing_users(file) as users,
    ):
        users["bob"] = users["ann"]
    assert file.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has such a device")
def test_a_key_that_cannot_be_shown_is_not_kept(isotone, file):
    """The old key of a rotation would be over, and the new one known to nobody."""
    assert isotone("user", "add", "ann", "--credentials", file).code == 0
    before = file.read_bytes()
    for words in (("add", "bob"), ("rotate", "ann")):
        with (
            Path("/dev/full").open("w") as full,
            programs.isotone(
                "user", *words, "--credentials", file, stdout=full, stderr=subprocess.PIPE
            ) as running,
        ):
            _, err = running.communicate(timeout=30)
        assert running.returncode == 1
        assert "No space left on device" in err
        assert file.read_bytes() == before


def test_an_action_that_does_not_exist(isotone, file):
    code, out, err = isotone("user", "add", "ann", "--actions", "GetItm", "Batch*")
    assert (code, out) == (1, "")
    assert err == "isotone: --actions: DynamoDB has no action 'GetItm'; did you mean GetItem?\n"
    assert not file.exists()
    # IAM stores such a policy; a Deny with a slip denies nothing.
    statement = {"Effect": "Deny", "Action": ["dynamodb:PutItm", "s3:*"], "Resource": "*"}
    file.with_name("policy.json").write_text(json.dumps({"Statement": statement}))
    outcome = isotone("user", "add", "ann", "--policy", "policy.json")
    assert outcome.code == 0
    assert outcome.err == (
        "isotone: warning: the policy has dynamodb:PutItm, but DynamoDB has no such action\n"
    )
    for good in ("getitem", "dynamodb:Query", "PartiQL*", "ConditionCheckItem", "*"):
        assert isotone("user", "add", f"u{len(good)}", "--actions", good).code == 0


def test_a_new_key_says_how_long_it_is_valid(isotone, file):
    isotone("user", "add", "ci", "--expires", "12h")
    out = isotone("user", "rotate", "ci").out
    assert (
        "a new key in isotone-credentials.json, which does not expire. Previous keys are no" in out
    )
    out = isotone("user", "rotate", "ci", "--expires", "1h", "--overlap", "5m").out
    assert re.search(r"which is valid until .* UTC\. Previous keys are valid until .* UTC\.", out)


def test_a_key_that_the_server_does_not_know_is_explained(isotone, file, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    isotone("user", "add", "ann")
    with package.open() as database, running_server(database, credentials=file) as url:
        outcome = isotone("tables", url)
    assert outcome.code == 1
    assert outcome.err.startswith("isotone: UnrecognizedClientException: The security token")
    assert outcome.err.endswith("isotone user makes one for a server of Isotone.\n")


@pytest.mark.skipif(os.name == "nt", reason="only POSIX limits the size of files")
@pytest.mark.parametrize("action", ["add", "rotate"])
def test_a_key_that_could_not_be_saved_is_not_shown(isotone, file, action):
    """No file can grow, as on a full disk."""
    import resource

    if action == "rotate":
        isotone("user", "add", "ann")
    before = file.read_bytes() if file.exists() else None
    done = subprocess.run(
        [sys.executable, "-m", "isotone", "user", action, "ann"],
        cwd=file.parent,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "isotone: isotone-credentials.json: File too large\n"
    assert (file.read_bytes() if file.exists() else None) == before
    assert [path.name for path in file.parent.iterdir()] == ([file.name] if before else [])
