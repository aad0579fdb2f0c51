"""Variables: which are settings, which look like settings, and what their text means."""

from typing import Literal

import pytest
from pydantic import Field, SecretStr

from dsp.config import examine, load_config
from dsp.config.load import examine_as
from dsp.config.section import Section


class Inner(Section):
    """An inner section, as the transports' own will be."""

    names: list[str] = Field(default=[])
    limits: dict[str, int] = Field(default={})
    pair: tuple[int, ...] = Field(default=(), strict=False)
    on: bool = False
    mode: Literal["a", "b"] = "a"
    secret: SecretStr = SecretStr("")
    many: int | None = None


class Outer(Section):
    """A section with one inside."""

    inner: Inner = Inner()


class Example(Section):
    """A root."""

    outer: Outer = Outer()


def lines(**env: str) -> list[str]:
    return [str(fault) for fault in examine(env=env).faults]


@pytest.mark.parametrize(
    "name",
    [
        "DSP_KAFKA_BOOTSTRAP",
        "DSP_SEED",
        "DSP_",
        "DSP_TRANSPORTS",
        "DSPX__Y",
        "dsp_node__id",
        "PATH",
    ],
)
def test_plain_variables_are_left_alone(name: str) -> None:
    assert lines(**{name: "x"}) == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("DSP_TRANSPORT__ULR", "transport.ulr: unknown setting (did you mean DSP_TRANSPORT__URL?)"),
        ("DSP_transport__url", "transport.url: unknown setting (did you mean DSP_TRANSPORT__URL?)"),
        ("DSP_NODE__ID__X", "node.id.x: unknown setting (did you mean DSP_NODE__ID?)"),
        ("DSP_TRANSPORT_URL", "unknown variable (did you mean DSP_TRANSPORT__URL?)"),
        (
            "DSP_TRANSPORT",
            "transport: is a section, not a setting "
            "(set its keys one by one, as in DSP_TRANSPORT__URL)",
        ),
    ],
)
def test_variables_that_look_like_settings(name: str, line: str) -> None:
    assert lines(**{name: "x"}) == [f"environment {name}: {line}"]


def test_unknown_section_lists_what_is_known() -> None:
    (line,) = lines(DSP_Q__Q="1")
    assert line.startswith("environment DSP_Q__Q: q.q: unknown setting (allowed: DSP_NODE__ID, ")


def test_text_becomes_what_the_setting_is() -> None:
    config = load_config(
        env={
            "DSP_NODE__ID": "12",
            "DSP_TRANSPORT__SEND_QUEUE_FRAMES": " 12 ",
            "DSP_TRANSPORT__DRAIN_TIMEOUT": "0.5",
            "DSP_TRANSPORT__CONNECT_TIMEOUT": "1e1",
        }
    )
    assert config.node.id == "12"
    assert config.transport.send_queue_frames == 12
    assert config.transport.drain_timeout == 0.5
    assert config.transport.connect_timeout == 10.0


def test_empty_text_unsets_an_optional_setting() -> None:
    assert load_config(env={"DSP_NODE__ID": ""}).node.id is None


@pytest.mark.parametrize("text", ["", "x", "1.5", "1e3", "0x10", "9" * 5000])
def test_text_that_is_no_integer(text: str) -> None:
    (line,) = lines(DSP_TRANSPORT__SEND_QUEUE_FRAMES=text)
    assert "transport.send_queue_frames: must be a valid integer" in line


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "x"])
def test_text_that_is_no_duration(text: str) -> None:
    (line,) = lines(DSP_TRANSPORT__DRAIN_TIMEOUT=text)
    assert "transport.drain_timeout: must be" in line


def test_undecodable_bytes_are_a_fault() -> None:
    (line,) = lines(DSP_NODE__ID="\udcff")
    assert line.isprintable()


def test_inner_sections_and_json() -> None:
    env = {
        "DSP_OUTER__INNER__NAMES": '["a", "b"]',
        "DSP_OUTER__INNER__LIMITS": '{"x": 1}',
        "DSP_OUTER__INNER__PAIR": "[1, 2]",
        "DSP_OUTER__INNER__ON": "Yes",
        "DSP_OUTER__INNER__MODE": "b",
        "DSP_OUTER__INNER__SECRET": "s3cret",
        "DSP_OUTER__INNER__MANY": "3",
    }
    config = examine_as(Example, env=env).config
    assert config is not None
    inner = config.outer.inner
    assert (inner.names, inner.limits, inner.pair) == (["a", "b"], {"x": 1}, (1, 2))
    assert (inner.on, inner.mode, inner.many) == (True, "b", 3)
    assert inner.secret.get_secret_value() == "s3cret"


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("NAMES", "[", "names: must be a valid list, got '[' (allowed: a list)"),
        ("NAMES", "[1]", "names.0: must be a valid string, got 1"),
        ("LIMITS", "[]", "limits: must be a valid dictionary, got [] (allowed: a table)"),
        ("ON", "maybe", "on: must be a valid boolean, got 'maybe' (allowed: true or false)"),
        ("MODE", "c", "mode: must be 'a' or 'b', got 'c' (allowed: 'a', 'b')"),
    ],
)
def test_faults_in_inner_sections(key: str, text: str, words: str) -> None:
    name = f"DSP_OUTER__INNER__{key}"
    (fault,) = examine_as(Example, env={name: text}).faults
    assert str(fault) == f"environment {name}: outer.inner.{words}"


def test_secrets_are_never_shown() -> None:
    overrides = {"outer": {"inner": {"secret": ["s3cret"]}}}
    (fault,) = examine_as(Example, env={}, overrides=overrides).faults
    assert "s3cret" not in str(fault)
