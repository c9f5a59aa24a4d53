"""Several processes write to one file at once: nothing is lost and nothing is done twice."""

from __future__ import annotations

from pathlib import Path

from tests.programs import python
from tests.storage import integrity

from isotone.storage.sqlite import SQLiteStore

STORM = Path(__file__).with_name("storm.py")


def test_a_counter_counts_every_increment(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SQLiteStore(path)
    with store.transaction():
        store.create_tree("counter")
    writers = [python(STORM, "counter", path, 400, stdout=None) for _ in range(2)]
    # The third one reads meanwhile: the count never goes back, and a snapshot stands still.
    seen = 0
    while any(writer.poll() is None for writer in writers):
        with store.snapshot():
            count = int(store.get("counter", b"") or b"0")
            assert int(store.get("counter", b"") or b"0") == count
        assert count >= seen
        seen = count
    assert [writer.returncode for writer in writers] == [0, 0]
    assert store.changed_elsewhere()
    assert store.get("counter", b"") == b"800"
    assert integrity.check(store) == []
    store.close()


def test_many_processes_make_the_same_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    source = (
        "import sys; from isotone.storage.sqlite import SQLiteStore as S; s = S(sys.argv[1]);\n"
        "with s.transaction(): s.create_tree('t' + sys.argv[2])"
    )
    makers = [python("-c", source, path, number, stdout=None) for number in range(6)]
    assert [maker.wait() for maker in makers] == [0] * 6
    store = SQLiteStore(path)
    assert store.trees() == [f"t{number}" for number in range(6)]
    assert integrity.check(store) == []
    store.close()
