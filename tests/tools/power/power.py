# SPDX-License-Identifier: MIT
"""Measures what the tests find: runs them against known faults, and writes a table with a line for
each fault: the fault | the level that finds it first | what finds it there | for faults of shaders
and drivers, a check that finds it, also of random operations of a kind | the first random operation
of any kind that does.

tests/data/power has the table of the last measurement and the mutants. Of a fault in the table this
runs only what found the fault then; if that does not find it any more, it runs the levels in their
order, as it does for a new fault. To measure a fault anew, delete its line. The new table is
written to the folder --work. The run fails if a fault is found at a later level than before, or by
no random operation any more, or if a mutant matches no line.

    power.py --work FOLDER [options] shaders|drivers|host|small_operation|lines ...
"""

import argparse
import hashlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
DATA = SOURCE / "tests/data/power"
LEVELS = ["unit", "failure", "device", "quick", "random", "thorough", "none"]
# The tests of CTest that make a level, and the targets that they need. Of the first level only
# bounds tests what a shader computes.
TESTS = {
    "unit": {"unit": ["vkrope_unit"], "bounds": ["vkrope_bounds_test"]},
    "failure": {"fake_vulkan": ["vkrope_fake_test"],
                "pipeline_cache": ["vkrope_pipeline_cache_test"]},
    "device": {"device.lavapipe": ["vkrope_device_test"]},
    "thorough": {"unit_long": ["vkrope_unit"], "fake_vulkan_long": ["vkrope_fake_test"],
                 **{f"tool_unit_{name}": [f"vkrope_{name}_test"]
                    for name in ("explain", "judge", "model_file", "verify")},
                 **{f"tool_{name}": ["vkrope_tool"]
                    for name in ("explain", "gguf", "rotate_command", "matrix", "ops",
                                 "mistakes_page", "judge")},
                 "conformance_cases.lavapipe": ["vkrope_python"],
                 "device_rest.lavapipe": ["vkrope_device_test"]},
}
# What vkrope-conformance runs at a level. The quick level of `random` is that of --thorough.
CHECKS = {"quick": ["--filter=-random/*"], "random": ["--random", "8", "--filter=random/*"]}
NOTHING, UNKNOWN, ENDS = "-", "?", "ends with"  # ?: to be measured
PATIENCE = 900  # seconds; a mutant may make a program run forever


class Failure(Exception):
    pass


def run(command, limit=PATIENCE, stop=None, **options):
    """Runs a command and ends its processes; with `stop`, already at the first line that matches.
    Returns the exit status, or None if it was ended, its output, and the match."""
    lines, match, late = [], None, []
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          errors="replace", start_new_session=True, **options) as process:
        def end():
            late.append(True)
            os.killpg(process.pid, signal.SIGKILL)
        timer = threading.Timer(limit, end)
        timer.start()
        for line in process.stdout:
            lines.append(line)
            match = stop.match(line) if stop else None
            if match:
                os.killpg(process.pid, signal.SIGKILL)
                break
        process.wait()
        timer.cancel()
    return None if match or late else process.returncode, "".join(lines), match


class Table:
    def __init__(self, path):
        self.rows = {}
        if path.exists():
            for line in path.read_text().splitlines():
                if line and not line.startswith("#"):
                    fault, *rest = line.split(" | ")
                    self.rows[fault] = rest

    def write(self, path):
        text = "".join(" | ".join([fault, *row]) + "\n" for fault, row in sorted(self.rows.items()))
        path.write_text("# fault | level | found first by | a check | "
                        "first random operation of any kind\n" + text)


class Conformance:
    """The checks of vkrope-conformance on lavapipe."""

    def __init__(self, program, environment):
        self.program, self.environment = program, environment

    def first_failure(self, options):
        """Returns the first check that fails, or how the program ended, or None."""
        code, text, match = run(
            [self.program, "--no-shrink", *options],
            stop=re.compile(r"(?:fail|error|unstable) +(\S+)"),
            env={**os.environ, **self.environment}, stderr=subprocess.STDOUT)
        if match:
            return match[1]
        if code == 0 or (code == 2 and "matches no id" in text):  # another level has this check
            return None
        if code == 2:
            raise Failure(text)
        return f"{ENDS} {code}"

    def find(self, levels, known=None, options=()):
        """Returns the first level that finds something and the first check there that fails. If a
        check is known, tries it alone first, and does not search if nothing was found before."""
        if known == NOTHING:
            return None
        alone = known and known != UNKNOWN and not known.startswith(ENDS)
        for level in levels if alone else ():
            found = self.first_failure([*options, *CHECKS[level][:-1], "--filter", known])
            if found:
                return level, found
        for level in levels:
            found = self.first_failure([*options, *CHECKS[level]])
            if found:
                return level, found
        return None


