"""The one Spark of a process: shared, found, refused, stopped by the last."""

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from dsp.errors import ConfigError
from dsp.spark import SparkConflict, SparkSettings, SparkUnreachable, hold
from dsp.spark.address import Address, parse, probe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("text", "ends", "kinds"),
    [
        ("local", (), "local"),
        ("local[*]", (), "local"),
        ("local[4]", (), "local"),
        ("local[4, 2]", (), "local"),
        ("spark://a:1,b:2", (("a", 1), ("b", 2)), ""),
        ("spark://a", (("a", 7077),), ""),
        ("sc://127.0.0.1", (("127.0.0.1", 15002),), "connect loopback"),
        ("sc://[::1]:7/;token=x", (("[::1]", 7),), "connect loopback"),
        ("yarn", (), ""),
    ],
)
def test_addresses(text: str, ends: tuple[tuple[str, int], ...], kinds: str) -> None:
    address = parse(text)
    assert address == Address(text, ends)
    assert address.local is ("local" in kinds.split())
    assert address.connect is ("connect" in kinds.split())


@pytest.mark.parametrize("text", ["", "locals", "local[x]", "spark://", "http://a", "sc:///;x"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match=r"spark://host:7077"):
        parse(text)


@pytest.mark.parametrize(
    ("master", "who"), [("spark://127.0.0.1:1", "master"), ("sc://127.0.0.1:1", "Connect server")]
)
def test_nobody_there_is_said_at_once(master: str, who: str) -> None:
    with pytest.raises(SparkUnreachable, match=rf"no Spark {who} at {master} .*refused"):
        probe(parse(master), 5)


def test_one_session_for_all(spark_session: "SparkSession") -> None:
    first, second = hold(), hold(SparkSettings(master="local[2]"))
    assert first.session is second.session is spark_session
    first.release()
    first.release()
    second.release()
    assert second.alive
    assert spark_session.range(3).count() == 3
    with pytest.raises(SparkConflict, match=r"'local\[1\]' is asked for.*on 'local\[2\]'"):
        hold(SparkSettings(master="local[1]"))


OWN = """
from dsp.spark import SparkSettings, hold
lease = hold(SparkSettings(master="local[1]", options={"spark.sql.shuffle.partitions": "3"}))
print(lease.session.conf.get("spark.sql.shuffle.partitions"), lease.session.range(5).count())
other = hold()
lease.release()
print(lease.alive)
other.release()
print(lease.alive)

from pyspark.sql import SparkSession
mine = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
lease = hold()
print(lease.session is mine or lease.session.sparkContext is mine.sparkContext)
lease.release()
print(mine.range(7).count())
mine.stop()

import os, socket, threading
from dsp.spark import SparkUnreachable
somebody = socket.create_server(("127.0.0.1", 0))
def hang_up():
    while True:
        somebody.accept()[0].close()
threading.Thread(target=hang_up, daemon=True).start()
try:
    hold(SparkSettings("sc://127.0.0.1:%s" % somebody.getsockname()[1]))
except SparkUnreachable as error:
    print(str(error).split(":")[0], str(error).split(". ")[-1])
print(os.environ.get("SPARK_CONNECT_MODE_ENABLED"))
"""


def test_what_dsp_started_is_stopped_and_what_the_user_made_stays() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWN], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[:5] == ["3 5", "True", "False", "True", "7"]
    assert said[5:] == ["no Spark session on sc Is it a Spark Connect server?", "None"]
