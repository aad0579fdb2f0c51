"""Which successor gets a record: owners of keys, and splitting a batch by them.

Keys belong to instances by rendezvous hashing: each (key, instance) has a number, and the largest
wins. When an instance comes or goes, only the keys that it gets or had change their owner.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from dsp.core.types import NodeId
from dsp.stream.batch import Batch

__all__ = ["Owners", "split", "key_bytes"]

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
            owner = max(self._names, key=lambda pair: _weight(data, pair[1]))[0]
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = owner
        return owner


def _weight(key: bytes, name: bytes) -> bytes:
    return blake2b(key, digest_size=8, key=name[:64]).digest()


def split(batch: Batch, key: Callable[[Any], Any], owners: Owners) -> dict[NodeId, Batch]:
    """Split a batch by the owners of its keys, keeping the order within each part."""
    if len(owners.instances) == 1:
        return {owners.instances[0]: batch}
    parts: dict[NodeId, tuple[list[int], list[Any], list[int]]] = {}
    rows = isinstance(batch.values, list)
    values = batch.values if isinstance(batch.values, list) else batch.values.to_pylist()
    of = owners.of
    for place, (value, each) in enumerate(zip(values, batch.ids, strict=True)):
        owner = of(key(value))
        part = parts.get(owner)
        if part is None:
            part = parts[owner] = ([], [], [])
        part[0].append(place)
        part[1].append(value)
        part[2].append(each)
    return {
        owner: Batch(kept if rows else batch.values.take(places), ids, batch.born)  # type: ignore[union-attr]
        for owner, (places, kept, ids) in parts.items()
    }
