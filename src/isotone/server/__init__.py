"""The database over HTTP: what any AWS SDK takes for DynamoDB's own endpoint.

    exchange    headers and bodies to operations and back, without a socket
    auth        what a signature says, and what is missing from it
    response    response bytes: headers, checksum, compression
    dispatcher  reads at once, the writes of one event-loop turn together
    http        one connection: bytes in, bytes out, in order
    listener    an address, its connections, a clean stop

`serve(service)` blocks until a signal; `running_server(service)` serves from a thread of its own.
"""

from isotone.server.listener import running_server, serve

__all__ = ["running_server", "serve"]
