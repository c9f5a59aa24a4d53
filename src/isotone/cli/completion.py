"""`isotone completion`: Tab completes commands, options, tables and keys in bash, zsh and fish.

A shell's script asks `isotone completion words WORD…` with the words up to the cursor, so that the parsers are the only
list of options. Tables and keys are read from a file; a server is not asked, since it may take long to answer.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from isotone.cli.program import COMMANDS, Command, parser_of
from isotone.errors import IsotoneError

_SCRIPTS: Final = {
    "bash": """\
_isotone() {
    local IFS=$'\\n'
    COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}
    COMPREPLY=($(isotone completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null))
}
complete -o bashdefault -o default -F _isotone isotone
""",
    "zsh": """\
#compdef isotone
_isotone() {
    local -a found
    found=("${(@f)$(isotone completion words -- "${(@)words[2,CURRENT]}" 2> /dev/null)}")
    if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _isotone isotone
""",
    "fish": """\
function __isotone_complete
    set -l found (isotone completion words -- (commandline -opc)[2..] (commandline -ct) 2> /dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c isotone -f -a '(__isotone_complete)'
""",
}
_MAKES_ITS_TABLE: Final = "create"


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shell", metavar="SHELL", choices=[*_SCRIPTS, "words"], help="bash, zsh or fish"
    )
    parser.add_argument(
        "words", metavar="WORD", nargs="*", help="of a script: the words to complete"
    )


def _run(arguments: argparse.Namespace) -> int:
    if arguments.shell in _SCRIPTS:
        print(_SCRIPTS[arguments.shell], end="")
    else:
        for word in sorted(set(candidates(arguments.words or [""]))):
            print(word)
    return 0


def candidates(words: Sequence[str]) -> Iterator[str]:
    """What the last word may become; nothing where it is a file, or anything."""
    *before, last = words
    if not before:
        yield from _beginning(last, COMMANDS)
        return
    if before[0] not in COMMANDS:
        return
    name, given = before[0], before[1:]
    parser = parser_of(name)
    if last.startswith("-"):
        yield from _beginning(last, parser._option_string_actions)
        return
    option = parser._option_string_actions.get(given[-1]) if given else None
    if option is not None and option.nargs != 0:
        yield from _beginning(last, map(str, option.choices or ()))
    elif COMMANDS[name].opens and name != _MAKES_ITS_TABLE:
        yield from _beginning(last, _of_file(parser, given))


def _of_file(parser: argparse.ArgumentParser, given: Sequence[str]) -> list[str]:
    """The tables of the file, or the key attributes of the table, by the words that are no options."""
    takes_value = {name for name, each in parser._option_string_actions.items() if each.nargs != 0}
    plain = [
        word
        for word, previous in zip(given, ["", *given], strict=False)
        if not word.startswith("-") and previous not in takes_value
    ]
    if not plain or not Path(plain[0]).is_file():
        return []
    from isotone.cli.database import connect
    from isotone.cli.table_keys import table_of
    from isotone.tables.description import table_names

    with contextlib.suppress(IsotoneError), connect(plain[0]) as database:
        if len(plain) == 1:
            return table_names(database)
        return [f"{name}=" for name in table_of(database, plain[1]).key.names]
    return []


def _beginning(text: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(text)]


COMPLETION: Final = Command(
    """\
Print the script that completes commands, options, tables and key attributes in a shell.""",
    examples="""
source <(isotone completion bash)                               in ~/.bashrc
source <(isotone completion zsh)                                in ~/.zshrc, after compinit
isotone completion fish > ~/.config/fish/completions/isotone.fish
""",
    add_arguments=_arguments,
    run=_run,
)


DEFINITIONS: Final = {"completion": COMPLETION}
