"""What a broker for tests is told: its listeners and its ``server.properties``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Listener", "BrokerOptions", "server_properties", "SCRAM_MECHANISMS"]

SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")

_JAAS = "org.apache.kafka.common.security"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

# Quick to start, quick to notice that a broker died, and nothing by accident.
_FOR_TESTS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    "controller.quorum.append.linger.ms": "0",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "log.index.size.max.bytes": "65536",
    "log.cleaner.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "4",
}


@dataclass(frozen=True, slots=True)
class Listener:
    """One more port of a broker, with its own security.

    Attributes:
        name: name of the listener, in capitals.
        protocol: ``SSL``, ``SASL_PLAINTEXT`` or ``SASL_SSL``.
        mechanisms: SASL mechanisms that it takes: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512.
        key_store: PEM file with the private key and the certificates of the broker.
        trust_store: PEM file with the authority whose client certificates are taken; without it
            clients need none.
    """

    name: str
    protocol: str
    mechanisms: Sequence[str] = ()
    key_store: Path | None = None
    trust_store: Path | None = None


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """How brokers differ from the plain one.

    Attributes:
        listeners: ports beside the plain one.
        users: passwords of the SASL users by name.
        super_users: users who may do everything. If not empty, all others may do nothing; clients
            of the plain port may do everything in any case.
        settings: more lines for ``server.properties``; they win.
        data: folder for what brokers store, each below its number; a disk that a test fills, for
            instance. By default they store it beside their settings.
    """

    listeners: Sequence[Listener] = ()
    users: Mapping[str, str] = field(default_factory=dict)
    super_users: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    data: Path | None = None

    def scram_arguments(self) -> list[str]:
        """Give the arguments of the storage tool that create the users for SCRAM."""
        wanted = [m for m in SCRAM_MECHANISMS if any(m in on.mechanisms for on in self.listeners)]
        return [
            argument
            for mechanism in wanted
            for name, password in self.users.items()
            for argument in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]


def server_properties(
    options: BrokerOptions,
    *,
    node: int,
    voters: Mapping[int, int],
    ports: Mapping[str, int],
    folder: Path,
) -> str:
    """Write the settings of a broker that is its own controller.

    Args:
        options: what is asked for beyond the usual.
        node: number of this broker.
        voters: controller port of every broker by number.
        ports: port of every listener by name, ``PLAINTEXT`` and ``CONTROLLER`` among them.
        folder: where the broker stores its records.
    """
    replicas = str(len(voters))
    addresses = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items()}
    protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"}
    protocols |= {listener.name: listener.protocol for listener in options.listeners}
    settings = {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{p}" for n, p in voters.items()),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": ",".join(addresses.values()),
        "advertised.listeners": ",".join(
            address for name, address in addresses.items() if name != "CONTROLLER"
        ),
        "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
        "log.dirs": str(folder),
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": "1",
        **_FOR_TESTS,
    }
    for listener in options.listeners:
        settings |= _security(listener, options.users)
    if options.super_users:
        settings["authorizer.class.name"] = (
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
        )
        settings["super.users"] = ";".join(
            f"User:{name}" for name in ["ANONYMOUS", *options.super_users]
        )
    settings |= options.settings
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _security(listener: Listener, users: Mapping[str, str]) -> dict[str, str]:
    start = f"listener.name.{listener.name.lower()}"
    settings: dict[str, str] = {}
    if listener.mechanisms:
        settings[f"{start}.sasl.enabled.mechanisms"] = ",".join(listener.mechanisms)
    for mechanism in listener.mechanisms:
        if mechanism == "PLAIN":
            known = "".join(f' user_{name}="{password}"' for name, password in users.items())
            module = f"{_JAAS}.plain.PlainLoginModule required{known};"
        else:
            module = f"{_JAAS}.scram.ScramLoginModule required;"
        settings[f"{start}.{mechanism.lower()}.sasl.jaas.config"] = module
    if listener.key_store is not None:
        settings[f"{start}.ssl.keystore.type"] = "PEM"
        settings[f"{start}.ssl.keystore.location"] = str(listener.key_store)
    if listener.trust_store is not None:
        settings[f"{start}.ssl.truststore.type"] = "PEM"
        settings[f"{start}.ssl.truststore.location"] = str(listener.trust_store)
        settings[f"{start}.ssl.client.auth"] = "required"
    return settings
