"""Copy as: writes a request as code that runs: Isotone, boto3, JavaScript (SDK v3), the AWS CLI, `isotone call`.

A Query or Scan without a limit is shown as a program that reads all of its pages. A request of an access pattern is also
shown as a program of the model, with all that it imports.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from base64 import b64decode
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl
from uuid import UUID

from isotone.authority import host_in
from isotone.backends.amazon_hosts import AMAZON, is_on
from isotone.backends.endpoint import local_region
from isotone.backends.engines import without_engine
from isotone.errors import UsageError

_ACTION = re.compile("[A-Za-z]+")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
# The options with which JavaScript prints all of a value.
_WHOLE: Final = "{ depth: null, maxArrayLength: null, maxStringLength: null }"


_WIDTH: Final = 88  # characters of a line of Python, as formatters have it
DEFAULT_REGION: Final = "us-east-1"
"""The region of a server that was given none."""


def snippets(
    action: str, request: Mapping[str, Any], target: str, region: str = DEFAULT_REGION
) -> list[dict[str, str]]:
    """The request in each language, with the code that connects to a region of the target."""
    if not _ACTION.fullmatch(action):
        raise UsageError(f"{action!r} is not the name of an action")
    texts = [("Isotone", "python", isotone_program(action, request, target, region))]
    service = _service_of(target, region)
    if service is not None:
        texts += [
            ("boto3", "python", _boto3(action, request, service)),
            ("JavaScript", "js", _javascript(action, request, service)),
            ("AWS CLI", "sh", _aws_cli(action, request, service)),
        ]
    texts += [("isotone call", "sh", _command(action, request, target, region))]
    return [{"name": name, "language": language, "text": text} for name, language, text in texts]


class _Service(NamedTuple):
    """Where AWS's SDKs find the tables. A file is served first; Python has it without a server."""

    region: str
    endpoint: str = ""  # none for Amazon's service
    file: str = ""
    any_keys: bool = False  # for a server that does not check them
    profile: str = ""
    fips: bool = False
    dualstack: bool = False

    def first(self, comment: str) -> str:
        """What has to be done before, as a comment."""
        return f"{comment} first: isotone serve {shlex.quote(self.file)}\n" if self.file else ""


def _service_of(target: str, region: str) -> _Service | None:
    """The service at an address; None if no SDK can reach it."""
    address, _ = without_engine(target)
    scheme, separator, place = address.partition("://")
    place, _, query = place.partition("?")
    place = place.rstrip("/")
    if not separator:
        return _Service(region, "http://127.0.0.1:8000", file=target, any_keys=True)
    if scheme == "dynamodb":
        parameters = dict(parse_qsl(query))
        return _Service(
            place or region,
            profile=parameters.get("profile", ""),
            fips=is_on("fips", parameters),
            dualstack=is_on("dualstack", parameters),
        )
    if scheme.startswith("alternator"):  # any node of the cluster answers
        first, _, rest = place.partition(",")
        port = "" if ":" in first or ":" not in rest else f":{rest.rpartition(':')[2]}"
        protocol = "https" if scheme.endswith("+https") else "http"
        return _Service(region, f"{protocol}://{first}{port}", any_keys=True)
    if scheme not in ("http", "https"):
        return None
    amazon = AMAZON.search(host_in(place) or "")
    return _Service(amazon[1] if amazon else region, address, any_keys=amazon is None)


# Python


def _python(value: Any, indent: int, before: int) -> str:
    """A value as a formatter writes it, in lines that continue at `indent`; `before` it in its line are so many characters."""
    flat = _flat(value)
    if not isinstance(value, Mapping | list) or not value or before + len(flat) + 1 <= _WIDTH:
        return flat
    pad = " " * (indent + 4)
    if isinstance(value, Mapping):
        names = [(f"{pad}{_flat(name)}: ", inner) for name, inner in value.items()]
        begin, end = "{", "}"
    else:
        names = [(pad, inner) for inner in value]
        begin, end = "[", "]"
    lines = [f"{name}{_python(inner, indent + 4, len(name))},\n" for name, inner in names]
    return f"{begin}\n{''.join(lines)}{' ' * indent}{end}"


def _flat(value: Any) -> str:
    """A value in one line, with double quotes."""
    if isinstance(value, Mapping):
        members = (f"{_flat(name)}: {_flat(inner)}" for name, inner in value.items())
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_flat, value))}]"
    text = repr(value)
    if isinstance(value, str | bytes) and text.endswith("'"):
        prefix, _, inner = text[:-1].partition("'")
        if inner.count('"') <= inner.count("'"):  # no more escapes than with single quotes
            inner = inner.replace("\\'", "'").replace('"', '\\"')
            return f'{prefix}"{inner}"'
    return text


