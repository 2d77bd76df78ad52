"""Measure this project on this machine.

    python -m benchmarks [kernels] [explorers] [command] [live] [lite] [build]
                         [--quick] [--rounds N] [--json FILE]

Without a section, all of them, the build last (a cold one takes minutes; with --quick it is left
out). Timings of one run compare with each other and with nothing else: a machine's speed changes
from minute to minute. So what is compared is measured in turns, and medians are printed with their
quartiles, beside the load that the machine had.
"""

import argparse
import importlib
import json
from pathlib import Path

from benchmarks.machine import as_readers_have_it, describe, load, warning
from benchmarks.tables import print_tables

SECTIONS = ("kernels", "explorers", "command", "live", "lite", "build")


def main():
    """Measure, and print the machine, its load and the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds, no build")
    parser.add_argument("--rounds", type=int, help="measurements of each, instead of the usual")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the tables there as well")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}; there are {SECTIONS}")
    sections = options.sections or SECTIONS[: -1 if options.quick else None]
    as_readers_have_it()

    machine, before = describe(), load()
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    print(f"load before {before:.2f}")
    tables = {}
    for name in sections:
        section = importlib.import_module(f"benchmarks.{name}")
        tables[name] = section.measure(quick=options.quick, rounds=options.rounds)
        print_tables(tables[name])
    after = load()
    print(f"\nload after {after:.2f}")
    if warned := warning(before, after):
        print(warned)
    if options.json:
        record = {
            "machine": machine, "load before": before, "load after": after, "warning": warned,
            "sections": tables,
        }  # fmt: skip
        options.json.write_text(json.dumps(record, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
