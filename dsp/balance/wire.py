"""Messages of balancers as protobuf, and back."""

from dsp._pb.balance_pb2 import BalanceFrame, BalanceMatrices, BalanceReply, BalanceRequest
from dsp.balance.events import BalanceMessage, Matrices, Reply, Request
from dsp.errors import CodecError

__all__ = ["from_frame", "from_request", "to_frame", "to_request"]

MOST_CELLS = 1 << 20


def to_frame(message: BalanceMessage, operator: str) -> BalanceFrame:
    """Put a message into a frame.

    Args:
        message: of an instance.
        operator: what the sender is an instance of.
    """
    match message:
        case Matrices(rows, columns, seed, counts, seconds):
            matrices = BalanceMatrices(
                rows=rows, columns=columns, seed=seed, counts=counts, seconds=seconds
            )
            return BalanceFrame(operator=operator, matrices=matrices)
        case Reply(epoch, difference):
            reply = BalanceReply(epoch=epoch, difference=difference)
            return BalanceFrame(operator=operator, reply=reply)


def from_frame(frame: BalanceFrame) -> BalanceMessage:
    """Read the message in a frame.

    Raises:
        CodecError: there is none that this release knows, or matrices of another size.
    """
    match frame.WhichOneof("body"):
        case "matrices":
            body = frame.matrices
            cells = body.rows * body.columns
            if not 0 < cells <= MOST_CELLS or {len(body.counts), len(body.seconds)} != {cells}:
                raise CodecError(f"matrices of {body.rows} x {body.columns} cells that are not all")
            return Matrices(
                body.rows, body.columns, body.seed, tuple(body.counts), tuple(body.seconds)
            )
        case "reply":
            return Reply(frame.reply.epoch, frame.reply.difference)
        case _:
            raise CodecError("a frame of balancing without a body that this release knows")


def to_request(request: Request) -> BalanceRequest:
    """Put a request into the form in which it travels with a batch."""
    return BalanceRequest(epoch=request.epoch, estimate=request.estimate)


def from_request(request: BalanceRequest) -> Request:
    """Read a request."""
    return Request(request.epoch, request.estimate)