def _call(begin: str, arguments: Sequence[str]) -> str:
    """A call with its arguments: in one line if they fit."""
    flat = f"{begin}({', '.join(arguments)})"
    if len(flat) <= _WIDTH and "\n" not in flat:
        return flat
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"{begin}(\n{lines})"


def _assigned(name: str, value: Any) -> str:
    """The statement that gives a value a name."""
    return f"{name} = {_python(value, 0, len(name) + 3)}\n"


def connect_call(target: str, region: str) -> str:
    """The call that connects to a region of a target."""
    named = [f"region={_flat(region)}"] if _needs_region(target, region) else []
    return _call("isotone.connect", [_flat(target), *named])


def _needs_region(target: str, region: str) -> bool:
    """Whether Isotone may ask a server in another region, by its default or by the environment, which has other tables."""
    is_server = target.startswith(("http://", "https://"))
    return is_server and {region, local_region()} != {DEFAULT_REGION}


def _reads_all(action: str, request: Mapping[str, Any]) -> bool:
    """Whether a request stands for all of its pages. One with a limit or a start is for a page, and a count has no items."""
    is_page = "Limit" in request or "ExclusiveStartKey" in request
    return action in ("Query", "Scan") and not is_page and request.get("Select") != "COUNT"


def isotone_program(
    action: str, request: Mapping[str, Any], target: str, region: str = DEFAULT_REGION
) -> str:
    """A program that sends the request through Isotone."""
    head = (
        f"import isotone\n\nstore = {connect_call(target, region)}\n{_assigned('request', request)}"
    )
    if not _reads_all(action, request):
        return f'{head}response = store.backend.execute("{action}", request)\nprint(response)\n'
    return (
        f"{head}while True:\n"
        f'    response = store.backend.execute("{action}", request)\n'
        '    for item in response["Items"]:\n'
        "        print(item)\n"
        '    if "LastEvaluatedKey" not in response:\n'
        "        break\n"
        '    request["ExclusiveStartKey"] = response["LastEvaluatedKey"]\n'
    )


def _boto3(action: str, request: Mapping[str, Any], service: _Service) -> str:
    method = _CAPITAL.sub("_", action).lower()
    arguments = [
        f"{name}={_python(value, 4, len(name) + 5)}" for name, value in _native(request).items()
    ]
    if not _reads_all(action, request):
        sent = _call(f"response = client.{method}", arguments)
        return f"{_boto3_client(service)}{sent}\nprint(response)\n"
    pages = _call(f'pages = client.get_paginator("{method}").paginate', arguments)
    return (
        f"{_boto3_client(service)}{pages}\n"
        "for page in pages:\n"
        '    for item in page["Items"]:\n'
        "        print(item)\n"
    )


def _boto3_client(service: _Service) -> str:
    """The statements that make a client."""
    if service.file:
        opened = f"client = isotone.open({_flat(service.file)}).client()"
        return f"import isotone\n\n{opened}  # as boto3's client\n"
    arguments = ['"dynamodb"']
    if service.endpoint:
        arguments += [f"endpoint_url={_flat(service.endpoint)}"]
    if service.region:
        arguments += [f"region_name={_flat(service.region)}"]
    if service.any_keys:
        arguments += ['aws_access_key_id="any"', 'aws_secret_access_key="any"']
    hosts = [
        f"{option}=True"
        for option, is_wanted in (
            ("use_fips_endpoint", service.fips),
            ("use_dualstack_endpoint", service.dualstack),
        )
        if is_wanted
    ]
    head = "import boto3\n"
    if hosts:
        head += "from botocore.config import Config\n"
        arguments += [f"config=Config({', '.join(hosts)})"]
    made = "boto3.client"
    if service.profile:
        made = "session.client"
        head += f"\nsession = boto3.Session(profile_name={_flat(service.profile)})"
    return f"{head}\n{_call(f'client = {made}', arguments)}\n"


