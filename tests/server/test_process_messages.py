"""Messages between processes arrive as they were sent, in whatever pieces."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import (
    ConditionalCheckFailedException,
    ConnectionFailed,
    InternalServerError,
    IsotoneError,
    StorageBusy,
    TransactionCanceledException,
)
from isotone.server.process_messages import (
    Answer,
    Failed,
    FrameReader,
    Message,
    Request,
    failed,
    frame,
)

NUMBERS = st.integers(0, 2**40)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Request, NUMBERS, st.text(), st.binary(max_size=300), st.text(max_size=20)),
    st.builds(Answer, NUMBERS, st.binary(max_size=300)),
    st.builds(Failed, NUMBERS, st.text(), st.text(), st.binary()),
)


@given(frames=st.lists(st.lists(MESSAGES, max_size=5), max_size=5), size=st.integers(1, 700))
def test_frames_arrive_whole_in_pieces_of_any_length(
    frames: list[list[Message]], size: int
) -> None:
    sent = b"".join(map(frame, frames))
    reader = FrameReader()
    arrived = [
        message
        for start in range(0, len(sent), size)
        for message in reader.messages(bytes(sent[start : start + size]))
    ]
    assert arrived == [message for messages in frames for message in messages]


@pytest.mark.parametrize(
    "error",
    [
        ConditionalCheckFailedException(
            "The conditional request failed", Item=msgspec.Raw(b'{"pk":{"S":"a"}}')
        ),
        TransactionCanceledException(
            "cancelled", CancellationReasons=[{"Code": "None"}, {"Code": "ValidationError"}]
        ),
        InternalServerError("the disk is full"),
    ],
)
def test_an_error_of_the_service_has_the_same_body_in_another_process(error: IsotoneError) -> None:
    [message] = FrameReader().messages(bytes(frame([failed(7, error)])))
    assert isinstance(message, Failed)
    found = message.error()
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert msgspec.json.encode(found.body()) == msgspec.json.encode(error.body())  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [StorageBusy("another process"), ConnectionFailed("lost")])
def test_other_errors_have_their_class_and_their_text(error: IsotoneError) -> None:
    found = failed(1, error).error()
    assert type(found) is type(error)
    assert str(found) == str(error)


def test_an_error_of_an_unknown_class_is_the_servers_fault() -> None:
    assert isinstance(Failed(1, "NoSuchError", "what").error(), InternalServerError)
