"""Settings as one process tells them another: the same values, checked no more."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from dsp.config import Config, TransportConfig
from dsp.config.told import Told, tell, told

EDGE = TransportConfig.edge("zmq://127.0.0.1:5555").model_dump(exclude_unset=True)
SET: dict[str, Any] = {
    "node": {"id": "gateway"},
    "transport": {
        **EDGE,
        "zmq": {"allowed_keys": ("a" * 64, "b" * 64)},
        "kafka": {"password_file": Path("secret")},
    },
    "scaling": {"period": 3.0, "operators": {"map": {"decider": "threshold", "maximum": 3}}},
}


@pytest.mark.parametrize("values", [{}, SET])
def test_what_is_told_has_the_same_values(values: dict[str, Any]) -> None:
    config = Config.model_validate(values)
    heard = told(orjson.loads(orjson.dumps(tell(config))))
    compare(config, heard)
    # It may be told once more, and what only a model can do is done by one.
    assert tell(heard) == tell(config)
    assert heard.model_dump() == config.model_dump()


def compare(expected: Any, heard: Any) -> None:  # noqa: ANN401 - any setting
    if isinstance(expected, dict):
        assert expected.keys() == heard.keys()
        for name, value in expected.items():
            compare(value, heard[name])
    elif isinstance(heard, Told):
        for name in type(expected).model_fields:
            compare(getattr(expected, name), getattr(heard, name))
    else:
        assert (type(heard), heard) == (type(expected), expected)


def test_a_copy_has_other_values_and_leaves_the_first_as_it_was() -> None:
    heard = told(tell(Config()))
    transport = heard.transport.model_copy(update={"url": "zmq://127.0.0.1:1"})
    copy = heard.model_copy(update={"transport": transport})
    assert told(tell(copy)).transport.url == "zmq://127.0.0.1:1"
    assert heard.transport.url == Config().transport.url


def test_what_no_model_has_is_missed() -> None:
    heard = told(tell(Config()))
    for name in ("nothing", "_nothing"):
        with pytest.raises(AttributeError):
            getattr(heard, name)
