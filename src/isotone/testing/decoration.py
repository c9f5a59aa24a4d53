"""Use a context manager as a decorator of functions and test classes.

Decorated functions keep their signature, so pytest still finds their fixtures. A generator (a pytest fixture)
stays inside the context until it ends. In a `unittest.TestCase` each test, from `setUp` to its last cleanup,
runs in its own context; a `setUpClass` gets another context around the whole class. In any other class, each
test method runs in its own context, with `setup_method` and `teardown_method` if they exist.
"""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, cast

Target = TypeVar("Target", bound=Callable[..., Any])


class Context(AbstractContextManager[Any], Protocol):
    """A reentrant context manager."""


def decorate(target: Target, context: Context) -> Target:
    """A function that runs inside the context, or the class with its tests inside it."""
    decorated: Any = target
    if not inspect.isclass(target):
        decorated = _function(target, context)
    elif issubclass(target, unittest.TestCase):
        _test_case(target, context)
    elif hasattr(target, "setup_method"):
        _methods_with_setup(target, context)
    else:
        _test_methods(target, context)
    return cast(Target, decorated)


def _function(function: Any, context: Context) -> Any:
    for belongs, wrap in _KINDS:
        if belongs(function):
            return functools.wraps(function)(wrap(function, context))
    return functools.wraps(function)(_plain(function, context))


def _plain(function: Any, context: Context) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with context:
            return function(*args, **kwargs)

    return call


def _coroutine(function: Any, context: Context) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with context:
            return await function(*args, **kwargs)

    return call


def _generator(function: Any, context: Context) -> Any:
    def call(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with context:
            yield from function(*args, **kwargs)

    return call


def _async_generator(function: Any, context: Context) -> Any:
    async def call(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        with context:
            async for value in function(*args, **kwargs):
                yield value

    return call


_KINDS = (
    (inspect.iscoroutinefunction, _coroutine),
    (inspect.isasyncgenfunction, _async_generator),
    (inspect.isgeneratorfunction, _generator),
)


def _test_case(cls: Any, context: Context) -> None:
    cls.run = functools.wraps(cls.run)(_plain(cls.run, context))
    if cls.setUpClass.__func__ is not unittest.TestCase.setUpClass.__func__:  # type: ignore[attr-defined]
        cls.setUpClass = classmethod(_class_setup(cls.setUpClass.__func__, context))


def _class_setup(setup: Any, context: Context) -> Any:
    @functools.wraps(setup)
    def set_up_class(cls: Any) -> None:
        context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        setup(cls)

    return set_up_class


def _methods_with_setup(cls: Any, context: Context) -> None:
    setup = cls.setup_method
    teardown = getattr(cls, "teardown_method", None)

    def setup_method(self: Any, method: Any) -> None:
        context.__enter__()
        try:
            _call(setup, self, method)
        except BaseException:
            context.__exit__(None, None, None)
            raise

    def teardown_method(self: Any, method: Any) -> None:
        try:
            if teardown is not None:
                _call(teardown, self, method)
        finally:
            context.__exit__(None, None, None)

    cls.setup_method = setup_method
    cls.teardown_method = teardown_method


def _call(hook: Any, self: Any, method: Any) -> None:
    """Call a setup hook of pytest, which may or may not take the test method."""
    takes_method = len(inspect.signature(hook).parameters) > 1
    hook(self, method) if takes_method else hook(self)


def _test_methods(cls: Any, context: Context) -> None:
    for name, member in inspect.getmembers_static(cls, inspect.isfunction):
        if name.startswith("test"):
            setattr(cls, name, _function(member, context))
