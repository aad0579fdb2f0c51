"""Count-Min: the bound of its error, the same in every process, and as another implementation."""

import subprocess
import sys
from collections import Counter
from math import ceil, log2
from random import Random

import datasketches
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsp.balance.hashing import LONG, REMEMBERED, HashFamily
from dsp.balance.settings import size_for
from dsp.balance.sketch import CountMin
from dsp.errors import CodecError

KEYS = st.lists(st.binary(max_size=12), max_size=200)


def zipf(count: int, values: int, seed: int) -> list[bytes]:
    random = Random(seed)
    weights = [1 / rank for rank in range(1, values + 1)]
    return [b"v%d" % value for value in random.choices(range(values), weights, k=count)]


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "columns"),
    [(0.70, 0.25, 2, 4), (0.05, 0.05, 5, 54), (0.01, 0.5, 1, 270)],
)
def test_sizes_are_those_of_the_paper(
    epsilon: float, delta: float, rows: int, columns: int
) -> None:
    # Figure 6 has delta .25 with 2 rows and epsilon .70 with 4 columns; table 2 has .05 and .05.
    assert size_for(epsilon, delta) == (rows, columns)
    assert CountMin.sized(epsilon, delta).matrix.shape == (rows, columns)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 2.0)])
def test_sizes_that_make_no_sense_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match="above 0 and below 1"):
        size_for(epsilon, delta)
    with pytest.raises(ValueError, match="makes no sense"):
        HashFamily(0, 5)


@given(KEYS, st.integers(0, 2**63))
def test_an_estimate_is_never_too_small_and_exact_without_others(
    keys: list[bytes], seed: int
) -> None:
    sketch = CountMin.sized(0.2, 0.1, seed)
    sketch.update(keys)
    counts = Counter(keys)
    for key, count in counts.items():
        (found,) = sketch.estimate([key])
        assert count <= found <= len(keys)
    assert sketch.total == len(keys)
    if len(counts) == 1:
        assert sketch.estimate(keys)[0] == len(keys)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**63), st.sampled_from([(0.1, 0.2), (0.05, 0.05), (0.3, 0.1)]))
def test_the_bound_of_the_error_holds(seed: int, size: tuple[float, float]) -> None:
    epsilon, delta = size
    keys = zipf(3000, 400, seed % 1000)
    sketch = CountMin.sized(epsilon, delta, seed)
    weights = [1.0 + len(key) for key in keys]
    counts, weighed = Counter(keys), Counter[bytes]()
    for key, weight in zip(keys, weights, strict=True):
        weighed[key] += weight  # type: ignore[assignment]
    heavy = CountMin(sketch.family)
    sketch.update(keys)
    heavy.update(keys, weights)
    for made, exact in ((sketch, counts), (heavy, weighed)):
        names = list(exact)
        found = made.estimate(names).tolist()
        beyond = [
            name
            for name, value in zip(names, found, strict=True)
            if value - exact[name] >= epsilon * (made.total - exact[name])
        ]
        assert all(v >= exact[n] - 1e-9 for n, v in zip(names, found, strict=True))
        # Delta is for one key, and rows have base 2 where e would do: three times is far off.
        assert len(beyond) <= 3 * delta * len(names)


def test_two_keys_share_a_cell_no_more_often_than_they_may() -> None:
    # Of pairs that differ in one bit only: 2-universal means at most 1/columns of all functions.
    shared = total = 0
    keys = [b"", b"\0", b"\1", b"12345678", b"12345679"]
    for seed in range(300):
        cells = HashFamily(4, 32, seed).cells(keys)
        for one in range(5):
            for other in range(one):
                shared += int((cells[:, one] == cells[:, other]).sum())
                total += 4
    assert shared / total == pytest.approx(1 / 32, rel=0.15)


@given(KEYS, KEYS)
def test_merging_is_seeing_both(one: list[bytes], other: list[bytes]) -> None:
    left, right, both = (CountMin.sized(0.1, 0.1, 5) for _ in range(3))
    left.update(one)
    right.update(other)
    both.update(one + other)
    left.merge(right)
    assert left.to_bytes() == both.to_bytes()


def test_other_functions_are_not_merged() -> None:
    with pytest.raises(ValueError, match=r"seed 2 cannot be merged into .* seed 1"):
        CountMin.sized(0.1, 0.1, 1).merge(CountMin.sized(0.1, 0.1, 2))


