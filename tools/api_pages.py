"""The reference pages of the public modules, written from their docstrings."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType, ModuleType

from google.protobuf.message import Message

__all__ = ["MODULES", "api_pages"]

# In the order in which somebody gets to know them.
MODULES = [
    "dsp",
    "dsp.errors",
    "dsp.config",
    "dsp.core.types",
    "dsp.core.machine",
    "dsp.core.driver",
    "dsp.core.envelope",
    "dsp.core.randomness",
    "dsp.transport.base",
    "dsp.transport.session",
    "dsp.transport.health",
    "dsp.transport.registry",
    "dsp.transport.adapter",
    "dsp.scaling.machine",
    "dsp.scaling.events",
    "dsp.scaling.place",
    "dsp.scaling.status",
    "dsp.scaling.wire",
    "dsp.scaling.deciders",
    "dsp.scaling.service",
    "dsp.mutex.service",
    "dsp.mutex.fence",
    "dsp.mutex.events",
    "dsp.mutex.seat",
    "dsp.mutex.status",
    "dsp.mutex.member",
    "dsp.mutex.chain",
    "dsp.mutex.edges",
    "dsp.mutex.two_fgme",
    "dsp.mutex.ra1",
    "dsp.mutex.ra2",
    "dsp.mutex.arbiter_token",
    "dsp.mutex.wire",
    "dsp.transport.kafka.endpoint",
    "dsp.stream.sources",
    "dsp.stream.sinks",
    "dsp.stream.bodies",
    "dsp.spark",
    "dsp.testing",
    "dsp.testing.contract",
    "dsp.testing.kafka",
    "dsp.testing.spark",
    "dsp.testing.explorer",
]
_NOTE = "Written from the docstrings by `make docs`; a test keeps it in step.\n"


def api_pages() -> dict[str, str]:
    """Give the text of every page by its path below docs/reference."""
    pages = {f"api/{name}.md": _module_page(import_module(name)) for name in MODULES}
    return pages | {"api/index.md": _index()}


def _index() -> str:
    links = [f"- [`{name}`]({name}.md): {_summary(import_module(name))}" for name in MODULES]
    return "\n".join(["# Public modules\n", _NOTE, *links]) + "\n"


def _module_page(module: ModuleType) -> str:
    parts = [f"# `{module.__name__}`\n", _NOTE, _text(inspect.getdoc(module))]
    for name in module.__all__:
        if not name.startswith("__"):
            parts += _entry(module, name, getattr(module, name))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip("\n") + "\n"


def _entry(module: ModuleType, name: str, value: object) -> Iterator[str]:
    home = getattr(value, "__module__", module.__name__)
    if isinstance(value, type) and issubclass(value, Message):
        fields = ", ".join(f"`{field.name}`" for field in value.DESCRIPTOR.fields)
        yield f"## `{name}`\n\nA message of [proto/](../../../proto). Fields: {fields}.\n"
    elif module.__name__ != home and home in MODULES and isinstance(value, type | FunctionType):
        yield f"## `{name}`\n\n{_summary(value)} See [`{home}`]({home}.md).\n"
    elif isinstance(value, type):
        yield f"## `{name}`\n\n{_text(inspect.getdoc(value))}"
        for member, function in sorted(_members(value), key=lambda pair: _line(pair[1])):
            yield f"### `{name}.{member}{_signature(function)}`\n\n{_text(_doc(value, member))}"
    elif isinstance(value, FunctionType):
        yield f"## `{name}{_signature(value)}`\n\n{_text(inspect.getdoc(value))}"
    else:
        yield f"## `{name}`\n\n{_value_doc(home, name)}\n"


def _members(cls: type) -> Iterator[tuple[str, FunctionType | property]]:
    for name, value in vars(cls).items():
        function = getattr(value, "__func__", value)
        if not name.startswith("_") and isinstance(function, FunctionType | property):
            yield name, function


def _line(function: FunctionType | property) -> int:
    code = getattr(function.fget if isinstance(function, property) else function, "__code__", None)
    return code.co_firstlineno if code is not None else 0


def _doc(cls: type, member: str) -> str | None:
    return inspect.getdoc(inspect.getattr_static(cls, member)) or inspect.getdoc(
        getattr(cls, member)
    )


def _signature(function: FunctionType | property) -> str:
    if isinstance(function, property):
        return ""
    signature = inspect.signature(function)
    kept = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in ("self", "cls")
    ]
    text = str(signature.replace(parameters=kept, return_annotation=inspect.Signature.empty))
    # A default that is a function or an object would print its address.
    return re.sub(r"=<[^>]*>(?:>)?", "=...", text)


def _value_doc(module: str, name: str) -> str:
    """Find the string below an assignment, which Python itself does not keep."""
    try:
        source = inspect.getsource(import_module(module))
    except (ImportError, TypeError, OSError):
        return "A type or a value; see its module."
    found = re.search(rf'^{name}\b[^\n]*=.*?\n"""(.*?)"""', source, re.DOTALL | re.MULTILINE)
    plain = re.search(rf"^{name} = (.+)$", source, re.MULTILINE)
    if found and "\n\n" not in found[0].partition('"""')[0]:
        return found[1]
    return f"`{plain[1]}`" if plain else "A type or a value; see its module."


def _summary(value: object) -> str:
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ").replace("``", "`")


def _text(docstring: str | None) -> str:
    """Turn a docstring into Markdown: literals, sections and indented blocks."""
    text = (docstring or "").replace("``", "`")
    lines: list[str] = []
    for block in text.split("\n\n"):
        head, _, rest = block.partition("\n")
        if head in ("Args:", "Attributes:", "Raises:", "Returns:"):
            lines.append(f"{head[:-1]}:\n")
            lines += _items(rest)
        elif block.startswith("    "):
            lines.append(f"```text\n{inspect.cleandoc(block)}\n```")
        else:
            lines.append(re.sub(r"::$", ":", block).removeprefix(":"))
        lines.append("")
    return "\n".join(lines) + "\n" if lines else ""


def _items(rest: str) -> Iterator[str]:
    for line in inspect.cleandoc(rest).splitlines():
        name, colon, meaning = line.partition(": ")
        if colon and not line.startswith(" ") and re.fullmatch(r"[\w.*]+", name):
            yield f"- `{name}`: {meaning}"
        else:
            yield f"  {line.strip()}" if line.startswith(" ") else line
