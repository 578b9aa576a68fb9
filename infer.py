"""`python infer.py ...` is `playground infer ...`."""

import sys

from playground.cli.main import main

sys.exit(main(["infer", *sys.argv[1:]]))