class Tree:
    """A copy of the sources with a build of its own."""

    def __init__(self, folder, options):
        self.folder, self.build = folder, folder / "build" / "dev"
        self.options = options
        self.digests = {}
        self.tests = self.tier = None

    def prepare(self):
        """Brings the copy up to date, and configures its build."""
        self.folder.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in SOURCE.iterdir()} - {"build", ".git"}
        for name in names:
            source = SOURCE / name
            files = [p for p in source.rglob("*") if p.is_file()] if source.is_dir() else [source]
            for file in files:
                copy = self.folder / file.relative_to(SOURCE)
                if not copy.exists() or copy.read_bytes() != file.read_bytes():
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, copy)
        if not (self.build / "build.ninja").exists():
            code, text, _ = run(["cmake", "--preset", "dev", "-S", self.folder, "-B", self.build,
                                 *self.options], stderr=subprocess.STDOUT, cwd=self.folder)
            if code:
                raise Failure(text)

    def make(self, targets):
        code, text, _ = run(["cmake", "--build", self.build, "--target", *targets],
                            stderr=subprocess.STDOUT, limit=3600)
        if code:
            raise Failure("does not build:\n" + "\n".join(text.splitlines()[-30:]))

    def digest(self, targets):
        """Returns a hash of programs and of the libraries of this project that they load."""
        paths = [self.build / "bin" / {"vkrope_tool": "vkrope"}.get(target, "vkrope-conformance")
                 if target in ("vkrope_tool", "vkrope_conformance") else
                 next(p for p in self.build.rglob(target) if os.access(p, os.X_OK) and p.is_file())
                 for target in targets]
        loaded = subprocess.run(["ldd", *paths], capture_output=True, text=True).stdout
        paths += sorted(re.findall(r"=> (\S*/libvkrope\S*)", loaded))
        return hashlib.sha256(b"".join(Path(path).read_bytes() for path in paths)).digest()

    def learn(self, levels):
        """Builds the unchanged programs, and remembers their hashes."""
        for level in levels:
            for test, targets in TESTS.get(level, {}).items():
                self.make(targets)
                self.digests[test] = self.digest(targets)
        text = subprocess.run(["ctest", "-C", "all", "--show-only=json-v1"], cwd=self.build,
                              check=True, capture_output=True, text=True).stdout
        self.tests = {test["name"]: test for test in json.loads(text)["tests"]}

    def find(self, test, targets, case=None):
        """Runs a test if the mutant changes its program. Returns what fails, or None."""
        self.make(targets)
        if self.digests.get(test) == self.digest(targets):
            return None
        if test == "unit" and not case:  # the tests of the tier are most likely to fail
            own = f"=*/unit/{self.tier}/*"
            return self.run_test(test, case, f"--source-file{own}") or \
                self.run_test(test, case, f"--source-file-exclude{own}")
        return self.run_test(test, case)

    def run_test(self, test, case, *options):
        described = self.tests[test]
        properties = {p["name"]: p["value"] for p in described.get("properties", [])}
        environment = dict(item.split("=", 1) for item in properties.get("ENVIRONMENT", []))
        command = described["command"]
        doctest = command[0].endswith(("_test", "_unit"))
        if doctest:
            command = [*command, *options, "--abort-after=1", "--no-skipped-summary"]
            if case and not case.startswith(ENDS):
                only = case.replace(",", "?").replace("\\", "?")
                command = [c for c in command if not c.startswith("--test-case")]
                command.append(f"--test-case={only}")
        code, text, _ = run(command, env={**os.environ, **environment}, cwd=self.build,
                            stderr=subprocess.STDOUT)
        if code in (0, 77):
            return None
        cases = re.findall(r"^TEST CASE: +(.*)", text, re.M)
        if doctest and cases:
            return f"{test}: {cases[-1].strip()}"
        return f"{test}: {ENDS} {code}" if doctest else test

    def find_known(self, level, finder):
        test, _, case = finder.partition(": ")
        return test in TESTS[level] and self.find(test, TESTS[level][test], case or None)

    def find_at(self, level, leave_out):
        for test, targets in TESTS[level].items():
            found = test not in leave_out and self.find(test, targets)
            if found:
                return found
        return None


