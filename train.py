"""`python train.py ...` is `playground train ...`."""

import sys

from playground.cli.main import main

sys.argv.insert(1, "train")
sys.exit(main())
