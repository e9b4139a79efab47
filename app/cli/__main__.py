"""`python -m app.cli` is `tagsmith`."""

import sys

from app.cli.main import main

sys.exit(main())
