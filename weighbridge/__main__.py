"""`python -m weighbridge` is the command `weighbridge`."""

from weighbridge.command import main

if __name__ == "__main__":
    main()