def mutants():
    """Reads mutants.txt. Returns pairs of a fault and its file and expression of sed."""
    lines = [line for line in (DATA / "mutants.txt").read_text().splitlines()
             if line and not line.startswith("#")]
    found = []
    for head, expression in zip(lines[::2], lines[1::2]):
        file, _, name = head.partition(": ")
        if not name or not expression.startswith("    "):
            raise Failure(f"mutants.txt: not a mutant: {head}")
        found.append((head, file, expression.strip()))
    return found


def mutated(file, expression):
    """Returns the text of a file with one line changed."""
    before = (SOURCE / file).read_text()
    after = subprocess.run(["sed", expression, SOURCE / file], check=True, capture_output=True,
                           text=True).stdout
    changes = sum(a != b for a, b in zip(before.splitlines(), after.splitlines()))
    if changes != 1 or before.count("\n") != after.count("\n"):
        raise Failure(f"the expression changes {changes} lines, not one: {expression}")
    return after


class Power:
    def __init__(self, args):
        self.args = args
        self.known, self.new = Table(DATA / "table.txt"), Table(Path(os.devnull))
        self.work = Path(args.work).resolve()
        self.work.mkdir(parents=True, exist_ok=True)
        self.lock = threading.Lock()
        self.errors, self.began = [], time.monotonic()
        self.device = {"VK_DRIVER_FILES": args.driver, "VK_ICD_FILENAMES": args.driver,
                       "VKROPE_DEVICE": "llvmpipe", "VKROPE_TIMEOUT": "86400",
                       "GALLIVM_PERF": "nopt", "LP_NATIVE_VECTOR_WIDTH": "128"}
        self.trees = queue.Queue()

    def say(self, text):
        with self.lock:
            print(f"{time.monotonic() - self.began:6.0f} s  {text}", flush=True)

    def wrong(self, fault, text):
        with self.lock:
            self.errors.append(f"{fault}: {text}")
        self.say(f"FAILED: {fault}: {text}")

    def add(self, fault, level, finder, picked=NOTHING, drawn=NOTHING):
        row = [level, finder, picked, drawn]
        old = self.known.rows.get(fault)
        with self.lock:
            self.new.rows[fault] = row
            self.new.write(self.work / "table.txt")
        self.say(" | ".join([fault, *row]))
        if not old:
            return
        if LEVELS.index(level) > LEVELS.index(old[0]):
            self.wrong(fault, f"found at level {level}, not {old[0]} by {old[1]}")
        if old[3] not in (NOTHING, UNKNOWN) and drawn == NOTHING:
            self.wrong(fault, f"random operations do not find it, but {old[3]} did")

    def miss_none(self, part):
        """Fails for each fault of a part in the table that was not measured again."""
        prefix = {"drivers": "driver: "}.get(part, f"{part}/")
        if not self.args.quick:
            for fault in self.known.rows.keys() - self.new.rows.keys():
                if fault.startswith(prefix):
                    self.wrong(fault, "in the table, but not measured")

    def each(self, items, measure):
        """Measures each item, several at a time."""
        def one(item):
            try:
                measure(*item)
            except Failure as failure:
                self.wrong(item[0], str(failure))
        with ThreadPoolExecutor(self.args.jobs) as pool:
            list(pool.map(one, items))

    def measure_checks(self, suite, known, options=(), others=()):
        """Returns the row of a fault of shaders or drivers. `others`: a level and what finds the
        fault there."""
        _, _, by_hand, by_chance = known or (None,) * 4
        picked = suite.find(("quick",), by_hand, options)
        drawn = suite.find(("random",), by_chance, options)
        first = min((found for found in (picked, drawn, *others) if found),
                    key=lambda found: LEVELS.index(found[0]), default=("none", NOTHING))
        return [*first, picked[1] if picked else NOTHING, drawn[1] if drawn else NOTHING]

    def prepare_trees(self, levels):
        for number in range(self.args.jobs):
            tree = Tree(self.work / str(number), self.args.configure)
            tree.prepare()
            tree.learn(levels)
            self.say(f"built {tree.folder}")
            self.trees.put(tree)

    # ---- Mutants of shaders ----

    def shaders(self):
        """Compiles changed shaders for a program that takes its modules from a folder."""
        if not self.args.quick:
            self.prepare_trees(["unit", "device"])
        self.each([m for m in mutants() if m[1].startswith("shaders/")], self.measure_shader)

    def compile_shaders(self, file, text):
        """Compiles the shaders, one of them with this text. Returns the folder."""
        folder = self.work / f"shader_{threading.get_ident()}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(SOURCE / "shaders", folder)
        (folder / Path(file).name).write_text(text)
        for name in ("rope", "positions"):
            code, said, _ = run(["cmake", f"-DSOURCE={folder}/{name}.comp",
                                 f"-DOUTPUT={folder}/{name}", f"-DGLSLANG={self.args.glslang}",
                                 "-P", folder / "module.cmake"], stderr=subprocess.STDOUT)
            if code:
                raise Failure("does not compile: " + said)
        return folder

    def measure_shader(self, fault, file, expression):
        text = mutated(file, expression)
        folder = self.compile_shaders(file, text)
        suite = Conformance(self.args.program, {**self.device, "VKROPE_MODULES": str(folder)})
        known = self.known.rows.get(fault)
        if self.args.quick:
            check = known and next((c for c in known[2:] if c not in (NOTHING, UNKNOWN)), None)
            if not check and known and known[0] in TESTS:
                return  # a test without a device finds it
            if not check or not suite.find(("quick", "random"), check):
                self.wrong(fault, f"{check or 'no check'} finds it")
            return
        in_tree = None
        if not known or known[0] in ("unit", "device"):
            in_tree = self.find_in_tree(file, text, ["unit", "device"], known, ("unit",))
        self.add(fault, *self.measure_checks(suite, known, (), (in_tree,)))
        shutil.rmtree(folder)

    def small_operation(self):
        """Runs the operation in the report of a mutant, with the mutant and without it."""
        fault, file, expression = next(m for m in mutants() if "the angle of channel 1" in m[0])
        check = self.known.rows[fault][2]
        given = self.work / "operation"

        def conformance(*options, **environment):
            return run([self.args.program, *options], stderr=subprocess.STDOUT, env={
                **os.environ, **self.device, "VKROPE_MODULES": str(folder), **environment})
        for expected, text in ((1, mutated(file, expression)), (0, (SOURCE / file).read_text())):
            folder = self.compile_shaders(file, text)
            if expected == 1:
                _, report, _ = conformance("--filter", check)
                given.write_text("\n".join(re.findall(r"^operation\..*;$", report, re.M)))
                self.say(given.read_text())
            code, said, _ = conformance(VKROPE_OPERATION=str(given))
            if code != expected:
                self.wrong(fault, f"the small operation ends with {code}, not {expected}: {said}")

    def find_in_tree(self, file, text, levels, known, leave_out=()):
        """Changes the file in a copy of the sources. Returns the level and what finds it there."""
        tree = self.trees.get()
        try:
            (tree.folder / file).write_text(text)
            tree.tier = {"verify": "oracle"}.get(Path(file).parts[1], Path(file).parts[1])
            suite = Conformance(tree.build / "bin" / "vkrope-conformance", self.device)
            level, finder = known[:2] if known else ("none", NOTHING)
            if level in TESTS and tree.find_known(level, finder):
                return level, finder
            if level in CHECKS and finder.partition(": ")[0] not in TESTS.get(level, {}):
                tree.make(["vkrope_conformance"])
                found = suite.find((level,), finder)
                if found:
                    return found
            if known and level == "none":
                return None
            for level in levels:
                found = tree.find_at(level, leave_out) if level in TESTS else None
                if found:
                    return level, found
                if level in CHECKS:
                    tree.make(["vkrope_conformance"])
                    found = suite.find((level,))
                    if found:
                        return found
            return None
        finally:
            shutil.copy(SOURCE / file, tree.folder / file)
            self.trees.put(tree)

    # ---- Faults of drivers ----

    def drivers(self):
        listed = subprocess.run([self.args.list_faults], check=True, capture_output=True,
                                text=True).stdout.splitlines()
        kinds = {name: kind for kind, name, _ in (line.split("\t") for line in listed)}
        faults = {}
        for line in (SOURCE / "tests/tools/fault_layer/findings.txt").read_text().splitlines():
            if line.startswith("#"):
                continue
            fault, check, options, words = line.split("|")
            name = fault.split(",")[-1].split("=")[0]
            if kinds.get(name, "variation") == "variation" or name in faults or words == "*":
                continue
            faults[name] = (f"driver: {fault}", fault, check, options.split())
        self.each(faults.values(), self.measure_driver)
        script = SOURCE / "tests/tools/command/bad_driver.sh"
        for name in kinds:  # a script makes the others, which end a program or name a device
            if kinds[name] != "variation" and name not in faults:
                self.add_named(f"driver: {name}", name, [script])

    def measure_driver(self, name, fault, check, options):
        environment = {**self.device, "VK_LAYER_PATH": self.args.layers, "VKROPE_FAULT": fault,
                       "VK_INSTANCE_LAYERS": "VK_LAYER_VKROPE_faults"}
        if check.startswith("bench/"):
            code, text, _ = run([self.args.bench, f"--benchmark_filter=^{check[6:]}/",
                                 "--benchmark_min_time=0.001"],
                                env={**os.environ, **environment}, stderr=subprocess.STDOUT)
            found = code not in (0, None) and f"vkrope: error: {check[6:]}: " in text
            self.add(name, "thorough" if found else "none", check if found else NOTHING)
            return
        suite = Conformance(self.args.conformance, environment)
        known = self.known.rows.get(name)
        self.add(name, *self.measure_checks(suite, known, options))

    # ---- Mutants of the library and of the tools ----

    def host(self):
        self.prepare_trees(["unit", "failure", "device"])
        self.each([m for m in mutants() if m[1].startswith("host/")], self.measure_host)

    def measure_host(self, fault, file, expression):
        found = self.find_in_tree(file, mutated(file, expression), LEVELS[:-1],
                                  self.known.rows.get(fault))
        self.add(fault, *(found or ("none", NOTHING)))

    # ---- The list of mutants ----

    def lines(self):
        """Fails for each mutant that does not change one line, and each row without a mutant."""
        listed = mutants()
        self.each(listed, lambda fault, *change: mutated(*change))
        for fault in self.known.rows.keys() - {fault for fault, *_ in listed}:
            if not fault.startswith("driver: "):
                self.wrong(fault, "in the table, but not a mutant")

    def add_named(self, fault, name, tests):
        """Adds a fault that the first of these files with its name makes."""
        word = re.compile(rf"(?<!\+ )(?<!\w){re.escape(name)}(?!\w)(?! \+)")
        by = next((path.name for path in tests if word.search(path.read_text())), None)
        self.add(fault, "thorough" if by else "none", by or NOTHING)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("work", "driver", "glslang", "program", "conformance", "layers", "list-faults",
                   "bench"):
        parser.add_argument(f"--{option}", default="")
    parser.add_argument("--configure", action="append", default=[], help="an argument of cmake")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--quick", action="store_true",
                        help="run only a check that found each mutant of a shader")
    parser.add_argument("parts", nargs="+",
                        choices=["shaders", "drivers", "host", "small_operation", "lines"])
    args = parser.parse_args()
    if not args.driver:
        print("skipped: there is no lavapipe")
        sys.exit(77)
    power = Power(args)
    for part in args.parts:
        getattr(power, part)()
        power.miss_none(part)
    for error in power.errors:
        print(f"FAILED: {error}")
    sys.exit(bool(power.errors))


if __name__ == "__main__":
    main()
