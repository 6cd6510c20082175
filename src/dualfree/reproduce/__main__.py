"""``python -m dualfree.reproduce``: the same as ``dualfree reproduce``."""

import sys

from ..cli import main

main(["reproduce", *sys.argv[1:]])
