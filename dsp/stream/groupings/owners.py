"""Which successor gets a record: owners of keys, and splitting a batch by them.

Keys belong to instances by rendezvous hashing: each (key, instance) has a number, and the largest
wins. When an instance comes or goes, only the keys that it gets or had change their owner.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from dsp.core.types import NodeId
from dsp.stream.batch import Batch, chosen

__all__ = ["Owners", "split", "divided", "key_bytes", "keys_of", "rows_of", "weight"]

MOST_REMEMBERED = 100_000


def key_bytes(key: object) -> bytes:
    """Give the bytes of a key, the same in every process."""
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, str):
        return b"s" + key.encode()
    return orjson.dumps(key, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


class Owners:
    """Who owns which key, among the instances of one operator.

    Args:
        instances: those that there are. Another set of them is another object.
    """

    def __init__(self, instances: Sequence[NodeId]) -> None:
        self.instances = tuple(instances)
        self._names = [(name, name.encode()) for name in instances]
        self._remembered: dict[Any, NodeId] = {}

    def of(self, key: Any) -> NodeId:  # noqa: ANN401
        """Give the instance that owns a key."""
        owner = self._remembered.get(key)
        if owner is None:
            data = key_bytes(key)
            owner = max(self._names, key=lambda pair: weight(data, pair[1]))[0]
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = owner
        return owner


def weight(key: bytes, name: bytes) -> bytes:
    """Give the number of a key and an instance; the owner has the largest."""
    return blake2b(key, digest_size=8, key=name[:64]).digest()


def split(batch: Batch, key: Callable[[Any], Any], owners: Owners) -> dict[NodeId, Batch]:
    """Split a batch by the owners of its keys, keeping the order within each part."""
    if len(owners.instances) == 1:
        return {owners.instances[0]: batch}
    of = owners.of
    return divided(batch, [of(key(value)) for value in rows_of(batch)])


def rows_of(batch: Batch) -> list[Any]:
    """Give the values of a batch one by one, also if they are columns."""
    values = batch.values
    return values if isinstance(values, list) else values.to_pylist()


def keys_of(batch: Batch, key: Callable[[Any], Any]) -> list[bytes]:
    """Give the bytes of the key of every record."""
    return [key_bytes(key(value)) for value in rows_of(batch)]


def divided(batch: Batch, targets: Sequence[NodeId]) -> dict[NodeId, Batch]:
    """Divide a batch among those who get its records, keeping the order within each part."""
    places: dict[NodeId, list[int]] = {}
    for place, target in enumerate(targets):
        mine = places.get(target)
        if mine is None:
            places[target] = [place]
        else:
            mine.append(place)
    if len(places) == 1:
        return {next(iter(places)): batch.part(0, len(targets))}
    ids, born = batch.ids, batch.born
    return {
        target: Batch(chosen(batch.values, mine), [ids[place] for place in mine], born)
        for target, mine in places.items()
    }
