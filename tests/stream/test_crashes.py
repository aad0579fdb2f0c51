"""A process that is killed while it works, and started again: nothing is lost, nothing doubled."""

import csv
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest

from dsp.stream.sinks import JournalSink

PROGRAM = Path(__file__).with_name("crashing.py")
ROOT = PROGRAM.parent.parent.parent
PATIENCE = 50.0
Taken = Counter[tuple[int, int]]


@contextmanager
def running(folder: Path, **order: str) -> Iterator[subprocess.Popen[bytes]]:
    told = orjson.dumps({"folder": str(folder), **order}).decode()
    process = subprocess.Popen(
        [sys.executable, "-W", "error", str(PROGRAM), told],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def taken(folder: Path, sink: str) -> Taken:
    """Count what is in the sink's files, each record by what it is."""
    match sink:
        case "csv":
            with (folder / "out.csv").open(newline="") as file:
                rows = list(csv.DictReader(file))
            return Counter((int(row["n"]), int(row["copy"])) for row in rows)
        case "jsonl":
            lines = (folder / "out.jsonl").read_bytes().splitlines()
            return Counter((v["n"], v["copy"]) for v in map(orjson.loads, lines))
        case "parquet":
            rows = pq.read_table(folder / "out").to_pylist()
            return Counter((row["n"], row["copy"]) for row in rows)
        case _:
            values = JournalSink(folder / "out.sqlite").values()
            return Counter((v["n"], v["copy"]) for v in values)


def size(folder: Path) -> int:
    """Bytes that sinks wrote so far."""
    found = (path for path in folder.rglob("*") if path.is_file())
    wanted = [path for path in found if path.parent.name == "out" or path.name.startswith("out.")]
    return sum(path.stat().st_size for path in wanted)


def kill_after(process: "subprocess.Popen[bytes]", folder: Path, growth: int) -> bool:
    """Kill the process once its output grew by so much; False if it was over before."""
    before = size(folder)
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and size(folder) < before + growth:
        assert time.monotonic() < deadline, "no output"
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def write_input(folder: Path, records: int) -> None:
    with (folder / "in.csv").open("w") as file:
        file.write("n\n" + "".join(f"{n}\n" for n in range(records)))
    with (folder / "in.jsonl").open("w") as file:
        file.write("".join(f'{{"n": {n}}}\n' for n in range(records)))


@pytest.mark.parametrize(
    ("source", "sink", "delivery"),
    [
        ("csv", "csv", "effectively_once"),
        ("jsonl", "jsonl", "effectively_once"),
        ("jsonl", "parquet", "effectively_once"),
        ("jsonl", "journal", "effectively_once"),
        ("jsonl", "jsonl", "at_least_once"),
    ],
)
def test_killed_twice_and_started_again(
    source: str, sink: str, delivery: str, tmp_path: Path
) -> None:
    records = 6000
    write_input(tmp_path, records)
    kills = 0
    for _ in range(2):
        with running(tmp_path, source=source, sink=sink, delivery=delivery) as process:
            kills += kill_after(process, tmp_path, 4000)
    with running(tmp_path, source=source, sink=sink, delivery=delivery) as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"repeats" in out
    assert kills, "the process was never killed while it worked"
    found = taken(tmp_path, sink)
    expected = {(n, copy) for n in range(records) for copy in (0, 1)}
    assert {*found} == expected
    if delivery == "effectively_once":
        assert max(found.values()) == 1
    # With offsets a third run finds nothing to do.
    with running(tmp_path, source=source, sink=sink, delivery=delivery) as process:
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert taken(tmp_path, sink) == found


def test_what_a_journal_has_survives_the_process(tmp_path: Path) -> None:
    order = {"source": "tcp", "sink": "jsonl", "delivery": "effectively_once"}
    sent = 0
    for _ in range(2):
        with running(tmp_path, **order) as process:
            with connected(process) as client:
                for _ in range(100):
                    client.sendall(b"".join(b"%d\n" % n for n in range(sent, sent + 20)))
                    sent += 20
            kill_after(process, tmp_path, 500)
    with running(tmp_path, **order) as process:
        port(process)
        process.communicate(b"", timeout=PATIENCE)
    assert process.returncode == 0
    found = taken(tmp_path, "jsonl")
    assert max(found.values()) == 1
    # What the system or the source held when it was killed is gone; what was read is not: no
    # record has but one of its two copies, and the journal is empty.
    assert {n for n, copy in found if copy == 0} == {n for n, copy in found if copy == 1}
    import sqlite3

    journal = sqlite3.connect(tmp_path / "journal")
    (left,) = journal.execute("SELECT count(*) FROM chunks").fetchone()
    (number,) = journal.execute("SELECT number FROM next").fetchone()
    journal.close()
    assert left == 0
    assert number == len(found) // 2


def port(process: "subprocess.Popen[bytes]") -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


@contextmanager
def connected(process: "subprocess.Popen[bytes]") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port(process)), timeout=PATIENCE) as client:
        yield client
