"""A process that consumes a queue: python consuming.py FILE MODE NUMBER.

`drain`: until it is empty, printing each message that it has acknowledged. `die`: claims messages, says so,
and waits to be killed.
"""

from __future__ import annotations

import sys

import isotone
from isotone.structures import Queue


def drain(file: str, number: str) -> None:
    with isotone.connect(file, durability="none") as store:
        queue = Queue(store, "q", shards=2, hold=600)
        for message in queue.consume(idle=0.3, poll=0.05):
            with queue.handling(message):
                pass
            print(message.group, message.body, flush=True)


def die(file: str, number: str) -> None:
    with isotone.connect(file) as store:
        queue = Queue(store, "q", shards=2, hold=60)
        print(len(queue.claim(5)), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    {"drain": drain, "die": die}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
