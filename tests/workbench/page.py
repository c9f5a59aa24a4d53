"""What the page sends, without a browser."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Browserless:
    def __init__(self, url: str) -> None:
        self.url = url

    def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body or None, given)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def call(self, name: str, given: Any = None) -> Any:
        """The answer of a call, as the page gets it."""
        body = json.dumps(given or {}).encode()
        answer = self.send(
            "POST", f"/workbench/api/{name}", body, X_Isotone_Workbench="1", Origin=self.url
        )
        assert answer.status == 200
        return answer.json

    def execute(self, action: str, request: Any, **more: Any) -> Any:
        return self.call("execute", {"action": action, "request": request, **more})
