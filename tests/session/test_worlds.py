"""Ten nodes over bad links, cut off, killed and restarted at random: the books are right."""

from collections.abc import Callable

import pytest

from dsp.core.types import Lane, NodeId
from dsp.testing import World
from tests.session.ledger import Ledger
from tests.session.nodes import BadDay


@pytest.mark.dsp_seeds(100)
def test_nothing_is_lost_doubled_or_out_of_order(world: World) -> None:
    BadDay(world).run()


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.dsp_seeds(1000)
def test_many_more_of_them(world: World) -> None:
    BadDay(world, friends=3, frames=100, span=10.0).run()


def test_a_timer_that_fires_a_little_early() -> None:
    # In this world one does, by less than the clock can tell, while a node closes: without care the
    # tick finds nothing due, arms itself anew, and time stands still.
    with World(28) as world:
        BadDay(world, friends=3, frames=100, span=10.0).run()


# -- the test of the test ---------------------------------------------------------------------

A, B = (NodeId("a"), 1), (NodeId("b"), 1)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda books, one, two: None, "lost"),
        (lambda books, one, two: books.arrive(B, Lane.DATA, (one, one)), "came after"),
        (lambda books, one, two: books.arrive(B, Lane.DATA, (two, one)), "came after"),
        (lambda books, one, two: books.arrive(A, Lane.DATA, (one,)), "ended at"),
        (lambda books, one, two: books.arrive(B, Lane.CONTROL, (one,)), "ended at"),
        (lambda books, one, two: books.name(A, Lane.DATA, B[0], (two,)), "not named"),
        (lambda books, one, two: books.name(A, Lane.DATA, B[0], (two, one)), "gaps"),
        (lambda books, one, two: books.name(A, Lane.CONTROL, B[0], (one,)), "of others"),
        (lambda books, one, two: books.name(A, Lane.DATA, B[0], (one, two)), "for no reason"),
    ],
)
def test_the_books_object(fault: Callable[[Ledger, bytes, bytes], None], message: str) -> None:
    books = Ledger()
    one, two = (books.offer(A, B[0], Lane.DATA, 10) for _ in range(2))
    with pytest.raises(AssertionError, match=message):  # noqa: PT012 - at once, or at the end
        fault(books, one, two)
        books.check()


def test_the_books_agree_to_what_is_right() -> None:
    books = Ledger()
    one, two, three = (books.offer(A, B[0], Lane.DATA, 10) for _ in range(3))
    books.arrive(B, Lane.DATA, (one,))
    books.take(B, Lane.DATA, one)
    books.trouble(A[0], B[0])
    books.name(A, Lane.DATA, B[0], (two, three))
    books.arrive(B, Lane.DATA, (two,))
    books.check()
