"""The database over HTTP. AWS SDKs use it as they use DynamoDB's own endpoint.

    request     decodes requests and encodes responses, without a socket
    auth        parses signatures, and reports what is missing from them
    admission   refuses other hosts, and web pages that nobody allowed
    users       the credentials file: users, their keys, and what they may do
    signatures  verifies signatures of version 4
    policies    decides what a user may do
    audit       a line for each request: who, what, and what came of it
    gate        puts these four before the dispatcher
    tls         the certificate of encrypted connections
    response    builds response bytes: headers, checksum, compression
    dispatcher  runs reads immediately, and the writes of one event-loop turn as a group
    metrics     counts requests; exposition writes them for Prometheus, telemetry passes them to OpenTelemetry
    monitor     answers operators: health, metrics, hot keys
    pages       the seam for web pages, which others answer
    connection  one connection: bytes in, bytes out, in order
    listener    listens on an address, keeps its connections, shuts down gracefully

`serve(service)` blocks until a signal; `running_server(service)` serves from its own thread.
"""

from isotone.server.listener import check_options, running_server, serve

__all__ = ["check_options", "running_server", "serve"]
