"""`python infer.py ...` is `playground infer ...`."""

import sys

from playground.cli.main import main

sys.argv.insert(1, "infer")
sys.exit(main())
