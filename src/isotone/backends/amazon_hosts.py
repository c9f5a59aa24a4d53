"""The hosts of Amazon's service by region and partition, including those for FIPS 140 and for IPv6 (dual stack).

A test compares them with the rules of botocore.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from isotone.errors import UsageError


class _Partition(NamedTuple):
    regions: str  # how its regions' names begin
    suffix: str
    dual_suffix: str | None


_COMMERCIAL: Final = _Partition("", "amazonaws.com", "api.aws")
_PARTITIONS: Final = (
    _Partition("cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    _Partition("us-iso-", "c2s.ic.gov", "api.aws.ic.gov"),
    _Partition("us-isob-", "sc2s.sgov.gov", "api.aws.scloud"),
    _Partition("us-isof-", "csp.hci.ic.gov", None),
    _Partition("eu-isoe-", "cloud.adc-e.uk", None),
    _Partition("eusc-", "amazonaws.eu", None),
    _COMMERCIAL,
)
_SUFFIXES: Final = "|".join(
    re.escape(suffix)
    for each in _PARTITIONS
    for suffix in sorted({each.suffix, each.dual_suffix or each.suffix}, key=len, reverse=True)
)
AMAZON: Final = re.compile(rf"(?:dynamodb|[\w-]+\.ddb)[\w-]*\.([a-z0-9-]+)\.(?:{_SUFFIXES})\Z")
"""The end of a host of the service; its group is the region."""
_DAX: Final = re.compile(r"\.dax-clusters\.[a-z0-9-]+\.")


def amazon_host(region: str, *, fips: bool = False, dualstack: bool = False) -> str:
    """The host of a region; raises `UsageError` if the region has no such host.

    >>> amazon_host("us-east-1", fips=True, dualstack=True)
    'dynamodb-fips.us-east-1.api.aws'
    """
    partition = next(each for each in _PARTITIONS if region.startswith(each.regions))
    if dualstack and partition.dual_suffix is None:
        raise UsageError(f"region {region} has no dual-stack endpoint; leave out dualstack")
    is_fips_anyway = region.startswith("us-gov-") and not dualstack
    service = "dynamodb-fips" if fips and not is_fips_anyway else "dynamodb"
    return f"{service}.{region}.{partition.dual_suffix if dualstack else partition.suffix}"


def streams_host(host: str) -> str:
    """The host of DynamoDB Streams that belongs to a host of DynamoDB.

    >>> streams_host("dynamodb.eu-west-1.amazonaws.com")
    'streams.dynamodb.eu-west-1.amazonaws.com'
    """
    service, _, rest = host.partition(".")
    if not service.startswith("dynamodb"):  # the endpoint of an account
        service, rest = "dynamodb", rest.removeprefix("ddb.")
    dash = rest.endswith((".api.aws", ".api.amazonwebservices.com.cn"))
    return f"streams{'-' if dash else '.'}{service}.{rest}"


def is_on(name: str, parameters: Mapping[str, str]) -> bool:
    """Whether the address or the environment asks for `fips` or `dualstack`."""
    given = parameters.get(name)
    if given is None:
        given = os.environ.get(f"AWS_USE_{name.upper()}_ENDPOINT") or "false"
    if given.lower() not in ("true", "false"):
        raise UsageError(f"{name}={given!r} is not valid; write true or false")
    return given.lower() == "true"


def refuse_dax(scheme: str, host: str | None) -> None:
    """Raise `UsageError` for a cluster of DynamoDB Accelerator."""
    if scheme in ("dax", "daxs") or (host is not None and _DAX.search(host)):
        raise UsageError(
            "DAX (DynamoDB Accelerator) has a protocol of its own, which Isotone does not speak; connect to "
            "DynamoDB itself: dynamodb://region"
        )
