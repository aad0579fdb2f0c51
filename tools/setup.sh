#!/bin/sh
# Makes .venv and installs dsp into it, for `make`. Usage: tools/setup.sh EXTRAS [GROUP]
# Does nothing when what it would install is installed. PYTHON=... picks the interpreter.
set -eu
cd "$(dirname "$0")/.."
extras=$1
group=${2:-}
venv=.venv
stamp=$venv/.dsp-installed

say() { printf '[setup] %s\n' "$*"; }
die() { printf '[setup] %s\n' "$*" >&2; exit 1; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    if [ "${PYTHON:-}" ]; then
        new_enough "$PYTHON" || die "PYTHON=$PYTHON is not a Python 3.11 or newer"
        echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    die "missing: Python 3.11 or newer (tried python3, python3.11 to 3.14, python). Install it, or call make PYTHON=/path/to/python3"
}

# Scripts in an environment name its absolute path: one that was moved or copied must be made anew.
usable() {
    new_enough $venv/bin/python && $venv/bin/python -c 'import pip' >/dev/null 2>&1 &&
        { [ ! -f $venv/.dsp-home ] || [ "$(cat $venv/.dsp-home)" = "$PWD" ]; }
}

if ! usable; then
    python=$(find_python)
    say "making $venv with $("$python" --version)"
    rm -rf $venv
    "$python" -m venv $venv || {
        rm -rf $venv
        die "missing: a working venv module of $python (its message is above). On Debian and Ubuntu: apt install python3-venv"
    }
fi
printf '%s\n' "$PWD" > $venv/.dsp-home

# The stamp holds a fingerprint of what decides an installation, then what was installed by it.
# Prints nothing if the wish is a part of that.
missing() {
    $venv/bin/python - "$stamp" "$extras" "$group" "$1" <<'PY'
import hashlib, json, pathlib, sys, tomllib

stamp, extras, group, action = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
parts = [project["build-system"], project["project"], project["dependency-groups"], sys.version]
wanted = {*filter(None, extras.split(",")), *([f"group {group}"] if group else [])}
fingerprint = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
known, *installed = stamp.read_text().splitlines() if stamp.exists() else [""]
present = {*installed} if known == fingerprint else set()
if action == "record":
    stamp.write_text("\n".join([fingerprint, *sorted(wanted | present)]) + "\n")
elif known != fingerprint or not wanted <= present:
    print("something")
    requirements = project["dependency-groups"][group] if group else []
    stamp.with_name("requirements.txt").write_text("".join(f"{line}\n" for line in requirements))
PY
}

[ "$(missing query)" ] || exit 0
say "installing dsp[$extras]${group:+ and the $group tools} into $venv; the first time this takes some minutes"
# A user-wide `user = true` of pip would refuse to install into an environment. Both are variables
# because pip starts another pip for what the build needs, and that one sees no options.
PIP_USER=0 PIP_RETRIES=2 $venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --editable ".[$extras]" --requirement $venv/requirements.txt ||
    die "could not install dsp[$extras]: pip's message above says why. If it found no package or no version at all, the package index cannot be reached: check the network, the proxy and pip's settings, then call make again"
missing record
say "done"
