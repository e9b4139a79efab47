"""Run the `tagsmith` command with `python -m tagsmith.app.cli`."""

import sys

from tagsmith.app.cli.main import main

sys.exit(main())
