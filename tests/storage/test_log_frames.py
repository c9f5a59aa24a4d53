"""The reader of logs finds what SQLite finds, and what SQLite drops.

The oracle is SQLite: how many frames it recovers of a log. What it should recover is known from how the log was written.
"""

from __future__ import annotations

import io
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.storage.made_logs import (
    PAGE,
    STRIDE,
    Killed,
    frames_that_sqlite_reads,
    killed,
    sums,
    with_sums_in_other_order,
)

from isotone.storage.log_check import Damage, committed_in, damage_of
from isotone.storage.log_frames import HEADER, Frame, Log, LogIndex, checksum, index_of

SECTOR = 512
SHAPES = {
    "one generation": {},
    "older frames behind": {"generations": 3},
    "a transaction that was not finished": {"unfinished": 9},
    "not finished, over older frames": {"generations": 2, "unfinished": 2},
    "partly in the file": {"checkpointed": True, "generations": 2},
    "a single commit": {"commits": 1},
}
made: dict[tuple[str, bool], Killed] = {}


@pytest.fixture(scope="module", autouse=True)
def logs(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("logs")
    for seed, (name, shape) in enumerate(SHAPES.items()):
        for is_other in (False, True):
            found = killed(folder, seed, **shape)  # type: ignore[arg-type]
            if is_other:
                found.content["-wal"] = with_sums_in_other_order(found.log)
                found.before = with_sums_in_other_order(found.before)
            made[name, is_other] = found


def read(content: bytes) -> tuple[Log, list[Frame]]:
    log = Log(io.BytesIO(content), page_size=PAGE)
    return log, list(log.frames())


def committed(content: bytes) -> int:
    return committed_in(*read(content))


def damage_in(content: bytes, index: LogIndex | None = None) -> Damage | None:
    return damage_of(*read(content), index)


a_log = st.tuples(st.sampled_from(list(SHAPES)), st.booleans()).map(lambda which: made[which])
searched = settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def flip(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(
    content=st.binary(max_size=200),
    order=st.sampled_from(["<", ">"]),
    one=st.integers(0, 2**32 - 1),
)
def test_the_sums_are_those_that_sqlite_documents(content: bytes, order: str, one: int) -> None:
    content = content[: len(content) // 8 * 8]
    assert checksum(content, order, one, 7) == sums(content, order, one, 7)  # type: ignore[arg-type]


@pytest.mark.parametrize("is_other", [False, True], ids=["this machine's order", "the other order"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_sound_log_is_read_as_sqlite_reads_it(tmp_path: Path, shape: str, is_other: bool) -> None:
    one = made[shape, is_other]
    path = one.write(tmp_path / "a.db")
    log, frames = read(one.log)
    assert committed_in(log, frames) == frames_that_sqlite_reads(path) == one.commits[-1]
    assert [frame.number for frame in frames if frame.is_sound and frame.size] == one.commits
    assert damage_in(one.log, index_of(str(path))) is None
    for frame in frames:
        place = HEADER + (frame.number - 1) * STRIDE
        assert log.content(frame) == one.log[place + 24 : place + STRIDE]


def test_frames_of_older_logs_are_known_by_their_salts() -> None:
    one = made["older frames behind", False]
    _, frames = read(one.log)
    assert not any(frame.is_own for frame in frames[one.commits[-1] :])
    assert len(frames) > one.commits[-1] + 5


def test_the_index_knows_how_much_was_committed(tmp_path: Path) -> None:
    for (shape, _), one in made.items():
        index = index_of(str(one.write(tmp_path / "a.db")))
        assert index is not None
        assert index.frames == one.commits[-1]
        assert index.salts == one.log[16:24]
        assert (index.in_file > 0) == (shape == "partly in the file")
        assert index.in_file < index.frames
    for content in (b"", b"\0" * 32768, one.content["-shm"][:99]):
        Path(tmp_path / "a.db-shm").write_bytes(content)
        assert index_of(str(tmp_path / "a.db")) is None


def test_an_index_with_a_wrong_bit_is_not_believed(tmp_path: Path) -> None:
    one = made["one generation", False]
    for bit in range(96 * 8):
        (tmp_path / "a.db-shm").write_bytes(flip(one.content["-shm"], bit))
        index = index_of(str(tmp_path / "a.db"))
        assert index is not None, "there are two copies"
        assert index.frames == one.commits[-1]


@searched
@given(one=a_log, data=st.data())
def test_a_wrong_bit_is_found_if_it_costs_a_commit(
    one: Killed, data: st.DataObject, tmp_path: Path
) -> None:
    used = HEADER + one.commits[-1] * STRIDE
    headers = [HEADER * 8, *(8 * (HEADER + at * STRIDE + 24) for at in range(one.commits[-1]))]
    bit = data.draw(
        st.integers(0, 8 * used - 1)
        | st.integers(0, HEADER * 8 - 1)
        | st.sampled_from(headers).flatmap(lambda end: st.integers(end - 192, end - 1))
        | st.integers(0, 8 * len(one.log) - 1)
    )
    content = flip(one.log, bit)
    path = one.write(tmp_path / "a.db", content)
    recovered = frames_that_sqlite_reads(path)
    assert committed(content) == recovered
    index = index_of(str(path))
    found = damage_in(content, index)
    if recovered == one.commits[-1]:
        assert found is None, "a bit that costs nothing"
        return
    assert found is not None
    if index is not None and index.salts == read(content)[0].salts:
        assert found.is_proven
    assert damage_in(content) is not None, "without the index as well"


@searched
@given(one=a_log, data=st.data())
def test_a_log_that_was_cut_off_is_a_power_cut_unless_the_index_knows_more(
    one: Killed, data: st.DataObject, tmp_path: Path
) -> None:
    content = one.log[: data.draw(st.integers(1, len(one.log)))]
    path = one.write(tmp_path / "a.db", content)
    recovered = frames_that_sqlite_reads(path)
    assert committed(content) == recovered
    if len(content) >= HEADER:
        assert damage_in(content) is None or recovered == one.commits[-1]
        found = damage_in(content, index_of(str(path)))
        assert (found is not None) == (recovered < one.commits[-1])
        assert found is None or found.is_proven


def torn(one: Killed, random: Random) -> bytes:
    """The log after a power cut during its last commit: of each sector that was being written either the old or the new."""
    begin = HEADER + (one.commits[-2] if len(one.commits) > 1 else 0) * STRIDE
    end = HEADER + one.commits[-1] * STRIDE
    old = one.before.ljust(end, b"\0")
    content = bytearray(one.log[:end].ljust(len(one.before), b"\0"))
    content[end:] = one.before[end:]
    chance = random.choice([0.05, 0.5, 0.95])
    for sector in range(begin // SECTOR, end // SECTOR + 1):
        if random.random() < chance:
            first, last = max(begin, sector * SECTOR), min(end, (sector + 1) * SECTOR)
            content[first:last] = old[first:last]
    return bytes(content[: random.choice([len(content), random.randint(begin, len(content))])])


@searched
@given(one=a_log.filter(lambda one: bool(one.before)), seed=st.integers(0, 2**32))
def test_a_commit_that_a_power_cut_has_torn_is_never_damage(
    one: Killed, seed: int, tmp_path: Path
) -> None:
    content = torn(one, Random(seed))
    recovered = frames_that_sqlite_reads(one.write(tmp_path / "a.db", content))
    assert committed(content) == recovered
    assert recovered in (one.commits[-1], *(one.commits[-2:-1] or [0]))
    found = damage_in(content)
    assert found is None or not found.is_proven


@searched
@given(one=a_log.filter(lambda one: len(one.commits) > 2), data=st.data())
def test_garbage_before_the_last_two_commits_is_damage(
    one: Killed, data: st.DataObject, tmp_path: Path
) -> None:
    """Also without the index."""
    end = HEADER + one.commits[-3] * STRIDE
    first = data.draw(st.integers(0, end - 1))
    size = data.draw(st.integers(4, min(3000, max(4, end - first))))
    garbage = Random(first).randbytes(size)
    content = one.log[:first] + garbage + one.log[first + size :]
    recovered = frames_that_sqlite_reads(one.write(tmp_path / "a.db", content))
    assert committed(content) == recovered < one.commits[-1]
    found = damage_in(content)
    assert found is not None
    assert found.is_proven


def test_garbage_that_hides_the_last_commit_is_known_by_the_index(tmp_path: Path) -> None:
    for one in made.values():
        place = HEADER + (one.commits[-1] - 1) * STRIDE
        content = one.log[:place] + bytes(STRIDE) + one.log[place + STRIDE :]
        path = one.write(tmp_path / "a.db", content)
        without = damage_in(content)
        assert without is None or not without.is_proven, "it looks like a log that ends before it"
        found = damage_in(content, index_of(str(path)))
        assert found is not None
        assert found.is_proven


def test_a_commit_that_was_killed_while_it_was_written_is_not_refused(tmp_path: Path) -> None:
    """The header of its frame says that it ends a commit; its page is still what was there before.

    An index that has not heard of it is no proof: a program that read the file after the crash may have made it.
    """
    one = made["older frames behind", False]
    place = HEADER + (one.commits[-1] - 1) * STRIDE
    content = one.log[: place + 24] + one.before[place + 24 :]
    assert committed(content) == one.commits[-2]
    found = damage_in(content)
    assert found is not None, "nothing shows that it is no damage"
    assert not found.is_proven
    index = LogIndex(one.commits[-2], 0, one.log[16:24])
    assert damage_in(content, index) == found
    assert damage_in(content, index._replace(salts=b"no salts")) == found
