"""``python -m dsp.cli``: the ``dsp`` command where the script is not on the path."""

from dsp.cli.main import run

if __name__ == "__main__":
    run()
