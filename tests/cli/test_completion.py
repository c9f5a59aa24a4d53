"""Completion in shells: the words that may follow, and the scripts that ask for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from isotone.cli.completion import candidates


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["se"], ["serve", "seed"]),
        (["ser"], ["serve"]),
        (["serve", "--dur"], ["--durability"]),
        (["serve", "--durability", ""], ["disk", "process", "none"]),
        (["serve", "--durability", "p"], ["process"]),
        (["nothing", ""], []),
        (["query", ""], []),
        (["query", "missing.db", ""], []),
    ],
)
def test_what_may_follow(words, expected):
    assert list(candidates(words)) == expected


def test_tables_and_keys_of_a_file(shop):
    (table,) = candidates(["query", str(shop), ""])
    assert list(candidates(["query", str(shop), table[:2]])) == [table]
    assert list(candidates(["query", "--limit", "5", str(shop), ""])) == [table]
    keys = list(candidates(["query", str(shop), table, ""]))
    assert keys
    assert all(key.endswith("=") for key in keys)
    assert list(candidates(["query", str(shop), "NoTable", ""])) == []


def test_a_file_that_is_no_database_completes_nothing(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("words")
    assert list(candidates(["query", str(text), ""])) == []


def in_shell(shell: str, script: str, folder: Path) -> str:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = folder / "isotone"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m isotone "$@"\n')
    program.chmod(0o755)
    ran = subprocess.run(
        [shell, "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


def test_bash_completes_with_the_script(tmp_path, shop):
    script = (
        'source <(isotone completion bash); COMP_WORDS=(isotone describe shop.db ""); COMP_CWORD=3\n'
        '_isotone; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert in_shell("bash", script, shop.parent).split() == list(
        candidates(["describe", str(shop), ""])
    )


def test_fish_completes_with_the_script(tmp_path, shop):
    script = 'isotone completion fish | source; complete -C "isotone describe shop.db "'
    found = in_shell("fish", script, shop.parent).split()
    assert found == list(candidates(["describe", str(shop), ""]))
    script = 'isotone completion fish | source; complete -C "isotone serve --durability p"'
    assert in_shell("fish", script, shop.parent).split() == ["process"]
    script = 'isotone completion fish | source; complete -C "isotone query sho"'
    assert in_shell("fish", script, shop.parent).split() == ["shop.db"]


# Tab in a terminal prints what has become of the line.
ZSH = r"""
zmodload zsh/zpty
zpty terminal 'TERM=dumb zsh -f -i'
zpty -w terminal 'autoload -Uz compinit; compinit -u -D; source <(isotone completion zsh)'
zpty -w terminal 'shown() { zle expand-or-complete; print -r -- "<$BUFFER>"; }; zle -N shown; bindkey "^I" shown'
zpty -w terminal 'print REA""DY'
zpty -r terminal line '*READY*'
zpty -w -n terminal $'isotone WORDS\t'
zpty -r terminal line '*<*>*'
print -r -- "$line"
"""


def test_zsh_completes_with_the_script(tmp_path, shop):
    (table,) = candidates(["describe", str(shop), ""])
    for words, full in [
        ("serve --durability p", "serve --durability process"),
        (f"describe shop.db {table[:-1]}", f"describe shop.db {table}"),
    ]:
        found = in_shell("zsh", ZSH.replace("WORDS", words), shop.parent)
        assert f"<isotone {full} >" in found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_has_no_syntax_error(isotone, tmp_path, shell):
    script = isotone("completion", shell).out
    assert "isotone completion words -- " in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(script)
    subprocess.run([shell, "-n", str(path)], check=True)
