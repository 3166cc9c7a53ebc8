"""Several observers as one."""

from collections.abc import Callable, Sequence
from typing import Any

from coordinator_core.service.observer import Observer


class Watchers(Observer):
    """Tells each of `observers` what it wants to hear: a method that an observer does not have of its own is not called."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        for name, heard in vars(Observer).items():
            if name.startswith("_") or not callable(heard):
                continue
            interested = [getattr(each, name) for each in observers if getattr(type(each), name) is not heard]
            setattr(self, name, interested[0] if len(interested) == 1 else _telling(interested))


def _telling(interested: Sequence[Callable[..., None]]) -> Callable[..., None]:
    def tell(*what: Any) -> None:
        for hear in interested:
            hear(*what)

    return tell
