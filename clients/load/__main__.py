"""Entry point of ``python -m clients.load``; ``command.py`` has the program."""

import signal
import sys

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt loses nothing before the program is loaded
    from clients.load.command import main
    from stock_service.rpc.process.beginning import printing

    sys.exit(printing(main))
