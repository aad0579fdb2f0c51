"""The [scaling] table: defaults, overrides by operator, faults with their paths."""

from pathlib import Path
from random import Random
from typing import get_args

import pytest

from dsp.config import ConfigFaults, ScaleRules, examine, load_config
from dsp.config.scaling import DeciderName
from dsp.core.types import NodeId
from dsp.scaling.deciders import DECIDERS, STAY, Duplicate, Observation, Report, configured_decider


def faults(text: str, folder: Path, env: dict[str, str] | None = None) -> list[str]:
    path = folder / "dsp.toml"
    path.write_text(text)
    with pytest.raises(ConfigFaults) as caught:
        load_config(path, env=env or {})
    return [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]


def test_every_decider_can_be_configured() -> None:
    assert get_args(DeciderName) == tuple(DECIDERS)
    me = NodeId("a")
    for name in get_args(DeciderName):
        decider = configured_decider(ScaleRules(decider=name), Random(1))
        on_target = Observation(0.0, me, 70.0, 100.0, report=Report((me,)))
        assert decider.decide(on_target) == STAY


def test_an_operator_takes_what_it_leaves_out_from_the_general_table(tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text(
        "[scaling]\n"
        "period = 2.0\n"
        "maximum = 8\n"
        "[scaling.operators.map]\n"
        'decider = "threshold"\n'
        "maximum = 3\n"
        '[scaling.operators."a b"]\n'
    )
    scaling = load_config(path, env={}).scaling
    assert scaling.of("map") == ScaleRules(decider="threshold", period=2.0, maximum=3)
    assert scaling.of("other").maximum == 8
    assert scaling.of("other").decider == "ranked"


def test_sources_override_each_other_key_by_key(tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text("[scaling.operators.map]\nminimum = 2\nmaximum = 3\n")
    env = {
        "DSP_SCALING__PERIOD": "9",
        "DSP_SCALING__OPERATORS": '{"map": {"maximum": 4}, "out": {"low": 0.5}}',
    }
    overrides = {"scaling": {"operators": {"out": {"cool_down": 1.0}}}}
    scaling = load_config(path, env=env, overrides=overrides).scaling
    assert scaling.of("map") == ScaleRules(period=9.0, minimum=2, maximum=4)
    assert scaling.of("out") == ScaleRules(period=9.0, low=0.5, cool_down=1.0)
    found = examine(path, env=env)
    assert str(found.sources["scaling.operators.map.minimum"]).endswith("dsp.toml:2")
    assert load_config(overrides={"scaling": scaling}, env={}).scaling == scaling


def test_faults_have_their_paths(tmp_path: Path) -> None:
    assert faults(
        "[scaling]\n"
        "low = 0.75\n"
        'decider = "best"\n'
        "minimum = 5\n"
        "maximum = 4\n"
        "[scaling.operators.map]\n"
        "high = 0.5\n"
        "low = 0.1\n"
        "[scaling.operators.out]\n"
        "perid = 3.0\n"
        "cool_down = -1.0\n",
        tmp_path,
    ) == [
        "dsp.toml:2: scaling.target: 0.7 is below low (0.75) (raise it or lower low)",
        "dsp.toml:3: scaling.decider: must be 'probabilistic', 'secure', 'ranked', 'centralised', "
        "'threshold' or 'autoscale+', got 'best' (allowed: 'probabilistic', 'secure', 'ranked', "
        "'centralised', 'threshold', 'autoscale+')",
        "dsp.toml:5: scaling.maximum: 4 is below minimum (5) (raise it or lower minimum)",
        "dsp.toml:7: scaling.operators.map.high: 0.5 is below target (0.7) (raise it or lower "
        "target)",
        "dsp.toml:10: scaling.operators.out.perid: unknown key (did you mean period?)",
        "dsp.toml:11: scaling.operators.out.cool_down: must be greater than or equal to 0, "
        "got -1.0 (allowed: a number from 0.0 to 86400.0)",
    ]


def test_tables_that_are_none(tmp_path: Path) -> None:
    assert faults("[scaling.operators]\nmap = 3\n", tmp_path) == [
        "dsp.toml:2: scaling.operators.map: must be a table, got 3 (its keys: "
        f"{', '.join(ScaleRules.model_fields)})"
    ]
    env = {"DSP_SCALING__OPERATORS": "soon"}
    assert faults("", tmp_path, env) == [
        "environment DSP_SCALING__OPERATORS: scaling.operators: must be a table, got 'soon' (one "
        "table for each name)"
    ]
    found = examine(env={}, overrides={"scaling": {"operators": {3: {}}}})
    assert [(fault.path, fault.problem) for fault in found.faults] == [
        ("scaling.operators.3", "is no name")
    ]


def test_a_configured_decider_keeps_its_bounds() -> None:
    rules = ScaleRules(decider="ranked", maximum=2, cool_down=10.0, target=0.5, low=0.4, high=0.6)
    me, other = NodeId("a"), NodeId("b")

    def seen(now: float, *siblings: NodeId) -> Observation:
        return Observation(now, me, 900.0, 1000.0, report=Report(siblings))

    decider = configured_decider(rules, Random(1))
    assert decider.decide(seen(0.0, me)) == Duplicate(1)
    assert decider.decide(seen(5.0, me)) == STAY
    assert decider.decide(seen(20.0, me)) == Duplicate(1)
    assert decider.decide(seen(40.0, me, other)) == STAY


def test_one_coordination_for_all_operators(tmp_path: Path) -> None:
    path = tmp_path / "dsp.toml"
    path.write_text('[scaling]\ncoordination = "2fgme"\n[scaling.operators.map]\nperiod = 2.0\n')
    assert load_config(path, env={}).scaling.coordination == "2fgme"
    (wrong,) = faults('[scaling]\ncoordination = "both"\n', tmp_path)
    assert "scaling.coordination" in wrong
    (misplaced,) = faults('[scaling.operators.map]\ncoordination = "2fgme"\n', tmp_path)
    assert "scaling.operators.map.coordination" in misplaced
