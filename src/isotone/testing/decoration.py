"""Mocks as decorators of functions, coroutines and test classes.

Decorated functions keep their signature, so pytest still finds their fixtures. A generator (a pytest fixture)
stays inside the context until it ends. In a `unittest.TestCase` each test, from `setUp` to its last cleanup,
runs in its own context; a `setUpClass` gets another context around the whole class. In any other class, each
test method runs in its own context, with the fixtures of the class, `setup_method` and `teardown_method`; a
`setup_class` gets another context around the whole class. Other public methods and nested classes are decorated
as well: a helper that is called outside of a test continues with the data of the call before it.
"""

from __future__ import annotations

import functools
import inspect
import unittest
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar, cast

Target = TypeVar("Target", bound=Callable[..., Any])


class ReentrantContext(AbstractContextManager[Any], Protocol):
    """A reentrant context manager."""


def decorate(target: Target, context: ReentrantContext, continued: ReentrantContext) -> Target:
    """Wrap a function, or the tests of a class, in a context.

    `continued` is the context for the helper methods of a class.
    """
    decorated: Any = target
    if not inspect.isclass(target):
        decorated = _function(target, context)
    elif issubclass(target, unittest.TestCase):
        _test_case(target, context)
    else:
        _class(target, context, continued)
    return cast(Target, decorated)


def _function(function: Any, context: ReentrantContext) -> Any:
    for belongs, wrap in _KINDS:
        if belongs(function):
            return functools.wraps(function)(wrap(function, context))
    return functools.wraps(function)(_plain(function, context))


def _plain(function: Any, context: ReentrantContext) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        with context:
            return function(*args, **kwargs)

    return call


def _coroutine(function: Any, context: ReentrantContext) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        with context:
            return await function(*args, **kwargs)

    return call


def _generator(function: Any, context: ReentrantContext) -> Any:
    def call(*args: Any, **kwargs: Any) -> Iterator[Any]:
        with context:
            yield from function(*args, **kwargs)

    return call


def _async_generator(function: Any, context: ReentrantContext) -> Any:
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


def _test_case(cls: Any, context: ReentrantContext) -> None:
    cls.run = functools.wraps(cls.run)(_plain(cls.run, context))
    inherited: Any = unittest.TestCase.setUpClass
    if cls.setUpClass.__func__ is not inherited.__func__:
        cls.setUpClass = classmethod(_class_setup(cls.setUpClass.__func__, context))


def _class_setup(setup: Any, context: ReentrantContext) -> Any:
    @functools.wraps(setup)
    def set_up_class(cls: Any) -> None:
        context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        setup(cls)

    return set_up_class


# Classes without a base class of unittest

_HOOKS = ("setup_class", "teardown_class", "setup_method", "teardown_method")


def _class(cls: Any, context: ReentrantContext, continued: ReentrantContext) -> None:
    members = dict(inspect.getmembers_static(cls))
    tests = [name for name in members if name.startswith("test")]
    for name, member in members.items():
        is_own = name in vars(cls) and not name.startswith("_") and name not in _HOOKS
        if inspect.isfunction(member) and name in tests:
            setattr(cls, name, _function(member, context))
        elif inspect.isfunction(member) and is_own:
            setattr(cls, name, _function(member, continued))
        elif inspect.isclass(member) and is_own:
            decorate(member, context, continued)
    if tests or "setup_method" in members:
        _around_each_test(cls, context)
    if "setup_class" in members:
        _around_class(cls, context)


def _around_each_test(cls: Any, context: ReentrantContext) -> None:
    """Enter the context before the fixtures of the class, because they may use it."""
    setup, teardown = getattr(cls, "setup_method", None), getattr(cls, "teardown_method", None)

    def setup_method(self: Any, method: Any) -> None:
        context.__enter__()
        try:
            _call(setup, self, method)
        except BaseException:
            context.__exit__(None, None, None)
            raise

    def teardown_method(self: Any, method: Any) -> None:
        try:
            _call(teardown, self, method)
        finally:
            context.__exit__(None, None, None)

    cls.setup_method = setup_method
    cls.teardown_method = teardown_method


def _around_class(cls: Any, context: ReentrantContext) -> None:
    setup, teardown = _static(cls, "setup_class"), _static(cls, "teardown_class")

    def setup_class(cls: Any) -> None:
        context.__enter__()
        try:
            _call(setup, cls)
        except BaseException:
            context.__exit__(None, None, None)
            raise

    def teardown_class(cls: Any) -> None:
        try:
            _call(teardown, cls)
        finally:
            context.__exit__(None, None, None)

    cls.setup_class = classmethod(setup_class)
    cls.teardown_class = classmethod(teardown_class)


def _static(cls: Any, name: str) -> Any:
    """A hook of a class, as a function that takes the class; None if there is none."""
    hook = inspect.getattr_static(cls, name, None)
    return hook.__func__ if isinstance(hook, classmethod) else hook


def _call(hook: Any, *args: Any) -> None:
    """Call a hook of pytest, if there is one, with as many of the arguments as it takes."""
    if isinstance(hook, staticmethod):
        args = args[1:]
        hook = hook.__func__
    if hook is not None:
        hook(*args[: len(inspect.signature(hook).parameters)])
