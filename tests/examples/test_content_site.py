"""The content site as it is run: a web process and workers on one file, one of them killed."""

from __future__ import annotations

import contextlib
import html
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.examples.printed import FOLDER
from tests.programs import Command, python

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

SITE = FOLDER / "content_site"
SECONDS = 30

Process = Command | subprocess.Popen[str]


@contextlib.contextmanager
def running(*words: object, **environment: str) -> Iterator[Process]:
    process = python(*words, cwd=SITE, env={**os.environ, **environment})
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


class Browser:
    """What a person sees and does."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str) -> str:
        with urllib.request.urlopen(
            urllib.parse.urljoin(self._url, path), timeout=SECONDS
        ) as answer:
            return str(answer.read().decode())

    def act(self, action: str, **form: str) -> str:
        body = urllib.parse.urlencode(form).encode()
        url = urllib.parse.urljoin(self._url, action)
        with urllib.request.urlopen(url, body, timeout=SECONDS) as answer:
            return str(answer.read().decode())

    def timeline(self, me: str) -> list[str]:
        """All posts that one sees, page by page."""
        found, path = [], "/?" + urllib.parse.urlencode({"me": me})
        while True:
            page = self.get(path)
            found += posts_on(page)
            link = re.search('<a href="([^"]*)">older', page)
            if link is None:
                return found
            path = html.unescape(link[1])

    def sees(self, me: str, expected: list[str]) -> None:
        """Wait until the workers have been there."""
        until = time.monotonic() + SECONDS
        while (found := self.timeline(me)) != expected:
            assert time.monotonic() < until, found
            time.sleep(0.05)


def posts_on(page: str) -> list[str]:
    return [html.unescape(each) for each in re.findall("<span>(.*?)</span>", page)]


def worker(file: Path) -> contextlib.AbstractContextManager[Process]:
    return running("-m", "isotone", "worker", "web:fan_out", file, "--lease", "1", "--quiet")


def test_posts_come_to_all_followers_whoever_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "site.db"
    with running("web.py", file, 0) as web, worker(file) as first:
        assert web.stdout is not None
        browser = Browser(web.stdout.readline().strip())
        readers = [f"reader {number}" for number in range(5)]
        for reader in readers:
            browser.act("/follow", me=reader, author="ann")
        posted: list[str] = []
        for number in range(12):
            content = f"<b>{number}</b> & é"
            assert posts_on(browser.act("/post", me="ann", content=content))[0] == content
            posted.insert(0, content)
            if number == 5:
                first.kill()
        assert browser.timeline("ann") == posted  # her own, at once
        with worker(file) as second:
            for reader in readers:
                browser.sees(reader, posted)
            browser.act("/unfollow", me=readers[0], author="ann")
            browser.sees(readers[0], [])
            newest = re.search('name="post" value="([^"]*)"', browser.get("/?me=ann"))
            assert newest is not None
            with pytest.raises(urllib.error.HTTPError, match="400"):
                browser.act("/delete", me="eve", post=newest[1])
            assert posts_on(browser.act("/delete", me="ann", post=newest[1]))[0] == posted[1]
            browser.sees(readers[1], posted[1:])
            for process in (second, web):
                process.send_signal(signal.SIGTERM)
                assert process.wait(SECONDS) == 0


def test_a_form_that_is_sent_twice_posts_once(tmp_path: Path) -> None:
    with running("web.py", tmp_path / "site.db", 0) as web:
        assert web.stdout is not None
        browser = Browser(web.stdout.readline().strip())
        page = browser.get("/?me=ann")
        for _ in range(2):
            (token,) = re.findall('name="token" value="([^"]*)"', page)
            for _ in range(2):
                page = browser.act("/post", me="ann", content="hello", token=token)
        assert posts_on(page) == ["hello", "hello"]


def test_a_form_that_one_goes_back_to_posts_what_is_written_then(tmp_path: Path) -> None:
    with running("web.py", tmp_path / "site.db", 0) as web:
        assert web.stdout is not None
        browser = Browser(web.stdout.readline().strip())
        (token,) = re.findall('name="token" value="([^"]*)"', browser.get("/?me=ann"))
        for content in ("hello", "something else"):
            page = browser.act("/post", me="ann", content=content, token=token)
        assert posts_on(page) == ["something else", "hello"]


def test_web_processes_with_one_secret_go_on_with_each_others_pages(tmp_path: Path) -> None:
    links = []
    for secret in ("", "", "of this test alone", "of this test alone"):
        with running("web.py", tmp_path / "site.db", 0, SITE_SECRET=secret) as web:
            assert web.stdout is not None
            browser = Browser(web.stdout.readline().strip())
            for number in range(11 if not links else 0):
                browser.act("/post", me="ann", content=str(number))
            if len(links) == 1:
                with pytest.raises(urllib.error.HTTPError, match="400"):
                    browser.get(links[0])
            if len(links) == 3:
                assert posts_on(browser.get(links[2])) == ["0"]
            link = re.search('<a href="([^"]*)">older', browser.get("/?me=ann"))
            assert link is not None
            links.append(html.unescape(link[1]))


def test_what_cannot_be_done_is_reported(tmp_path: Path) -> None:
    with running("web.py", tmp_path / "site.db", 0) as web:
        assert web.stdout is not None
        browser = Browser(web.stdout.readline().strip())
        for path in ("/", "/?me=ann&cursor=other"):
            with pytest.raises(urllib.error.HTTPError, match="400"):
                browser.get(path)
        for action, form in (("/post", {"content": " "}), ("/follow", {"author": "ann"})):
            with pytest.raises(urllib.error.HTTPError, match="400"):
                browser.act(action, me="ann", **form)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            browser.act("/other", me="ann")
