"""Identities: of several records made of one, on the wire, and of records that come again."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from dsp.core.envelope import decode_envelope
from dsp.stream.batch import BRANCH, MASK, Picked, child, children, composed, descendants
from dsp.stream.seen import Seen, _ends
from dsp.stream.wire import LARGE, decode_batch, encode_batch, pack_batch, unpack_ids

wide = st.integers(0, (1 << 128) - 1)
narrow = st.integers(0, MASK)


@given(wide, st.integers(0, MASK), st.integers(0, 20))
def test_children_are_what_child_says(parent: int, salt: int, count: int) -> None:
    assert list(children(parent, salt, count)) == [child(parent, salt, i) for i in range(count)]


@given(
    st.one_of(
        st.lists(wide, min_size=1, max_size=9),
        st.lists(narrow, min_size=1, max_size=9),
        st.builds(lambda first, count: range(first, first + count), narrow, st.integers(1, 9)),
        st.builds(children, wide, narrow, st.integers(1, 9)),
    )
)
def test_identities_survive_the_wire(ids: Sequence[int]) -> None:
    if isinstance(ids, range) and ids[-1] > MASK and ids.step == 1:
        return
    assert list(unpack_ids(pack_batch(1, "op", ids, 0.0))) == list(ids)


@given(narrow, st.integers(1, 9), st.lists(st.booleans(), min_size=9, max_size=9))
def test_some_identities_of_a_batch_are_as_a_list_of_them(
    first: int, count: int, chosen: list[bool]
) -> None:
    chosen = [*chosen[:count]]
    for ids in (range(first, first + count), [first + 7 * i for i in range(count)][::-1]):
        listed = [each for each, kept in zip(ids, chosen, strict=True) if kept]
        picked = Picked(ids, chosen, len(listed))
        assert picked == listed == list(picked)
        assert len(picked) == len(listed)
        for place in range(-len(listed), len(listed)):
            assert picked[place] == listed[place]
        assert picked[1:] == listed[1:]
        if listed:
            assert _ends(picked) == (min(listed), max(listed))
            packed = pack_batch(1, "op", picked, 0.0)
            assert max(listed) > MASK or list(unpack_ids(packed)) == listed
        assert composed(picked) == composed(listed)
        assert composed(ids) == composed(list(ids))


def run(source: int, branch: int, count: int) -> range:
    """Give the identities that a body by batch gives to what it makes."""
    first = source | branch << 64
    return range(first, first + (count << 64), BRANCH)


RUNS = st.builds(run, st.integers(0, 2), st.integers(1, 30), st.integers(1, 9))
MIXED = st.lists(st.integers(0, 60) | st.integers(1 << 64, (1 << 64) + 9), max_size=9)


@given(st.lists(MIXED) | st.lists(RUNS) | st.lists(RUNS | MIXED))
def test_repeats_are_told_as_by_a_set(batches: list[Sequence[int]]) -> None:
    seen, known = Seen(), set[int]()
    for ids in batches:
        told = seen.fresh(ids)
        expected = [each not in known for each in ids]
        assert (told or [True] * len(ids)) == expected
        seen.add(ids)
        known.update(ids)


@given(st.lists(st.integers(1, 9), max_size=40))
def test_the_last_ones_are_remembered(sizes: list[int]) -> None:
    seen, first = Seen(enough=16), 0
    for size in sizes:
        assert seen.fresh(range(first, first + size)) is None
        seen.add(range(first, first + size))
        first += size
    recent = range(max(0, first - 16), first)
    assert not any(seen.fresh(recent) or ([True] if len(recent) else []))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=40))
def test_the_last_runs_are_remembered(made: list[tuple[int, int]]) -> None:
    seen = Seen(enough=16)
    runs = [run(source, 10 * place + 1, count) for place, (source, count) in enumerate(made)]
    for each in runs:
        assert seen.fresh(each) is None
        seen.add(each)
    recent = [one for each in runs for one in each][-16:]
    assert not any(any(seen.fresh([one]) or [True]) for one in recent)


@given(
    st.lists(wide, min_size=1, max_size=9),
    st.integers(0, 3 * LARGE),
    st.text(max_size=200),
    st.floats(allow_nan=False),
)
def test_a_batch_written_by_hand_is_protobuf(
    ids: list[int], size: int, name: str, born: float
) -> None:
    payload = bytes(range(256)) * (size // 256) + bytes(size % 256)
    data = encode_batch("from", name, pack_batch(7, "op", ids, born), memoryview(payload))
    read = decode_envelope(data)
    assert read.engine_batch.payload == payload
    assert (read.source, read.destination) == ("from", name)
    assert list(unpack_ids(read.engine_batch)) == ids
    apart = decode_batch(data)
    if apart is not None:
        envelope, records = apart
        assert bytes(records) == payload
        envelope.engine_batch.payload = payload
        assert envelope == read
    assert (apart is not None) == (size >= LARGE or len(data) >= LARGE)


@given(st.integers(0, 2 * LARGE), st.binary(max_size=9))
def test_a_damaged_batch_is_left_to_protobuf(place: int, noise: bytes) -> None:
    data = encode_batch("a", "b", pack_batch(7, "op", range(5), 0.0), bytes(2 * LARGE))
    for damaged in (data[:place] + noise + data[place + len(noise) :], data[:place], data + noise):
        apart = decode_batch(damaged)
        if apart is not None:
            read = decode_envelope(damaged)
            assert bytes(apart[1]) == read.engine_batch.payload


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(0, 20), narrow)
def test_what_is_made_of_records_is_told_by_these_in_whatever_batch_they_come(
    counts: list[int], cut: int, salt: int
) -> None:
    def made(start: int, end: int) -> list[int]:
        parents = [place for place in range(end - start) for _ in range(counts[start + place])]
        return [*descendants(range(100 + start, 100 + end), parents, salt)]

    whole = made(0, len(counts))
    cut = min(cut, len(counts))
    assert made(0, cut) + made(cut, len(counts)) == whole
    assert len({*whole}) == len(whole) == sum(counts)
    assert {*whole} >= {100 + place for place, count in enumerate(counts) if count}


def test_records_that_are_made_one_of_each_keep_the_identities_as_they_are() -> None:
    ids = range(7, 10)
    assert descendants(ids, [0, 1, 2], 5) is ids
    assert descendants(ids, [2, 0, 1], 5) == [9, 7, 8]
    assert descendants(ids, [0, 2], 5) == [7, 9]
    assert descendants(ids, [2], 5)[0] == 9
