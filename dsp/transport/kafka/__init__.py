"""``kafka://host:port,host:port/prefix``: frames as records of Apache Kafka."""
