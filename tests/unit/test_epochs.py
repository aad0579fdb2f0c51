"""The number of a start: above all before it, also where the clock was set back."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId
from dsp.errors import ConnectError
from dsp.transport.base import Frame, PeerDown
from dsp.transport.epochs import STEP, next_epoch
from dsp.transport.session import Session

HOUR = 3600 * 10**9


def test_the_clock_is_the_epoch_while_it_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "epoch"
    assert next_epoch(file, 10**18) == 10**18
    assert next_epoch(file, 2 * 10**18) == 2 * 10**18
    assert [each.name for each in tmp_path.iterdir()] == ["epoch"]


def test_a_clock_that_is_set_back_does_not_set_it_back(tmp_path: Path) -> None:
    file = tmp_path / "epoch"
    found = [next_epoch(file, now) for now in (10**18, 5, 6, 10**18 + 1, 3 * 10**18)]
    assert found == [10**18, *(10**18 + STEP * number for number in (1, 2, 3)), 3 * 10**18]


@pytest.mark.parametrize("content", ["", "soon", "12 13"])
def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path, content: str) -> None:
    file = tmp_path / "epoch"
    file.write_text(content)
    with pytest.raises(ConnectError, match=r"transport\.epoch_file.*of this endpoint alone"):
        next_epoch(file, 1)
    assert file.read_text() == content


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=r"transport\.epoch_file"):
        next_epoch(tmp_path / "no" / "epoch", 1)


def session(folder: Path, name: str, **settings: Any) -> Session:  # noqa: ANN401
    config = TransportConfig(url=f"zmq+ipc://{folder}/{name}", drain_timeout=0.5, **settings)
    return Session.from_config(config, NodeId(name))


@pytest.mark.asyncio
@pytest.mark.parametrize("kept", [True, False], ids=["kept", "not-kept"])
async def test_a_node_that_starts_again_after_its_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Its peer takes it for a stale one, unless it keeps the number of its last start."""
    settings = {"epoch_file": str(tmp_path / "epoch")} if kept else {}
    async with asyncio.timeout(30), session(tmp_path, "b") as b:
        async with session(tmp_path, "a", **settings) as a:
            await a.send(b.contact, b"before", lane=Lane.DATA)
            assert isinstance(await b.receive(Lane.DATA), Frame)
        clock = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: clock() - HOUR)
        async with session(tmp_path, "a", **settings) as again:
            await again.send(b.contact, b"after", lane=Lane.DATA)
            if kept:
                inbound = await b.receive(Lane.DATA)
                assert isinstance(inbound, Frame)
                assert inbound.payload == b"after"
                assert again.epoch > a.epoch
                return
            while not isinstance(inbound := await again.receive(Lane.CONTROL), PeerDown):
                pass
            assert inbound.refused
            assert "stale" in inbound.reason
            assert "transport.epoch_file" in inbound.reason
