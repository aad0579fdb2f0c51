"""Fixtures of the contract tests."""

from collections.abc import Iterator

import pytest

from tests.contract.tcp_package import tcp_installed


@pytest.fixture(scope="module")
def tcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make ``tcp://`` known to the registry for the tests of a module."""
    with tcp_installed(tmp_path_factory.mktemp("site")):
        yield
