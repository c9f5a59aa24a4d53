"""A client shaped like boto3's low-level DynamoDB client, without the cost of botocore.

It has the same methods, keyword arguments, response dicts, exceptions, paginators and waiters. Requests
that boto3 refuses before sending them are refused here with the same messages, except that any bytes-like object is
binary. The client does no I/O: it
wraps a function that takes an action's name and the JSON of a request and returns the JSON of the
response. A call costs about two microseconds more than that function.

`methods` has one method per action. `parameters` turns its keyword arguments into the bytes of a request,
`responses` turns the response into a dict, `exceptions` turns an error into botocore's.
"""

from isotone.client.methods import Client, StreamsClient
from isotone.client.pagination import Paginator
from isotone.client.waiters import Waiter

__all__ = ["Client", "Paginator", "StreamsClient", "Waiter"]