def _native(value: Any) -> Any:
    """The request with bytes instead of Base64, as boto3 takes it."""
    if isinstance(value, Mapping):
        if len(value) == 1:
            ((name, inner),) = value.items()
            if name == "B" and isinstance(inner, str):
                return {"B": b64decode(inner)}
            if name == "BS" and isinstance(inner, list):
                return {"BS": [b64decode(each) for each in inner]}
        return {name: _native(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_native(inner) for inner in value]
    return value


def _javascript(action: str, request: Mapping[str, Any], service: _Service) -> str:
    options = _js_options(service)
    where = "".join(f"\n  {option}" for option in options) + "\n" * bool(options)
    reads_all = _reads_all(action, request)
    imported = f"paginate{action}" if reads_all else f"{action}Command"
    head = service.first("//") + (
        f'import {{ DynamoDBClient, {imported} }} from "@aws-sdk/client-dynamodb"; // in a file that ends in .mjs\n\n'
        f"const client = new DynamoDBClient({{{where}}});\n"
    )
    if not reads_all:
        return (
            f"{head}const response = await client.send(new {imported}({_js(request)}));\n"
            f"console.dir(response, {_WHOLE});\n"
        )
    return (
        f"{head}for await (const page of {imported}({{ client }}, {_js(request)})) {{\n"
        f"  for (const item of page.Items) console.dir(item, {_WHOLE});\n"
        "}\n"
    )


def _js_options(service: _Service) -> list[str]:
    """The options of the client, a line for each."""
    options = [
        f"{name}: {json.dumps(value)},"
        for name, value in (("endpoint", service.endpoint), ("region", service.region))
        if value
    ]
    if service.any_keys:
        options.append('credentials: { accessKeyId: "any", secretAccessKey: "any" },')
    if service.profile:
        options.append(f"profile: {json.dumps(service.profile)}, // since version 3.714 of the SDK")
    options += ["useFipsEndpoint: true,"] if service.fips else []
    options += ["useDualstackEndpoint: true,"] if service.dualstack else []
    return options


def _js_name(name: str) -> str:
    """The name of a member; `"__proto__"` alone would name the object's prototype."""
    return '["__proto__"]' if name == "__proto__" else json.dumps(name)


def _js(value: Any, indent: int = 0) -> str:
    """JSON with bytes instead of Base64, as the SDK takes it."""
    pad = "  " * (indent + 1)
    if isinstance(value, Mapping):
        if len(value) == 1:
            ((name, inner),) = value.items()
            if name == "B" and isinstance(inner, str):
                return f'{{ B: Buffer.from({json.dumps(inner)}, "base64") }}'
            if name == "BS" and isinstance(inner, list):
                each = ", ".join(f'Buffer.from({json.dumps(text)}, "base64")' for text in inner)
                return f"{{ BS: [{each}] }}"
        lines = [
            f"{pad}{_js_name(name)}: {_js(inner, indent + 1)}" for name, inner in value.items()
        ]
        return "{\n" + ",\n".join(lines) + "\n" + "  " * indent + "}" if lines else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_js(inner, indent) for inner in value)}]"
    return json.dumps(value, ensure_ascii=False)


def _aws_cli(action: str, request: Mapping[str, Any], service: _Service) -> str:
    """The command. Without `--no-paginate` the CLI reads all pages.

    Binary values are in Base64, as version 2 of the CLI reads them.
    """
    command = _CAPITAL.sub("-", action).lower()
    where = f" --region {shlex.quote(service.region)}" if service.region else ""
    if service.endpoint:
        where = f" --endpoint-url {shlex.quote(service.endpoint)}{where}"
    if service.profile:
        where += f" --profile {shlex.quote(service.profile)}"
    variables = "AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any " if service.any_keys else ""
    variables += "AWS_USE_FIPS_ENDPOINT=true " if service.fips else ""
    variables += "AWS_USE_DUALSTACK_ENDPOINT=true " if service.dualstack else ""
    text = shlex.quote(json.dumps(request, ensure_ascii=False))
    pages = "" if _reads_all(action, request) else " --no-paginate"
    return f"{service.first('#')}{variables}aws dynamodb {command}{where}{pages} \\\n  --cli-input-json {text}\n"


def _command(action: str, request: Mapping[str, Any], target: str, region: str) -> str:
    text = shlex.quote(json.dumps(request, ensure_ascii=False))
    pages = " --all" if _reads_all(action, request) else ""
    where = f"AWS_REGION={shlex.quote(region)} " if _needs_region(target, region) else ""
    return f"{where}isotone call {shlex.quote(target)} {action} {text}{pages}\n"


# Access patterns of a model


_WIDEST: Final = 56  # characters of a query that stands in the line of the loop
_IDS: Final = "isotone.codec.ids"


