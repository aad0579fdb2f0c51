"""The small parts of the data plane: tokens, offsets, owners of keys, what comes to an instance."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsp._pb.engine_pb2 import EngineBatch
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import CodecError
from dsp.stream.groupings.owners import Owners, key_bytes
from dsp.stream.inlet import REMEMBERED, Arrival, Inlet
from dsp.stream.offset_store import OffsetStore
from dsp.stream.offsets import OffsetTracker
from dsp.stream.room import FIRST_ROOM
from dsp.stream.tokens import Token
from dsp.stream.wire import unpack_ids
from dsp.transport.base import Frame

if TYPE_CHECKING:
    from dsp.stream.parcels import Progress

SENDER, OTHER = NodeId("a.1"), NodeId("a.2")

# -- tokens and offsets -----------------------------------------------------------------------


@given(st.integers(0, 8))
def test_a_token_is_done_once_all_have_let_go(holders: int) -> None:
    done: list[bool] = []
    token = Token(lambda: done.append(True))
    held = [token, *(token.hold() for _ in range(holders))]
    for each in held[:-1]:
        each.release()
        assert not done
    held[-1].release()
    assert done == [True]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8).flatmap(
    lambda sizes: st.tuples(st.just(sizes), st.permutations(range(len(sizes))))
))  # fmt: skip
def test_the_beginning_grows_only_without_gaps(case: tuple[list[int], list[int]]) -> None:
    sizes, order = case
    tracker = OffsetTracker(None, 100)
    chunks = [tracker.read(size, f"after {place}", {0: place}) for place, size in enumerate(sizes)]
    finished: set[int] = set()
    for place in order:
        before = tracker.count
        finished.add(place)
        grew = tracker.done(chunks[place])
        whole = next((i for i in range(len(sizes)) if i not in finished), len(sizes))
        assert tracker.count == 100 + sum(sizes[:whole])
        assert tracker.position == (f"after {whole - 1}" if whole else None)
        assert grew == (tracker.count > before)
        assert tracker.open == len(sizes) - whole
        assert tracker.unfinished == sum(n for i, n in enumerate(sizes) if i not in finished)
    assert tracker.open == 0


def test_offsets_survive_their_store(tmp_path: Path) -> None:
    store = OffsetStore(str(tmp_path / "new"), "app")
    assert store.load("a") == (None, 0)
    store.save("a", {"line": 3}, 7)
    store.save("a", {"line": 4}, 8)
    store.save("b", 5, 5)
    store.close()
    again = OffsetStore(str(tmp_path / "new"), "app")
    assert (again.load("a"), again.load("b")) == (({"line": 4}, 8), (5, 5))
    again.close()


# -- keys -------------------------------------------------------------------------------------

names = st.lists(
    st.text("abcdef0123", min_size=1, max_size=12), min_size=2, max_size=6, unique=True
)


@given(names, st.lists(st.integers() | st.text() | st.binary(), max_size=20), st.data())
def test_only_the_keys_of_the_one_that_goes_move(
    instances: list[str], keys: list[int | str | bytes], data: st.DataObject
) -> None:
    keys = [key for key in keys if not isinstance(key, int) or -(2**63) <= key < 2**63]
    everyone = [NodeId(name) for name in instances]
    gone = data.draw(st.sampled_from(everyone))
    before, after = Owners(everyone), Owners([name for name in everyone if name != gone])
    for key in keys:
        assert before.of(key) in everyone
        if before.of(key) == gone:
            assert after.of(key) != gone
        else:
            assert after.of(key) == before.of(key)


def test_keys_spread_and_order_does_not_matter() -> None:
    everyone = [NodeId(f"op.{n}") for n in range(4)]
    one, other = Owners(everyone), Owners(everyone[::-1])
    owned = [one.of(key) for key in range(2000)]
    assert owned == [other.of(key) for key in range(2000)]
    assert all(350 < owned.count(name) < 650 for name in everyone)


def test_keys_of_different_kinds_differ() -> None:
    assert len({key_bytes(key) for key in (b"1", "1", 1, [1], None)}) == 5


@pytest.mark.parametrize(
    ("width", "size", "records"), [(8, 7, 1), (8, 8, 2), (16, 32, 3), (4, 4, 1), (16, 16, 0)]
)
def test_identities_that_do_not_fit_are_refused(width: int, size: int, records: int) -> None:
    message = EngineBatch(records=records, id_bytes=width, ids=bytes(size))
    with pytest.raises(CodecError):
        unpack_ids(message)


# -- inlet ------------------------------------------------------------------------------------


class Place:
    """An inlet, and what it says."""

    def __init__(
        self,
        *,
        at_most_once: bool = False,
        window: int = 1000,
        pause: float = 3600.0,
        watched: tuple[str, ...] = (),
    ) -> None:
        self.told: list[tuple[NodeId, Progress]] = []
        self.finished: list[Frame] = []
        self.inlet = Inlet(
            lambda to, progress: self.told.append((to, progress)),
            self.finished.append,
            at_most_once=at_most_once,
            pause=pause,
            grant=lambda: (window, 16),
            watched=watched,
        )

    def put(self, sequence: int, records: int = 10, sender: NodeId = SENDER) -> bool:
        arrival = Arrival(sender, "a", sequence, records, 8 * records, 0.0)
        return self.inlet.put(arrival)

    def close(self) -> None:
        self.inlet.settle()


@pytest.mark.asyncio
async def test_batches_are_taken_up_to_so_many_records() -> None:
    place = Place()
    for sequence in range(5):
        assert place.put(sequence)
    assert (place.inlet.waiting, place.inlet.open) == (50, 5)
    assert [a.sequence for a in await place.inlet.take(25)] == [0, 1]
    # At least one, however many records it holds.
    assert [a.sequence for a in await place.inlet.take(1)] == [2]
    assert (place.inlet.waiting, place.inlet.open, place.inlet.empty) == (20, 5, False)
    place.close()


@pytest.mark.asyncio
async def test_room_is_told_when_taken_and_done_when_done() -> None:
    place = Place()
    place.put(1)
    place.put(2, sender=OTHER)
    first, second = await place.inlet.take(100)
    assert place.told == []
    place.inlet.settle()
    assert [(to, p.records, p.bytes, list(p.done)) for to, p in place.told] == [
        (SENDER, 10, 80, []),
        (OTHER, 10, 80, []),
    ]
    assert {(p.window, p.batch) for _, p in place.told} == {(1000, 16)}
    place.told.clear()
    second.token.release()
    first.token.hold().release()
    place.inlet.settle()
    assert [(to, p.records, list(p.done)) for to, p in place.told] == [(OTHER, 0, [2])]
    first.token.release()
    place.inlet.settle()
    assert [to for to, _ in place.told] == [OTHER, SENDER]
    assert place.inlet.open == 0


@pytest.mark.asyncio
async def test_half_a_window_of_room_is_told_at_once() -> None:
    place = Place(window=40)
    place.put(1)
    place.put(2)
    await place.inlet.take(10)
    assert place.told == []
    await place.inlet.take(10)
    assert [p.records for _, p in place.told] == [20]


@pytest.mark.asyncio
async def test_others_are_not_told_because_one_is() -> None:
    place = Place(window=40)
    place.put(1, sender=OTHER)
    place.put(1)
    place.put(2)
    for _ in range(3):
        await place.inlet.take(10)
    assert [(to, p.records) for to, p in place.told] == [(SENDER, 20)]
    place.inlet.settle()
    place.inlet.settle()  # nothing is owed any more
    assert [(to, p.records) for to, p in place.told] == [(SENDER, 20), (OTHER, 10)]


@pytest.mark.asyncio
async def test_who_cannot_say_what_it_grants_tells_at_half_of_what_is_assumed() -> None:
    place = Place(window=0)
    half = FIRST_ROOM[0] // 2
    place.put(1, records=half - 1)
    place.put(2, records=1)
    await place.inlet.take(1)
    assert place.told == []
    await place.inlet.take(1)
    assert [p.records for _, p in place.told] == [half]


@pytest.mark.asyncio
async def test_what_is_owed_is_told_after_a_pause() -> None:
    place = Place(pause=0.0)
    place.put(1)
    await place.inlet.take(10)
    async with asyncio.timeout(30):
        while not place.told:
            await asyncio.sleep(0)
    assert place.told[0][1].records == 10


@pytest.mark.asyncio
async def test_a_repeat_is_not_taken_again_but_answered() -> None:
    place = Place()
    assert place.put(1)
    assert not place.put(1)
    assert (place.inlet.repeated, place.inlet.waiting, place.inlet.open) == (1, 10, 1)
    place.inlet.settle()
    # Room is given back; done is said when it is.
    assert [(p.records, list(p.done)) for _, p in place.told] == [(10, [])]
    (arrival,) = await place.inlet.take(10)
    arrival.token.release()
    place.inlet.settle()
    assert not place.put(1)
    place.inlet.settle()
    assert [list(p.done) for _, p in place.told] == [[], [1], [1]]
    # The same number of another sender is another batch.
    assert place.put(1, sender=OTHER)


@pytest.mark.asyncio
@pytest.mark.parametrize("watched", [True, False])
async def test_who_chooses_by_it_is_told_what_went_through_the_body(watched: bool) -> None:
    place = Place(watched=("a",) if watched else ())
    place.put(1)
    (arrival,) = await place.inlet.take(10)
    place.inlet.settle()
    place.inlet.worked(arrival)
    place.inlet.settle()
    assert not place.put(1)  # what comes again is no work either
    place.inlet.settle()
    assert sum(p.worked for _, p in place.told) == 20 * watched
    assert place.told[0][1].worked == 0


@pytest.mark.asyncio
async def test_what_is_done_is_not_remembered_for_ever() -> None:
    place = Place()
    for sequence in range(REMEMBERED + 1):
        place.put(sequence, records=1)
        (arrival,) = await place.inlet.take(1)
        arrival.token.release()
    assert not place.put(1, records=1)
    assert place.put(0, records=1)
    place.close()


@pytest.mark.asyncio
async def test_at_most_once_tells_what_it_has_not_what_is_done() -> None:
    place = Place(at_most_once=True)
    place.put(1)
    (arrival,) = await place.inlet.take(10)
    arrival.token.release()
    place.inlet.settle()
    assert [(p.delivered, list(p.done)) for _, p in place.told] == [(1, [])]


@pytest.mark.asyncio
async def test_a_frame_is_finished_with_its_batch() -> None:
    place = Place()
    frame = Frame(Peer(SENDER, "somewhere"), Lane.DATA, b"")
    arrival = Arrival(SENDER, "a", 1, 1, 1, 0.0, frame=frame)
    place.inlet.put(arrival)
    await place.inlet.take(1)
    assert place.finished == []
    arrival.token.release()
    assert place.finished == [frame]
    place.close()


@pytest.mark.asyncio
async def test_a_sender_is_forgotten_when_nothing_of_it_is_open() -> None:
    place = Place()
    place.put(1)
    place.inlet.forget(SENDER)
    # Still open: its batch is known, should it come again.
    assert not place.put(1)
    (arrival,) = await place.inlet.take(10)
    arrival.token.release()
    place.inlet.forget(SENDER)
    place.inlet.settle()
    assert place.told == []
    assert place.put(1)
    place.close()


@pytest.mark.asyncio
async def test_take_waits_for_a_batch() -> None:
    place = Place()
    taking = asyncio.ensure_future(place.inlet.take(10))
    await asyncio.sleep(0)
    assert not taking.done()
    place.put(7)
    assert [a.sequence for a in await taking] == [7]
    place.close()
