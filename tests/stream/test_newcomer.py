"""What a newcomer imports: others wait while it does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dsp.config import Config
from dsp.config.told import tell
from dsp.core.types import NodeId, Peer
from dsp.scaling.events import Member
from dsp.scaling.place import Place
from dsp.stream.processes import Order

ROOT = Path(__file__).parent.parent.parent

# Runs an instance that ends as soon as it is ready, and tells what it imported.
PROGRAM = """
import json, sys
from dsp.stream import newcomer

def serve_nobody(transport, graph, config, spawner, place, **others):
    async def serve():
        from dsp.stream.deciding import decider_for
        from dsp.stream.host import Host
        make = decider_for(config, graph)
        host = Host(transport, graph, config, spawner, make_decider=make, random=others["random"])
        host.start()
        instance = host.create(place)
        modules = sorted(sys.modules)
        instance.abandon("it was seen")
        await host.run()
        await host.close()
        print(json.dumps(modules))
    return serve()

newcomer.serve_instance = serve_nobody
newcomer.run()
"""
# Of other transports, of settings that are checked already, and of what nobody asked for.
UNUSED = {
    "zmq": {"grpc", "aiokafka"},
    "grpc": {"zmq", "aiokafka"},
}
NEVER = {
    "pydantic",
    "pydantic_core",
    "importlib.metadata",
    "sqlite3",
    "numpy",
    "pyarrow",
    "typer",
    "rich",
    "dsp.testing",
    "dsp.stream.exclusion",
}


@pytest.mark.parametrize("scheme", UNUSED)
def test_a_newcomer_imports_what_it_needs_and_nothing_else(scheme: str) -> None:
    url = f"{scheme}://127.0.0.1:0"
    order = Order(
        "tests.stream.plain_app:pipeline",
        tell(Config.model_validate({"transport": {"url": url}})),
        Place(Member("work", 0, NodeId("work.1")), ("numbers",), ("out",), keeper=True),
        Peer(NodeId("creator"), f"{scheme}://127.0.0.1:1"),
        None,
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "tests.stream.plain_app:pipeline", url],
        cwd=ROOT,
        input=order.to_json(),
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    modules = set(json.loads(done.stdout))
    assert "dsp.stream.instance" in modules
    # grpc itself looks for installed packages.
    unwanted = NEVER - ({"importlib.metadata"} if scheme == "grpc" else set())
    assert modules & (unwanted | UNUSED[scheme]) == set()
