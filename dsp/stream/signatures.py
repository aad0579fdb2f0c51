"""Looking at a user's function without calling it."""

import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["body_fault", "is_async", "name_of"]


def body_fault(body: object, arguments: int) -> str:
    """Say what is wrong with a function that gets so many arguments; empty if nothing is."""
    if not callable(body):
        return f"is {body!r:.80}, which cannot be called"
    try:
        signature = inspect.signature(body)
    except (ValueError, TypeError):
        return ""  # some built-in functions do not tell
    try:
        signature.bind(*[None] * arguments)
    except TypeError as error:
        what = "one argument" if arguments == 1 else f"{arguments} arguments"
        return f"{name_of(body)}{signature} is called with {what}: {error}"
    return ""


def is_async(body: Callable[..., Any]) -> bool:
    """Whether a function or an object with ``__call__`` is a coroutine function."""
    return inspect.iscoroutinefunction(body) or inspect.iscoroutinefunction(
        getattr(body, "__call__", None)  # noqa: B004 - its kind is asked for, not whether it is
    )


def name_of(body: object) -> str:
    """Give a name for a function, for messages."""
    return getattr(body, "__name__", type(body).__name__)
