"""``zmq+tcp://`` and ``zmq+ipc://``: a brokerless mesh over ZeroMQ. ``zmq://`` is zmq+tcp."""
