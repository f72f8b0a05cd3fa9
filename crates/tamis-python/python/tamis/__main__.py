"""arguments -> exit code: the command ``tamis``, and ``python -m tamis``."""

import signal
import sys

from tamis._tamis import _command


def main() -> int:
    """Runs the command line of the Rust program."""
    # An interrupt ends it as it ends any program, and the program itself removes its temporary files.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _command(["tamis", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
