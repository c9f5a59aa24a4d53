"""A content site: authors see their posts at once, and workers deliver them to the followers.

    python web.py site.db 8000                  the web process: http://127.0.0.1:8000/?me=ann
    isotone worker web:fan_out site.db          a worker; start or kill any number of them

There is no login: `me` is a parameter, so run this only on your own machine. A real site has sessions, and binds
the token of each form to the session, so that other sites cannot post in a user's name. The newest posts come
first, a page has ten, and the link to older posts continues after the last one, whatever is posted meanwhile.
Several web processes accept each other's links if they have the same SITE_SECRET in the environment, 16 characters
or more.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import isotone
from isotone import Store
from isotone.errors import InvalidCursor, UsageError
from isotone.structures import Feed, FeedPage, FeedPost, Worker

PAGE_SIZE = 10
LONGEST_POST = 2_000  # characters
LONGEST_NAME = 40

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>{me}</title>
<style>
body {{ max-width: 40rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif }}
form {{ display: inline-flex; gap: .5rem; margin: .2rem 1rem .2rem 0 }}
ol {{ list-style: none; padding: 0 }}
li {{ padding: .7rem 0; border-top: 1px solid #ccc; overflow-wrap: anywhere }}
li span {{ display: block; white-space: pre-wrap }}
time {{ color: #555 }}
</style>
<h1>{me}</h1>
<form method="post" action="/post">{as_me}{once}<input name="content" placeholder="What is new?"
 aria-label="What is new?" required><button>Post</button></form>
<form method="post" action="/follow">{as_me}<input name="author" placeholder="Whom to follow"
 aria-label="Whom to follow" required><button>Follow</button></form>
<div>{followers} followers. Follows: {following}</div>
<ol>{posts}</ol>
{older}
"""


def feed_of(store: Store) -> Feed:
    """The site's feed; authors with more than a thousand followers are read from their channels."""
    return Feed(store, "content-site", threshold=1_000)


def fan_out(store: Store) -> Worker:
    """The worker that `isotone worker web:fan_out` runs."""
    return feed_of(store).worker("fan-out")


Form = Mapping[str, str]


class BadRequest(Exception):
    """The request cannot be executed; the message gives the reason."""


class Site:
    """Pages and actions, apart from HTTP."""

    def __init__(self, store: Store) -> None:
        self.feed = feed_of(store)
        self.feed.create_table()
        fan_out(store).create_tables(store)
        self.actions: dict[str, Callable[[str, Form], object]] = {
            "/post": self.post,
            "/follow": lambda me, form: self.feed.follow(me, text(form, "author")),
            "/unfollow": lambda me, form: self.feed.unfollow(me, text(form, "author")),
            "/delete": self.delete,
        }

    def post(self, me: str, form: Form) -> None:
        """Post the content of a form: once, however often it is sent."""
        content = text(form, "content", LONGEST_POST)
        token = None
        if "token" in form:  # a changed form that is sent again is a new post
            sent = text(form, "token", 100) + content
            token = hashlib.sha256(sent.encode()).hexdigest()
        self.feed.post(me, content, token=token)

    def delete(self, me: str, form: Form) -> None:
        """Delete one of the user's own posts."""
        post = self.feed.get(text(form, "post", 100))
        if post is None or post.author != me:
            raise BadRequest("that is no post of yours")
        self.feed.delete(post)

    def page(self, me: str, form: Form) -> str:
        """A timeline, with forms for its actions."""
        posts = self.feed.read(me, PAGE_SIZE, form.get("cursor") or None)
        return PAGE.format(
            me=escape(me),
            as_me=hidden(me=me),
            once=hidden(token=secrets.token_urlsafe()),
            followers=self.feed.follower_count(me),
            following="".join(followed(each, me) for each in self.feed.following(me)) or "nobody",
            posts="".join(shown(post, me) for post in posts),
            older=older(posts, me),
        )


def text(form: Form, name: str, longest: int = LONGEST_NAME) -> str:
    """A field of a form; raises `BadRequest` if it is empty or too long."""
    found = form.get(name, "").strip()
    if not 0 < len(found) <= longest:
        raise BadRequest(f"{name} has from 1 to {longest} characters")
    return found


def hidden(**fields: str) -> str:
    return "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in fields.items()
    )


def followed(author: str, me: str) -> str:
    fields = hidden(me=me, author=author)
    return f'<form method="post" action="/unfollow">{escape(author)}{fields}<button>Unfollow</button></form>'


def shown(post: FeedPost, me: str) -> str:
    button = ""
    if post.author == me:
        fields = hidden(me=me, post=post.id)
        button = f'<form method="post" action="/delete">{fields}<button>Delete</button></form>'
    return (
        f"<li><b>{escape(post.author)}</b> <time>{post.at:%Y-%m-%d %H:%M} UTC</time> "
        f"<span>{escape(post.content)}</span>{button}</li>"
    )


def older(posts: FeedPage, me: str) -> str:
    if posts.cursor is None:
        return ""
    query = urlencode({"me": me, "cursor": posts.cursor})
    return f'<a href="/?{escape(query)}">older</a>'


class Handler(BaseHTTPRequestHandler):
    """HTTP: GET shows a timeline, POST executes an action and redirects to it."""

    site: Site
    timeout = 30  # seconds that a thread waits for a slow client

    def do_GET(self) -> None:
        self._answer(lambda me, form: self._send(200, self.site.page(me, form)), query=True)

    def do_POST(self) -> None:
        action = self.site.actions.get(self.path)
        if action is None:
            self.send_error(404)
            return

        def act(me: str, form: Form) -> None:
            action(me, form)
            self._back_to(me)

        self._answer(act, query=False)

    def _answer(self, act: Callable[[str, Form], object], *, query: bool) -> None:
        try:
            form = self._form(query=query)
            act(text(form, "me"), form)
        except (BadRequest, InvalidCursor, UsageError) as error:
            self._send(400, f"<p>{escape(str(error))}</p>")

    def _form(self, *, query: bool) -> Form:
        if query:
            sent = urlsplit(self.path).query
        else:
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > 100_000:
                raise BadRequest("Content-Length is missing, or too long")
            sent = self.rfile.read(int(length)).decode("utf-8", "replace")
        return {name: values[-1] for name, values in parse_qs(sent).items()}

    def _send(self, status: int, page: str) -> None:
        body = page.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _back_to(self, me: str) -> None:
        self.send_response(303)
        self.send_header("Location", "/?" + urlencode({"me": me}))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Do not log successful requests."""


def main(address: str = "site.db", port: str = "8000") -> None:
    secret = os.environ.get("SITE_SECRET") or secrets.token_hex()
    with isotone.connect(address, cursor_secret=secret.encode()) as store:
        handler = type("SiteHandler", (Handler,), {"site": Site(store)})
        with ThreadingHTTPServer(("127.0.0.1", int(port)), handler) as server:
            end = threading.Thread(
                target=server.shutdown
            )  # it waits, so it must not run in a handler
            signal.signal(signal.SIGTERM, lambda *_: end.start())
            print(f"http://127.0.0.1:{server.server_port}/?me=ann", flush=True)
            with suppress(KeyboardInterrupt):
                server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
