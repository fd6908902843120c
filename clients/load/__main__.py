"""``python -m clients.load``: see ``command.py``."""

import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the program is loaded there is no output and no result
    from clients.load.command import main
    from stock_service.rpc.process.beginning import printing

    sys.exit(printing(main))
