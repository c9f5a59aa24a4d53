"""A server with the DynamoDB API over HTTP: Amazon's, Isotone's own, or any other.

Requests are signed and sent over a pool of keep-alive connections. A connection that the server has closed is
detected before it is used. A failed request is retried according to `Retries`. Safe to use from several
threads: each request takes one connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from isotone.backends.connections import Pool
from isotone.backends.endpoint import Endpoint, Timeouts
from isotone.backends.http_messages import HttpCodec, HttpReply, encode_request
from isotone.backends.interface import Native, Request, Response
from isotone.backends.request_retries import Retries
from isotone.backends.signing import STREAM_OPERATIONS
from isotone.errors import ApiError, ConnectionFailed


class Remote(Native):
    """The `Backend` of an endpoint. Nothing is connected before the first request."""

    __slots__ = ("_codec", "_pool", "_retries", "_sleep", "_streams", "endpoint")
    takes_json = True

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        retries: Retries | None = None,
        timeouts: Timeouts | None = None,
        connections: int = 10,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.endpoint: Endpoint = endpoint
        self._codec: HttpCodec = endpoint.codec()
        self._pool = Pool(endpoint, timeouts or Timeouts(), connections)
        self._retries = retries or Retries()
        self._sleep = sleep
        apart = endpoint.of_streams
        self._streams: Remote | None = None
        if apart is not endpoint:
            self._streams = Remote(
                apart, retries=retries, timeouts=timeouts, connections=connections, sleep=sleep
            )

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Answer one action; raises `ApiError`, or `ConnectionFailed` if there was no answer."""
        if self._streams is not None and operation in STREAM_OPERATIONS:
            return self._streams.execute(operation, request, deadline)
        body = encode_request(operation, request)
        attempts = self._retries.begin(deadline)
        while True:
            try:
                return self.attempt(operation, body)
            except (ApiError, ConnectionFailed) as error:
                delay = attempts.delay(error)
                if delay is None:
                    raise
            self._sleep(delay)

    def get(self, path: str, within: float | None = None) -> HttpReply:
        """The answer to a GET, which is neither signed nor retried; raises `ConnectionFailed`.

        `within` are the seconds until the answer must be whole: what is no server of ours may send without end.
        """
        return self._exchange(self._codec.get(path), within)

    def attempt(self, operation: str, body: bytes) -> Response:
        """Send a request, encoded by `encode_request`, once; raises as `execute` does, without retries."""
        reply = self._exchange(self._codec.message(operation, body))
        return self._codec.answer(reply)

    def _exchange(self, message: bytes, within: float | None = None) -> HttpReply:
        connection = self._pool.take()
        try:
            reply = connection.exchange(message, within)
        except BaseException:
            connection.close()
            raise
        self._pool.release(connection, reply)
        return reply

    def close(self) -> None:
        """Close the idle connections. A later request opens new ones."""
        self._pool.close()
        if self._streams is not None:
            self._streams.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
