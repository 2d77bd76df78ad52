"""Execute a chapter again when something that its numbers rest on has changed.

jupyter-cache compares a notebook's own cells only. Here its folder is named after a hash of what
the cells import as well, so that a change to a kernel leads to an empty folder.
"""

import hashlib
import os
import platform
import shutil
from pathlib import Path

from sphinx.util import logging

from worked_examples import weights

LOGGER = logging.getLogger(__name__)
KEY_LENGTH = 16


def execution_key(root):
    """Return a hash of the code and its data, the pins, the Python and the strictness of a build.

    And of whether the trained model's file lies where it is looked for: what a chapter shows
    without it must not stay when it has come.

    Parameters
    ----------
    root : Path
        The folder that holds `code/` and `requirements.txt`.
    """
    digest = hashlib.sha256()
    files = sorted([*(root / "code").rglob("*.py"), *(root / "code").rglob("*.npz")])
    for path in [*files, root / "requirements.txt"]:
        if path.is_file():
            digest.update(path.relative_to(root).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    digest.update(platform.python_version().encode() + b"\0")
    # A strict build fails where a lenient one prints a line: neither may use the other's results.
    digest.update(os.environ.get("WORKED_EXAMPLES_STRICT", "").encode())
    digest.update(str((weights.cache_folder() / "model.safetensors").is_file()).encode())
    return digest.hexdigest()[:KEY_LENGTH]


def choose_folder(app, config):
    """Point myst-nb at the folder of the present key, and delete those of earlier keys."""
    root = Path(app.srcdir)
    caches = root / "_build" / ".jupyter_cache"
    chosen = caches / execution_key(root)
    config.nb_execution_cache_path = str(chosen)
    for folder in caches.glob("*/"):
        if folder != chosen:
            LOGGER.info("code changed: dropping the results kept in %s", folder.name)
            shutil.rmtree(folder)


def setup(app):
    """Run before myst-nb reads its settings."""
    app.connect("config-inited", choose_folder)
