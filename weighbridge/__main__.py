"""The program `weighbridge`, also as `python -m weighbridge`."""

import signal


def main() -> None:
    """Run the command line, see `command.main`.

    While it is imported nothing has to be cleaned up: Ctrl-C ends it as it ends any other program.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from weighbridge.command import main as run  # noqa: PLC0415 - see above

    run()


if __name__ == "__main__":
    main()
