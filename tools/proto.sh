#!/bin/sh
# Generates dsp/_pb from proto/ with the protoc of the dependency group "proto", in an environment
# of its own. Usage: tools/proto.sh
set -eu
cd "$(dirname "$0")/.."
venv=.venv-proto
if [ ! -x $venv/bin/python ]; then
    for python in ${PYTHON:-} python3.11 python3.12 python3; do
        if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; then
            found=$python
            break
        fi
    done
    [ "${found:-}" ] || { echo "missing: Python 3.11 or 3.12; the pinned protoc has no wheel for newer ones" >&2; exit 1; }
    "$found" -m venv $venv
    requirement=$("$found" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["proto"])')
    $venv/bin/python -m pip install --quiet --disable-pip-version-check setuptools "$requirement"
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# A root of its own, dsp/_pb/dsp/v1 would otherwise hide the package dsp: generate, then move.
$venv/bin/python -m grpc_tools.protoc --proto_path=proto --python_out="$out" --pyi_out="$out" proto/dsp/v1/*.proto
mkdir -p dsp/_pb
rm -f dsp/_pb/*_pb2.py dsp/_pb/*_pb2.pyi
for file in "$out"/dsp/v1/*_pb2.py "$out"/dsp/v1/*_pb2.pyi; do
    sed 's/^from dsp\.v1 import /from dsp._pb import /' "$file" > "dsp/_pb/$(basename "$file")"
done
echo "[proto] wrote dsp/_pb"