class PatternCode:
    """The program of an access pattern: its conditions are added one by one, and their imports with them."""

    def __init__(self, entity: type, source: str | None) -> None:
        self._source = source
        self._entity = entity.__name__
        self._imports: dict[str, set[str]] = {}
        self._conditions: list[str] = []
        self._filters: list[str] = []
        self._import(entity)
        module = sys.modules.get(entity.__module__)
        self.is_importable: bool = (
            source is not None or getattr(module, entity.__name__, None) is entity
        )
        """Whether a program can import the entity: not those that a structure binds to its table."""

    def compare(self, field: str, operator: str, values: Sequence[Any]) -> None:
        """Add a condition on a field of the key."""
        self._conditions.append(self._condition(field, operator, values))

    def filter(self, field: str, operator: str, values: Sequence[Any]) -> None:
        """Add a condition that the database tests after it has read."""
        self._filters.append(self._condition(field, operator, values))

    def _condition(self, field: str, operator: str, values: Sequence[Any]) -> str:
        name = f"{self._entity}.{field}"
        shown = ", ".join(map(self._literal, values))
        return f"{name}.{operator}({shown})" if operator.islower() else f"{name} {operator} {shown}"

    def program(self, pattern: str, target: str, region: str, *, descending: bool) -> str:
        """The program that prints what the pattern finds."""
        start, end = f"{self._entity}.{pattern}.where(", ").descending()" if descending else ")"
        groups = [self._conditions, *([self._filters] if self._filters else [])]
        query = f"{start}{').filter('.join(map(', '.join, groups))}{end}"
        lines = [f"with {connect_call(target, region)} as store:"]
        if len(query) > _WIDEST:
            lines.append(f"    query = {start}")
            for place, group in enumerate(groups):
                lines += ["    ).filter("] * (place > 0)
                lines += [f"        {each}," for each in group]
            lines.append(f"    {end}")
            query = "query"
        lines += [f"    for item in store.iterate({query}):", "        print(item)"]
        return "\n".join([self._head(), *lines, ""])

    def _head(self) -> str:
        """The imports, or the inferred model with what it does not import itself."""
        standard = sorted(name for name in self._imports if name in sys.stdlib_module_names)
        lines = [
            f"from {name} import {', '.join(sorted(self._imports[name]))}" for name in standard
        ]
        if self._source is not None:
            first = "from __future__ import annotations\n"
            before, future, model = self._source.rpartition(first)
            return "\n".join([f"{before}{future}", *lines, "import isotone", model])
        others = sorted(self._imports.keys() - {*standard})
        plain = [name for name in others if all(map(str.isidentifier, name.split(".")))]
        head = [*lines, *([""] if lines else []), "import isotone"]
        head += [f"from {name} import {', '.join(sorted(self._imports[name]))}" for name in plain]
        for name in others:
            if name not in plain:  # a file such as 10_shop.py
                head.insert(0, "import importlib")
                head.append(f"\n_module = importlib.import_module({_flat(name)})")
                head += [f"{each} = _module.{each}" for each in sorted(self._imports[name])]
        return "\n".join(head) + "\n"

    def _import(self, kind: type) -> str:
        """Import a class, and return its name."""
        name, _, _ = kind.__qualname__.partition(".")
        module = _module_of(kind)
        is_inferred = self._source is not None and module.startswith("isotone.inference")
        if not is_inferred:
            self._imports.setdefault(module, set()).add(name)
        return kind.__qualname__

    def _literal(self, value: Any) -> str:
        """A value as source text."""
        if isinstance(value, Enum):
            return f"{self._import(type(value))}.{value.name}"
        if isinstance(value, datetime):
            self._imports.setdefault("datetime", set()).add("UTC")
            self._import(datetime)
            moment = repr(value.astimezone(UTC).replace(tzinfo=None, fold=0))
            return f"{moment.removeprefix('datetime.')[:-1]}, tzinfo=UTC)"
        if type(value).__module__ == _IDS:
            return f"isotone.{type(value).__name__}({_flat(str(value))})"
        if isinstance(value, Decimal | UUID):
            return f"{self._import(type(value))}({_flat(str(value))})"
        if isinstance(value, date | time):
            self._import(type(value))
            return repr(value).removeprefix("datetime.")
        if isinstance(value, timedelta):
            return f"{self._import(timedelta)}(seconds={value.total_seconds()!r})"
        return _flat(value)


def _module_of(kind: type) -> str:
    """The module from which a program imports a class; a script's name instead of `__main__`."""
    if kind.__module__ != "__main__":
        return kind.__module__
    file = getattr(sys.modules["__main__"], "__file__", None)
    return Path(file).stem if file else "__main__"
