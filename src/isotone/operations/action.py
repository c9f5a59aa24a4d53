"""What an API action is: a name, whether it writes, and a function from its request to its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from isotone.engine.engine import Engine

Answer = Mapping[str, Any]
encode_answer: Callable[[Any], bytes] = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Action:
    """One action of the API.

    `grouped` actions are small writes: a server collects those that wait and commits them together.
    """

    name: str
    run: Callable[[Engine, Any], Answer]
    grouped: bool = False
