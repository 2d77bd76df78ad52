"""Get the trained model that one chapter runs.

    python tools/model.py           what `make book` does: get its files and check them
    python tools/model.py record    make the small file again that the package carries

With nothing to be had the book builds all the same: that chapter then shows what it can from the
small file.
"""

import argparse
import io
import sys
import zipfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "code"))

from worked_examples import sentences, weights  # noqa: E402

SMALL = ROOT / "code" / "worked_examples" / "data" / "sentences.npz"


def packed(arrays):
    """Pack arrays as numpy does, but the same bytes from the same numbers: without the time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.save(entry, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), entry.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def main(arguments=None):
    """Get the files, or say in one line why there are none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", nargs="?", choices=["record"])
    options = parser.parse_args(arguments)
    try:
        if options.action != "record":
            weights.obtain()
            return 0
        SMALL.write_bytes(packed(sentences.measure(sentences.Model(*weights.load()))))
        print(f"{SMALL.relative_to(ROOT)}: {SMALL.stat().st_size:,} bytes", flush=True)
    except weights.Unavailable as fault:
        print(f"The chapter on a trained model goes without its file: {fault}.", flush=True)
        return int(options.action == "record")
    return 0


if __name__ == "__main__":
    sys.exit(main())
