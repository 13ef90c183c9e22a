"""``python -m agentrio.cli``, where the ``agentrio`` script is not on the path."""

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