@given(KEYS, st.integers(0, 2**64 - 1))
def test_bytes_and_back(keys: list[bytes], seed: int) -> None:
    sketch = CountMin.sized(0.3, 0.2, seed)
    sketch.update(keys, [0.5] * len(keys))
    again = CountMin.from_bytes(sketch.to_bytes())
    assert again.to_bytes() == sketch.to_bytes()
    assert again.estimate(keys or [b"x"]).tolist() == sketch.estimate(keys or [b"x"]).tolist()


@given(st.binary(max_size=300))
def test_garbage_is_no_sketch(data: bytes) -> None:
    with pytest.raises(CodecError):
        CountMin.from_bytes(data)


def test_bytes_that_are_tampered_with_are_no_sketch() -> None:
    data = bytearray(CountMin.sized(0.5, 0.5).to_bytes())
    for place, value in (
        (0, b"XM1\0"),
        (4, b"\x09\0\0\0"),
        (len(data) - 8, b"\0\0\0\0\0\0\xf0\xff"),
    ):
        bad = bytes(data[:place]) + value + bytes(data[place + len(value) :])
        with pytest.raises(CodecError):
            CountMin.from_bytes(bad)


@pytest.mark.parametrize("weights", [[-1.0], [float("nan")], [float("inf")], [1.0, 2.0]])
def test_weights_that_make_no_sense_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError):
        CountMin.sized(0.1, 0.1).update([b"a"], weights)


def test_old_weights_fade() -> None:
    sketch = CountMin.sized(0.1, 0.1)
    sketch.update([b"a"], [8.0])
    sketch.decay(0.25)
    assert (sketch.estimate([b"a"])[0], sketch.total) == (2.0, 2.0)
    sketch.reset()
    assert (sketch.estimate([b"a"])[0], sketch.total) == (0.0, 0.0)


def test_more_keys_than_are_remembered() -> None:
    few = HashFamily(2, 1 << 20, 3)
    keys = [b"key %d" % number for number in range(REMEMBERED + 10)]
    once = few.cells(keys).copy()
    pieces = [few.cells(keys[i : i + 1000]) for i in range(0, len(keys), 1000)]
    assert all((once[:, 1000 * i : 1000 * (i + 1)] == part).all() for i, part in enumerate(pieces))


@pytest.mark.parametrize("seed", range(3))
def test_keys_of_any_length_are_told_apart(seed: int) -> None:
    # Of other lengths, filled up with zeros, other in one place of many, longer than go by words.
    keys = [b"\0" * length for length in range(2 * LONG)]
    keys += [b"a" + b"\0" * length for length in range(2 * LONG)]
    keys += [bytes(place == at for place in range(LONG + 9)) for at in range(LONG + 9)]
    found = HashFamily(1, (1 << 32) - 1, seed).cells(keys)
    assert len({*found[0].tolist()}) == len(keys)


def test_cells_do_not_depend_on_what_else_is_asked() -> None:
    keys = [b"", b"\0", b"1234567", b"12345678", b"x" * LONG, b"x" * (LONG + 1), b"y" * 500]
    together = HashFamily(4, 1 << 20, 7).cells(keys)
    for place, key in enumerate(keys):
        alone = HashFamily(4, 1 << 20, 7).cells([key])
        assert (alone[:, 0] == together[:, place]).all()


def test_the_same_in_every_process() -> None:
    program = (
        "from dsp.balance.sketch import CountMin\n"
        "s = CountMin.sized(.1, .1, 42)\n"
        "s.update([b'a', b'a long key, hashed', b''], [1., 2., 3.])\n"
        "print(s.to_bytes().hex())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
            timeout=50,
        ).stdout
        for seed in (0, 1)
    }
    sketch = CountMin.sized(0.1, 0.1, 42)
    sketch.update([b"a", b"a long key, hashed", b""], [1.0, 2.0, 3.0])
    assert seen == {sketch.to_bytes().hex() + "\n"}


@pytest.mark.parametrize("seed", range(5))
def test_as_the_package_datasketches_within_the_bound(seed: int) -> None:
    epsilon, delta = 0.02, 0.02
    keys = zipf(20_000, 1000, seed)
    ours = CountMin.sized(epsilon, delta, seed)
    ours.update(keys)
    theirs = datasketches.count_min_sketch(ceil(log2(1 / delta)), ceil(2.7 / epsilon), seed + 1)
    for key in keys:
        theirs.update(key.decode())
    exact = Counter(keys)
    apart = 0
    for key, count in exact.items():
        mine, other = ours.estimate([key])[0], theirs.get_estimate(key.decode())
        assert mine >= count
        assert other >= count
        # Either is off by less than this with probability 1 - delta, so they differ by no more.
        apart += abs(mine - other) > epsilon * (len(keys) - count)
    assert apart <= 3 * 2 * delta * len(exact)
