"""Observations of Amazon's service: requests, and what it was seen to answer. Any implementation can be put to them.

    python -m tests.observed http://127.0.0.1:8000       every observation, against any endpoint
    python -m tests.observed dynamodb://eu-west-1        against the service itself, with your credentials
    python -m tests.observed memory: --area batches      against this library, without a server
    python -m tests.observed --list

Whoever has an account at AWS can prove or refute an observation in a minute: tables have names of their own, and are
deleted at the end. The exit code is 1 if an answer differs.

Each `<area>.json` is a list of observations:

    {"name": "a duplicate in a set is shown", "seen": "2026-08 to 2026-10", "regions": "most",
     "tables": ["pair"],
     "given": [["PutItem", {"TableName": "{PREFIX}pair", "Item": {…}}]],
     "request": ["GetItem", {…}],
     "answer": {"error": "ValidationException", "message": "…"}}

- `seen` is the time of the observation: a month, or "2026-08 to 2026-10" for one within these months. `regions`: whether
  "most" regions gave the answer or only "some"; `others` lists what the remaining regions gave, in the form of `answer`.
- `tables` names tables of `fixtures.json`, which all observations of a run share. So an observation that writes into
  one does it under a key of its own, and one that depends on everything in a table creates it in `given`.
- `given` lists requests that must succeed first. A third element has options: `{"save": {"ARN": "Table.TableArn"}}`
  keeps a member of the answer as the placeholder `{ARN}`; `{"until": {…}}` repeats the request until its answer has
  these members; `{"fails": true}` allows it to be refused.
- `request` is an action with its members, or with the raw body as a text. `{"{BASE64}": "…"}` is a body of bytes.
- `headers`, a list of pairs, and `method` and `path` belong to observations of HTTP. A header replaces the usual one of
  its name; null leaves it out. In `answer`, `status` and `headers` (names in small letters) are HTTP's, too.
- `answer` is `{"error": code, "message": text}`, and any other members of the error; or `{"response": {…}}`. An object
  must have the members that are listed, a member that is null must be absent, and a list must be as long as the one listed.
- `needs` names what a run must provide, as `bucket` (an S3 bucket, by `--bucket`).
- `note` explains what the observation shows.

Placeholders in texts: `{PREFIX}` begins the name of every table and always has nine characters, because messages count
columns; `{ANY}`, in an answer, is any text; `{REGION}` and `{ACCOUNT}` are the endpoint's own; a name of `save`.

Objects of one member make what would be long: `{"{REPEAT}": ["x", 400]}` repeats a text or a list, `{"{JOIN}": […]}` joins
texts or lists, `{"{EACH}": [101, {"p": {"S": "{I}"}}]}` is a list with `{I}` counting from 1, `{"{MERGE}": […]}` makes one
object of several, `{"{NEST}": [33, {"L": ["{INNER}"]}, {"S": "x"}]}` puts a value into a pattern again and again.
"""
