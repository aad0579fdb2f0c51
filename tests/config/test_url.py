"""The shape of transport URLs, and that no message repeats a secret."""

import pytest

from dsp.config import examine, load_config


def fault(url: object) -> str:
    (found,) = examine(env={}, overrides={"transport": {"url": url}}).faults
    assert found.path == "transport.url"
    assert found.hint
    return str(found)


@pytest.mark.parametrize(
    "url",
    [
        "sim://world/node-a",
        "zmq://0.0.0.0:5555",
        "zmq://*:5555",
        "zmq://[::1]:5555",
        "grpc://[::]",
        "grpcs://gateway.example:0",
        "kafka://b1:9092,b2:9092/prefix",
        "zmq+ipc:///run/dsp.sock",
        "unknown-scheme://anywhere",
        "zmq://host:1?linger=5&monkey=1",
    ],
)
def test_good(url: str) -> None:
    assert load_config(env={}, overrides={"transport": {"url": url}}).transport.url == url


def test_scheme_becomes_lower_case() -> None:
    config = load_config(env={}, overrides={"transport": {"url": "ZMQ://Host:1"}})
    assert config.transport.url == "zmq://Host:1"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "has no scheme"),
        ("localhost:5555", "has no scheme"),
        ("://host", "has no scheme"),
        ("1zmq://host", "has no scheme"),
        ("zmq:host", "has no scheme"),
        ("zmq://", "has no address"),
        ("zmq:///", "has no address"),
        ("zmq://host: 1", "white space"),
        ("zmq://ho\nst", "white space"),
        ("zmq://host\0", "white space"),
        ("zmq://host:port", "malformed port"),
        ("zmq://host:", "malformed port"),
        ("zmq://host:65536", "malformed port"),
        ("zmq://host:-1", "malformed port"),
        ("zmq://host:1:2", "malformed port"),
        ("zmq://::1", "empty host"),
        ("zmq://:5555", "empty host"),
        ("kafka://b1:1,,b2:1", "empty host"),
        ("zmq://[::1", "does not parse"),
        ("zmq://[::1]x", "IPv6"),
        ("zmq://host#part", "fragment"),
        ("zmq://" + "a" * 2048, "at most 2048 characters"),
    ],
)
def test_bad(url: str, problem: str) -> None:
    assert problem in fault(url)


@pytest.mark.parametrize(
    "url",
    [
        "kafka://user:hunter2@b1:9092",
        "kafka://b0:1,user:hunter2@b1:9092",
        "kafka://hunter2@b1:9092",
        "kafka://user:hunter2/x@b1:9092",
        "kafka://user:hunter2?x@b1:9092",
        "kafka://user:hunter2#x@b1:9092",
        "kafka://b1?sasl.password=hunter2",
        "kafka://b1?a=1;ToKeN=hunter2",
        "kafka://b1?p%61ssword=hunter2",
        "kafka://b1?api_key=hunter2",
        "kafka://b1?key=hunter2",
        ["kafka://user:hunter2@b1:9092"],
        {"x": "kafka://b1?secret=hunter2"},
        ["kafka://" + "u" * 100 + ":hunter2" + "x" * 15 + "@b1:9092"],
    ],
)
def test_secrets_are_refused_and_never_repeated(url: object) -> None:
    assert "hunter2" not in fault(url)


def test_hint_says_where_secrets_belong() -> None:
    assert "the transport's own section" in fault("kafka://user:hunter2@b1:9092")
    assert "the transport's own section" in fault("kafka://b1?password=hunter2")
