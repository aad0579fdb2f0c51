"""Tells whether the generated code in dsp/_pb says what the files in proto/ say.

The committed code is made by an old protoc (see docs/adr/0001), so its text is not compared: both
sides become descriptors, and descriptors are compared. Usage: python -m tools.generated_code
"""

import ast
import importlib
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import grpc_tools
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

ROOT = Path(__file__).parent.parent
PROTO = ROOT / "proto"
GENERATED = ROOT / "dsp" / "_pb"
PACKAGE_PATH = "dsp/v1"


def compile_proto(directory: Path) -> dict[str, FileDescriptorProto]:
    """Compile every .proto file below a directory; give the descriptors by file stem."""
    sources = sorted(directory.glob(f"{PACKAGE_PATH}/*.proto"))
    includes = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "descriptors"
        arguments = [f"--proto_path={directory}", f"--proto_path={includes}"]
        arguments += [f"--descriptor_set_out={out}", *map(str, sources)]
        if protoc.main(["protoc", *arguments]) != 0:
            raise ValueError(f"protoc refuses a file in {directory}: its message is above")
        compiled = FileDescriptorSet.FromString(out.read_bytes())
    return {Path(file.name).stem: file for file in compiled.file}


def committed(stem: str) -> FileDescriptorProto:
    """Give the descriptor that the committed module of a .proto file holds."""
    module = importlib.import_module(f"dsp._pb.{stem}_pb2")
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def faults(proto: Path = PROTO, generated: Path = GENERATED) -> list[str]:
    """List what is out of step between .proto files and generated code."""
    compiled = compile_proto(proto)
    found: list[str] = []
    for kind in ("_pb2.py", "_pb2.pyi"):
        stems = {file.name.removesuffix(kind) for file in generated.glob(f"*{kind}")}
        found += [f"{stem}{kind} is missing" for stem in sorted(compiled.keys() - stems)]
        found += [f"{stem}{kind} has no .proto file" for stem in sorted(stems - compiled.keys())]
    if found:
        return found
    for stem, fresh in compiled.items():
        if normal(fresh) != normal(committed(stem)):
            found.append(f"{stem}_pb2.py is not what {stem}.proto says")
        stub = stub_fields((generated / f"{stem}_pb2.pyi").read_text())
        if stub != dict(message_fields(fresh.message_type)):
            found.append(f"{stem}_pb2.pyi is not what {stem}.proto says")
    return found


def normal(file: FileDescriptorProto) -> FileDescriptorProto:
    """Drop what says nothing about the wire and differs between versions of protoc."""
    copy = FileDescriptorProto()
    copy.CopyFrom(file)
    for message in copy.message_type:
        _drop_json_names(message)
    return copy


def _drop_json_names(message: DescriptorProto) -> None:
    for field in message.field:
        field.ClearField("json_name")
    for inner in message.nested_type:
        _drop_json_names(inner)


def message_fields(
    messages: Iterable[DescriptorProto], prefix: str = ""
) -> Iterator[tuple[str, list[str]]]:
    """Give the dotted name and the names of the fields of every message, inner ones too."""
    for message in messages:
        if message.options.map_entry:
            continue
        name = f"{prefix}{message.name}"
        yield name, [field.name for field in message.field]
        yield from message_fields(message.nested_type, f"{name}.")


def stub_fields(text: str) -> dict[str, list[str]]:
    """Read the same from a stub: each class of a message lists its fields in ``__slots__``."""
    return dict(_stub_fields(ast.parse(text).body, ""))


def _stub_fields(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if not isinstance(node, ast.ClassDef) or node.keywords:  # a metaclass makes it an enum
            continue
        name = f"{prefix}{node.name}"
        for statement in node.body:
            match statement:
                case ast.Assign(targets=[ast.Name("__slots__")], value=slots):
                    if not node.name.endswith("Entry"):
                        yield name, [str(field) for field in ast.literal_eval(slots)]
        yield from _stub_fields(node.body, f"{name}.")


def main() -> int:
    """Print the faults; the exit code tells whether there are any."""
    found = faults()
    for fault in found:
        print(f"{fault}: run `make proto` and commit the result", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
