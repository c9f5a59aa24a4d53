"""The HTTP server: serves a database with the DynamoDB API, for any AWS SDK with an endpoint URL.

    HTTP
    listener         the address, the options, shutdown, reload; `tls` loads its certificate
    connection       one connection: parses HTTP, answers in order, limits sizes and times
    admission        refuses unknown hosts, and web pages of other origins
    request          decodes requests; `auth` parses their signatures, `compression` decompresses
    response         encodes responses: headers, checksum
    pages            web pages on the server's address (the workbench)

    Users (--credentials, --audit-log)
    users            the credentials file: users, access keys, permissions
    signatures       verifies signatures
    policies         evaluates policies
    audit            the audit log
    gate             runs these before the dispatcher

    Execution
    dispatcher       runs reads at once, and commits the writes of one event-loop turn together
    lanes            runs long requests in other processes; lane_process is such a process

    Monitoring
    monitor          /healthz, /metrics, /hotkeys; hot_keys counts keys
    metrics          counts requests; exposition formats them for Prometheus, telemetry exports them to OpenTelemetry
    service_manager  tells systemd that the server is ready

    Several processes (--workers)
    supervisor       forks and restarts the others: front (HTTP, reads), writer, pages_process (web pages)
    child_process    the main function of a forked process
    process_control  the supervisor's orders; process_channel and process_messages carry requests
    gathering        adds up metrics and hot keys; shared_counts has counters in shared memory

`serve(service)` blocks until a signal; `running_server(service)` serves from its own thread.
"""

from isotone.server.listener import check_options, running_server, serve

__all__ = ["check_options", "running_server", "serve"]
