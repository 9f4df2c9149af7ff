#!/usr/bin/env python3
"""Makes runs that are all the same, and counts how often what is said of them is a difference; Scripts/bench truth aa calls
it.

    repeats.py --apnscope FILE --folder FOLDER [--runs N] [--splits N] [--for TIME]

The runs are divided at random into two halves, again and again, and `apnscope compare` judges each division. A division
accuses when any figure is better, worse or different. Of what is judged at 5 % no more than one in twenty may. Then how
often the interval that `apnscope report` prints for a run holds the median of all runs: within one run it tells nothing of
what changes from run to run, so that is shown and not judged. Only runs of 16 s and more have intervals. Results stay in
the folder. Exit code 1: too many accuse.
"""

import argparse
import collections
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import loads  # noqa: E402

SIMULATE = ["--response-delay", "5ms"]
LOAD = ["--connections", "4", "--rate", "10k/s", "--warm-up", "500ms", "--faults", "missing-token=5e-4"]
NOMINAL = 0.05
ACCUSING = {"better", "worse", "different"}


def most_by_chance(trials, share):
    """So many of the trials or fewer are hit in 97.5 % of all cases when each is with this chance."""
    below = 0.0
    for count in range(trials + 1):
        below += math.comb(trials, count) * share**count * (1 - share) ** (trials - count)
        if below >= 0.975:
            return count
    return trials


def compared(apnscope, a, b):
    """The figures of `apnscope compare` that differ between two sets of results."""
    command = [apnscope, "compare", "--format", "json", *a, "--", *b]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    if outcome.returncode:
        raise loads.Failure(f"compare ended with {outcome.returncode}: {outcome.stderr.strip()[-200:]}")
    return [row["figure"] for row in json.loads(outcome.stdout)["figures"] if row["judgement"] in ACCUSING]


def accused(apnscope, results, splits):
    """In how many divisions each figure differed, and in how many any did."""
    chance, figures, divisions = random.Random(1), collections.Counter(), 0
    for _ in range(splits):
        order = chance.sample(results, len(results))
        found = compared(apnscope, order[: len(order) // 2], order[len(order) // 2 :])
        figures.update(found)
        divisions += bool(found)
    return figures, divisions


UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "min": 60.0, "%": 0.01, "k/s": 1e3, "M/s": 1e6}
UNITS |= {"KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 2.0**10, "MiB/s": 2.0**20, "GiB/s": 2.0**30}
QUANTITY = re.compile(r"([\d,]+(?:\.\d+)?)(?:\s*([%µ\w/]+))?")


def quantity(text):
    found = QUANTITY.search(text)
    return float(found[1].replace(",", "")) * UNITS.get(found[2] or "", 1.0) if found else None


def intervals(markdown):
    """(what, answer, low, high) of each row of a report that has an interval."""
    columns = None
    for line in markdown.splitlines():
        if not line.startswith("|"):
            columns = None
            continue
        cells = [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
        if columns is None:
            place = next((place for place, cell in enumerate(cells) if "interval" in cell), 0)
            # A comparison's has another shape, and another question.
            columns = place if place > 1 and "answer" in cells[place - 1] else 0
        elif columns and columns < len(cells):
            answer, said = quantity(cells[columns - 1]), cells[columns]
            ends = [quantity(part) for part in re.split(r"\bto\b|±", said) if part.strip()]
            if answer is not None and None not in ends and ends:
                if "±" in said and len(ends) == 1:
                    yield cells[0], answer, answer - ends[0], answer + ends[0]
                elif len(ends) == 2:
                    # "1 to 2 ms": the unit is that of the last.
                    yield cells[0], answer, *ends


def coverage(apnscope, folders):
    found = collections.defaultdict(list)
    for folder in folders:
        outcome = subprocess.run(
            [apnscope, "report", str(folder / "result.json"), "--output", str(folder / "report")],
            capture_output=True, text=True, check=False)  # fmt: skip
        if outcome.returncode:
            raise loads.Failure(f"report ended with {outcome.returncode}: {outcome.stderr.strip()[-200:]}")
        for name, *numbers in intervals((folder / "report" / "report.md").read_text(encoding="utf-8")):
            found[name].append(numbers)
    for name, rows in found.items():
        middle = statistics.median(answer for answer, _, _ in rows)
        yield name, sum(low <= middle <= high for _, low, high in rows), len(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--apnscope", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--for", dest="length", default="3s")
    options = parser.parse_args()
    if options.runs < 10 or options.splits < 20:
        parser.error("5 runs a side, so 10 in all, and 20 splits are the fewest that say something")
    apnscope, folders, load = str(options.apnscope.resolve()), [], [*LOAD, "--for", options.length]
    try:
        for number in range(1, options.runs + 1):
            folder = (options.folder / f"{number:02}").resolve()
            loads.Load(apnscope, folder).run(SIMULATE, load, captures=False)
            folders.append(folder)
        figures, divisions = accused(apnscope, [str(folder / "result.json") for folder in folders], options.splits)
        covered = list(coverage(apnscope, folders))
    except loads.Failure as error:
        print(f"void: {error}")
        return 1
    print(f"{options.runs} runs of: load --plain {' '.join(load)}")
    print(f"against: simulate --plain {' '.join(SIMULATE)}\n")
    most = most_by_chance(options.splits, NOMINAL)
    holds = divisions <= most
    print(f"{options.splits} random divisions into halves: compare accuses in {divisions}, {divisions / options.splits:.1%}")
    print(f"{'✓' if holds else '✗'} {NOMINAL:.0%} are allowed, {most} with the chance of the draw")
    for figure, count in figures.most_common():
        print(f"  {figure:<24}{count:>5}")
    print("\nruns whose interval holds the median of all runs:" if covered else "\nreports print no intervals")
    for name, inside, all_of_them in covered:
        print(f"  {name:<40}{inside:>4} of {all_of_them}")
    print(f"\nResults are in {options.folder}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
