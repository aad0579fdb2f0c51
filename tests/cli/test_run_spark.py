"""``dsp run --engine spark``: what is refused before Spark is started."""

import pytest
from typer.testing import CliRunner

from dsp.cli.app import app
from dsp.errors import ConfigError

DIAMOND = "examples.graphs.diamond:pipeline"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ("--master local[2]", "--master: has an effect with --engine spark only"),
        ("--spark-option a=b --package x.zip", "--package, --spark-option: has an effect"),
        ("--engine spark --transport zmq://127.0.0.1:0", "--transport: has no effect"),
        ("--engine spark --spark-option a", "--spark-option a: write KEY=VALUE"),
        ("--engine spark --master nowhere", "master 'nowhere': Spark knows local"),
        ("--engine spark --master sc://h", "sc://h is a Spark Connect server"),
    ],
)
def test_what_does_not_fit_is_told(arguments: str, what: str) -> None:
    done = CliRunner().invoke(app, ["run", DIAMOND, *arguments.split()])
    assert done.exit_code
    assert isinstance(done.exception, ConfigError)
    assert what in str(done.exception)
