"""Real Apache Spark for tests: with nothing but PySpark and a Java on the machine.

The pytest plug-in of dsp has the fixture ``spark_session``, a Spark inside the test process.
``start_cluster`` gives a standalone master with workers, ``start_connect_server`` a Spark Connect
server; both are processes on loopback, on ports that were free.
"""

from dsp.testing.spark.cluster import Cluster, ConnectServer, start_cluster, start_connect_server
from dsp.testing.spark.process import Daemon, SparkStartError

__all__ = [
    "start_cluster",
    "Cluster",
    "start_connect_server",
    "ConnectServer",
    "Daemon",
    "SparkStartError",
]
