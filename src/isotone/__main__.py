"""`python -m isotone` is the `isotone` command."""

import sys

from isotone.cli import main

if __name__ == "__main__":
    sys.exit(main())
