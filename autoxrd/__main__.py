"""``python -m autoxrd``: the same command as ``autoxrd``."""

from autoxrd.cli.main import main

if __name__ == "__main__":
    main()
