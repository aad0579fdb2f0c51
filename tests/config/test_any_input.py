"""Whatever comes in, the answer is a configuration or a ConfigError."""

import math
import tempfile
from datetime import date, datetime, time

from hypothesis import example, given
from hypothesis import strategies as st

from dsp.config import Config, ConfigFaults, load_config
from dsp.config.fields import env_name
from dsp.config.fields import settings as all_settings

NAMES = st.one_of(
    st.sampled_from(["node", "transport", "id", "url", *Config().transport.model_dump()]),
    st.text(max_size=10),
)
KEYS = st.one_of(NAMES, st.integers(), st.just(10**4000), st.none(), st.binary(max_size=3))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**400, 10**4000]),
    st.floats(),
    st.text(st.characters()),
    st.binary(),
    st.from_regex(r"[a-z]{1,5}://[^/]{0,8}", fullmatch=True),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.builds(object),
    st.complex_numbers(),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4), st.tuples(inner)
    ),
    max_leaves=10,
)
SECTIONS = st.one_of(st.dictionaries(KEYS, VALUES, max_size=6), VALUES)
# Half of the examples reach the settings; purely random keys never would.
TREES = st.one_of(
    st.dictionaries(KEYS, VALUES, max_size=5),
    st.fixed_dictionaries({}, optional={"node": SECTIONS, "transport": SECTIONS}),
)


def load_or_fault(**arguments: object) -> None:
    try:
        config = load_config(**arguments)  # type: ignore[arg-type]
    except ConfigFaults as error:
        faults = error
    else:
        assert config.transport.max_frame_bytes <= config.transport.send_queue_bytes
        assert math.isfinite(config.transport.drain_timeout)
        return
    assert faults.faults
    assert len(str(faults).splitlines()) == len(faults.faults)
    # Lone surrogates would make printing fail.
    str(faults).encode()


@given(TREES)
@example({"transport": {"url": "a://\ud800"}})
@example({"transport": {"drain_timeout": datetime.min, "url": date.min, "x": time.min}})
def test_any_dict(overrides: dict[str, object]) -> None:
    load_or_fault(env={}, overrides=overrides)


@given(
    st.dictionaries(
        st.one_of(
            st.sampled_from([env_name(setting.path) for setting in all_settings(Config)]),
            st.text(max_size=10).map(lambda text: f"DSP_{text}"),
        ),
        st.text(),
    )
)
def test_any_environment(env: dict[str, str]) -> None:
    load_or_fault(env=env)


@given(
    data=st.one_of(
        st.binary(), st.text().map(str.encode), st.text("[]{}=\n\"'#a.1 ").map(str.encode)
    )
)
def test_any_file(data: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".toml") as file:
        file.write(data)
        file.flush()
        load_or_fault(path=file.name, env={})
