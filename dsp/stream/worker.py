"""The main program of a process that runs one instance.

``python -m dsp.stream.worker APPLICATION URL`` imports what these name, reads an order from
standard input, tells its endpoint on standard output, and ends when its instance does. Without an
order it just ends.
"""

import gc

__all__ = ["main"]


def main() -> None:
    """Import what an instance needs, read an order and carry it out."""
    # What is imported stays: to look through it for cycles, time and again, finds none.
    gc.disable()
    from dsp.stream.newcomer import run

    run()


if __name__ == "__main__":
    main()
