"""Every script of the corpus gives the same answers here and in Amazon's DynamoDB Local."""

from __future__ import annotations

import pytest
from tests.oracle.compare import play
from tests.oracle.corpus import SCRIPTS
from tests.oracle.endpoints import Isotone
from tests.oracle.local import Endpoint
from tests.oracle.scripts import Script


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_script(script: Script, theirs: Endpoint, ours: Isotone) -> None:
    mismatches = play(script, theirs, ours)
    assert not mismatches, "\n" + "\n".join(map(str, mismatches))
