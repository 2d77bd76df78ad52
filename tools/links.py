"""Say which links to other sites are dead, from what Sphinx's linkcheck builder has written.

    python tools/links.py           reads _build/linkcheck/output.json; exit 1 if any link is dead

A site that answers a program with "forbidden" or "too many" answers a reader's browser: such links
are listed, and count as alive.
"""

import json
import re
import sys
from pathlib import Path

FOUND = Path(__file__).resolve().parents[1] / "_build" / "linkcheck" / "output.json"
# 401 and 403: not for programs; 418 and 999: some sites' own word for that; 429: later.
REFUSED = re.compile(r"^(401|403|418|429|999)\b")
NO_NETWORK = re.compile("Failed to resolve|Network is unreachable|No route to host")


def sort_out(lines):
    """Return the dead links and those that refuse programs, each as [(address, page, why)].

    >>> dead = '{"status": "broken", "uri": "u", "filename": "p", "lineno": 3, "info": "404"}'
    >>> sort_out([dead, dead.replace("404", "403"), dead.replace("broken", "working")])
    ([('u', 'p:3', '404')], [('u', 'p:3', '403')])
    """
    dead, refused = [], []
    for link in map(json.loads, filter(str.strip, lines)):
        if link["status"] in ("broken", "timeout"):
            entry = (link["uri"], f"{link['filename']}:{link['lineno']}", link["info"])
            (refused if REFUSED.match(link["info"]) else dead).append(entry)
    return dead, refused


def brief(info):
    """Return what went wrong without the calls that led there.

    >>> brief('Max retries exceeded with url: / (Caused by ReadTimeoutError("x: timed out"))')
    'x: timed out'
    >>> brief("404 Client Error: Not Found for url: https://a.org/")
    '404 Client Error: Not Found for url: https://a.org/'
    """
    return re.sub(r"^.*\(Caused by \w+\([\"']?(.*?)[\"']?\)\)$", r"\1", info)


def main(file=FOUND):
    """Print them; the exit status."""
    lines = Path(file).read_text("utf-8").splitlines() if Path(file).is_file() else []
    if not lines:
        sys.exit(f"{file} has no link in it: the check did not run.")
    dead, refused = sort_out(lines)
    alive = any('"working"' in line or '"redirected"' in line for line in lines)
    if dead and not (alive or refused) and all(NO_NETWORK.search(why) for *_, why in dead):
        sys.exit(f"None of {len(dead)} links could be tried: this machine reaches no other site.")
    for words, links in (("answers no program", refused), ("DEAD", dead)):
        for address, page, why in links:
            print(f"{words}: {address} ({page}): {brief(why)}")
    print(f"{len(lines)} links, {len(dead)} dead, {len(refused)} that answer no program.")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
