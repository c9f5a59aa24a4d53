"""The workbench: a web application that edits what any engine stores; its page is TypeScript, in /workbench.

    site          paths of the browser → answers: the page, its files, and the calls of its API
    source        the engine that is shown
    calls         the calls of the API, by name
    access        which actions write; safe mode
    recognition   which entity an item is, and the components of its keys
    patterns      the entities and access patterns of a model, described for forms
    editing       items edited through their entities
        entity_forms  an entity's fields and an item's values for a form; what typed values give
        typed_inputs  an input for each type of a model
    raw_edits     what an edit without the model breaks
    tables        the tables of an engine, with their indexes, counts and sizes
    stream_tail   the changes of a table as they happen
    structures    what tables hold as structures: ranks, boards, queues, feeds
    workers       a worker: its shards, how far behind they are, its dead letters
    server_pages  the metrics and hot keys of an engine elsewhere
    jobs          work in a thread that can be watched and stopped
    transfers     import and export through the browser
    threads       calls that wait, each in a thread of its own
    snapshots     snapshots of tables, comparisons with them, and restoring
        snapshot_folder   where they are
        snapshot_taking   how they are taken
        comparison        what differs, in order, in a file of its own
        restoring         writes, each on the condition that nobody else has written
    saved_queries the saved queries of a team, in a file
    designs       diagrams, sheets and collections of models
    simulations   what a workload does at its real size
    code          a request as code: Isotone, boto3, JavaScript, command line

The page is written in TypeScript, in `/workbench` of the repository; `static` has what is built of it.
"""

from isotone.workbench.site import Workbench

__all__ = ["Workbench"]
