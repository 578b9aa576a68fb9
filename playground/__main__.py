"""`python -m playground` is the command `playground`."""

import sys

from playground.cli.main import main

sys.exit(main())
