"""Public names of a package, each loaded from its module when somebody asks for it.

``import dsp`` then costs next to nothing, and a gateway loads what it uses.
"""

import sys
from collections.abc import Callable, Mapping

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its name.
        homes: the module of each public name, relative to the package; with a dot before it,
            to the one above.
    """
    namespace = vars(sys.modules[package])

    def __getattr__(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value: object = getattr(import_module(f".{home}", package), name)
        namespace[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*namespace, *homes})

    return __getattr__, __dir__
