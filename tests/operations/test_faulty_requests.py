"""Every kind of wrong value, in every member of every action, alone and in pairs: refused, never a failure of ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.oracle.endpoints import Answer, Isotone, Request
from tests.oracle.faults import BASES, STREAMS, Prepared, double_faults, single_faults
from tests.service_model import Model, model

REFUSALS = {400, 200}
Faults = Callable[[Model, str], Iterator[tuple[str, dict[str, Any]]]]


class Watched(Isotone):
    """Our side; it remembers the requests that it failed to answer."""

    def __init__(self) -> None:
        super().__init__()
        self.failed: list[str] = []

    def ask(self, operation: str, request: Request) -> Answer:
        answer = super().ask(operation, request)
        if answer[0] not in REFUSALS:
            self.failed.append(f"{operation} {request!r}: {json.dumps(answer)}"[:1000])
        return answer


@pytest.mark.parametrize("make", [single_faults, double_faults], ids=["one", "two"])
@pytest.mark.parametrize("action", BASES)
def test_a_wrong_value_is_refused(action: str, make: Faults) -> None:
    service = model("dynamodbstreams" if action in STREAMS else "dynamodb")
    with Watched() as side:
        prepared = Prepared(side)
        for _, request in make(service, action):
            prepared.ask(action, request)
        assert side.failed == []
