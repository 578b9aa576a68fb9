"""`python train.py ...` is `playground train ...`."""

import sys

from playground.cli.main import main

sys.exit(main(["train", *sys.argv[1:]]))
