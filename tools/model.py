"""Get the trained model that one chapter runs.

    python tools/model.py    what `make book` does: get its files and check them

With nothing to be had the book builds all the same: that chapter then shows what it can from the
small file that the package carries.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "code"))

from worked_examples import weights


def main():
    """Get the files, or say in one line why there are none."""
    try:
        weights.obtain()
    except weights.Unavailable as fault:
        print(f"The chapter on a trained model goes without: {fault}.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
