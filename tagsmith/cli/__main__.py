"""Run the `tagsmith` command with `python -m tagsmith.cli`."""

import sys

from tagsmith.cli.main import main

sys.exit(main())
