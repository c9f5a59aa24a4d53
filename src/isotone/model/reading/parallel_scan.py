"""Parallel scans: reads several segments at the same time, in threads or tasks, and adds up their cost.

Each segment reads at most one request ahead, so results do not pile up if the consumer is slow.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from isotone.model.reading.cost import Stats
from isotone.model.reading.reader import Traversal
from isotone.tables.steps import Steps

E = TypeVar("E")

Progress = Callable[[Stats], None]


def together(
    segments: Sequence[Traversal[E]],
    run: Callable[[Steps[list[E]]], list[E]],
    progress: Progress | None = None,
) -> Iterator[E]:
    """The results of all segments as they arrive; `progress` is called with the total cost after each request."""
    with ThreadPoolExecutor(len(segments), thread_name_prefix="isotone-scan") as pool:
        waiting: dict[Future[list[E]], Traversal[E]] = {
            pool.submit(run, each.step()): each for each in segments
        }
        try:
            while waiting:
                for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                    segment = waiting.pop(done)
                    found = done.result()
                    if not segment.is_over:
                        waiting[pool.submit(run, segment.step())] = segment
                    _tell(segments, progress)
                    yield from found
        finally:
            for each in waiting:
                each.cancel()


async def together_async(
    segments: Sequence[Traversal[E]],
    run: Callable[[Steps[list[E]]], Coroutine[Any, Any, list[E]]],
    progress: Progress | None = None,
) -> AsyncIterator[E]:
    """As `together`, for asyncio."""
    import asyncio  # imported here, because it takes a tenth of the start-up time of a program that does not use it

    def begin(segment: Traversal[E]) -> asyncio.Task[list[E]]:
        return asyncio.ensure_future(run(segment.step()))

    waiting = {begin(each): each for each in segments}
    try:
        while waiting:
            finished, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for done in finished:
                segment = waiting.pop(done)
                found = done.result()
                if not segment.is_over:
                    waiting[begin(segment)] = segment
                _tell(segments, progress)
                for entity in found:
                    yield entity
    finally:
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _tell(segments: Sequence[Traversal[E]], progress: Progress | None) -> None:
    if progress is not None:
        progress(sum((segment.stats for segment in segments), Stats()))
