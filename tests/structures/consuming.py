"""A process that consumes a queue: python consuming.py FILE MODE NUMBER.

`drain`: until it is empty, printing each message that it has acknowledged. `storm`: until it is killed,
printing each before it is acknowledged. `die`: claims messages, says so, and waits to be killed.
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


def storm(file: str, number: str) -> None:
    """Says what it has claimed, and only then acknowledges it."""
    with isotone.connect(file, durability="none") as store:
        queue = Queue(store, "q", shards=2, hold=1_000, attempts=1_000)
        while True:
            for message in queue.claim(2):
                print(message.group, message.body, flush=True)
                queue.acknowledge(message)


def die(file: str, number: str) -> None:
    with isotone.connect(file) as store:
        queue = Queue(store, "q", shards=2, hold=60)
        print(len(queue.claim(5)), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    {"drain": drain, "die": die, "storm": storm}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
