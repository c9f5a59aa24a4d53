"""What `isotone worker feed_site:fan_out` runs in the test of killed workers: as slow as a network, with a log."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from isotone import Entity, Store
from isotone.model import Calls, Steps
from isotone.structures import Feed, Worker

put_many = Calls.put_many


def slowly(entities: Iterable[Entity]) -> Iterator[Entity]:
    began = time.monotonic()
    for entity in entities:
        time.sleep(0.001)
        yield entity
    with Path(os.environ["FEED_SITE_LOG"]).open("a") as log:
        log.write(f"{os.getpid()} {began} {time.monotonic()}\n")


def put_slowly(self: Calls, entities: Iterable[Entity], **options: Any) -> Steps[int]:
    return put_many(self, slowly(entities), **options)


def fan_out(store: Store) -> Worker:
    Calls.put_many = put_slowly  # type: ignore[method-assign] # the fan-out as it is, but slower
    return Feed(store, "site").worker("fan-out")
