#!/usr/bin/env python3
"""Records what the program does with a disk, and checks what a power cut would have left of it. See Scripts/powercut.

usage: powercut.py [IMAGES] [SCENARIO[:FILESYSTEM]…]
       powercut.py check DIRECTORY
"""
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
import traceback
import zlib
from typing import NamedTuple

import disk
from machine import FILE_SYSTEMS, Machine, NotMounted, Writer, enter_namespace, run_tool
from scenarios import SCENARIOS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
KEPT = os.path.join(ROOT, ".build/powercut")
# Images of one recording: with fewer, most of the time is for recordings; with more, they have fewer different writes.
PER_RECORDING = 12
# A file that was not touched for so many seconds is known by its times.
AGE = 62
# Images that are kept of each recording, and failures that are printed of each scenario.
KEPT_IMAGES = 3
# The share of images that the kernel may refuse to mount: what was torn may be what it needs.
REFUSED = 0.1
# ext4 is the usual one, and gets more images.
WEIGHTS = {"ext4": 3}


class Job(NamedTuple):
    """One recording, and the images of it."""

    scenario: str
    system: str
    number: int
    images: int
    seed: str


class Result(NamedTuple):
    job: Job
    images: int = 0
    # Images that the kernel does not mount.
    refused: int = 0
    # Each with the power cut and what is wrong.
    failures: list = []
    # The recording itself failed.
    error: str = ""


class Laboratory:
    """What one process works with: a machine, and a disk that is prepared, recorded and made again after power cuts."""

    def __init__(self, work, program, without, prepared):
        enter_namespace()
        self.directory = tempfile.mkdtemp(dir=work)
        self.machine = Machine(self.directory, program, without)
        self.prepared = prepared
        self.base, self.image, self.log = (os.path.join(self.directory, name) for name in ("base", "image", "log"))

    def prepare(self, scenario, system):
        """Makes the disk as it is before the recording."""
        machine = self.machine
        for directory in (machine.beside, machine.temporary):
            shutil.rmtree(directory)
            os.mkdir(directory)
        kind = FILE_SYSTEMS[system]
        with open(self.base, "wb") as file:
            file.truncate(kind.megabytes << 20)
        run_tool(*kind.make, self.base)
        machine.mount(self.base, kind)
        try:
            scenario.prepare(machine)
        finally:
            machine.unmount(system)

    def run(self, job):
        choices = random.Random(job.seed)
        scenario = SCENARIOS[job.scenario]()
        scenario.random = choices
        self.machine.start()
        if scenario.is_aged:
            image, made = self.prepared[job.scenario, job.system]
            disk.copy_sparse(image, self.base)
            scenario.configure(self.machine)
            time.sleep(max(0, made + AGE - time.time()))
        else:
            self.prepare(scenario, job.system)
        before, after = self.record(scenario, job, choices)
        log = disk.Log(self.log)
        try:
            return self.check_cuts(scenario, job, log, before, after, choices)
        finally:
            log.close()

    def record(self, scenario, job, choices):
        """Runs the program on the disk that logs."""
        machine = self.machine
        writer = scenario.writers[(zlib.crc32(job.seed.rpartition("/")[0].encode()) + job.number) % len(scenario.writers)]
        live = os.path.join(self.directory, "live")
        disk.copy_sparse(self.base, live)
        machine.connect(live, self.log)
        try:
            machine.mount(machine.loop, FILE_SYSTEMS[job.system])
            try:
                machine.is_slow = bool(writer)
                with Writer(machine, writer, choices):
                    scenario.act(machine)
                after = scenario.state(machine)
                run_tool("sync", "-f", machine.root)
            finally:
                machine.unmount(job.system)
        finally:
            machine.disconnect()
        return scenario.before, after

    def check_cuts(self, scenario, job, log, before, after, choices):
        marks = {name: log.count(length) for name, length in self.machine.marks.items()}
        failures, refused = [], 0
        cuts = disk.cuts(log, job.images, marks["begin"], marks["done"], choices)
        for cut in cuts:
            disk.make_image(log, self.base, cut, self.image)
            is_done = cut.count >= marks["done"]
            seed = f"{job.seed}/{cut.count}/{choices.random()}"
            try:
                problems = self.check(scenario, job.system, self.image, before, after, is_done, seed)
            except NotMounted:
                refused += 1
                continue
            if problems:
                where = cut.description + (", after the command had ended" if is_done else "")
                failures.append((where, problems, self.keep(job, log, cut, before, after, is_done, seed, problems)))
        return Result(job, len(cuts), refused, failures)

    def check(self, scenario, system, image, before, after, is_done, seed):
        """Starts the machine again with an image, and looks."""
        machine = self.machine
        machine.start()
        shutil.rmtree(machine.temporary)
        os.mkdir(machine.temporary)
        machine.mount(image, FILE_SYSTEMS[system])
        try:
            return scenario.check(machine, before, after, is_done, random.Random(seed))
        except Exception:
            return [traceback.format_exc()]
        finally:
            machine.unmount(system)

    def keep(self, job, log, cut, before, after, is_done, seed, problems):
        """Keeps an image that failed, and what is needed to check it again: the name of its directory."""
        for number in range(KEPT_IMAGES):
            directory = os.path.join(KEPT, f"{job.scenario}-{job.system}-{job.number}-{number + 1}")
            if not os.path.exists(directory):
                break
        else:
            return None
        shutil.copytree(self.machine.beside, os.path.join(directory, "beside"))
        disk.make_image(log, self.base, cut, os.path.join(directory, "image"))
        about = {
            "scenario": job.scenario, "system": job.system, "seed": seed, "cut": cut.description, "is_done": is_done,
            "problems": problems, "before": before, "after": after}
        with open(os.path.join(directory, "about.json"), "w") as file:
            json.dump(about, file, indent=1)
        return os.path.relpath(directory, ROOT)

    def check_kept(self, directory):
        with open(os.path.join(directory, "about.json")) as file:
            about = json.load(file)
        shutil.rmtree(self.machine.beside)
        shutil.copytree(os.path.join(directory, "beside"), self.machine.beside)
        disk.copy_sparse(os.path.join(directory, "image"), self.image)
        scenario = SCENARIOS[about["scenario"]]()
        scenario.configure(self.machine)
        return self.check(
            scenario, about["system"], self.image, about["before"], about["after"], about["is_done"], about["seed"])


laboratory = None


def open_laboratory(*arguments):
    global laboratory
    try:
        laboratory = Laboratory(*arguments)
    except Exception:
        # The pool would start another process in the place of this one, and another.
        laboratory = traceback.format_exc()


def run_job(job):
    if isinstance(laboratory, str):
        return Result(job, error=laboratory)
    try:
        return laboratory.run(job)
    except Exception:
        return Result(job, error=traceback.format_exc())


def prepare_aged(work, combinations, program):
    """Makes the disks whose files must be old when they are used, in a process of its own."""
    prepared = {}
    with multiprocessing.Pool(1, open_laboratory, (work, program, "", {})) as pool:
        for number, (name, system) in enumerate(combinations):
            image = os.path.join(work, f"aged-{number}")
            pool.apply(make_aged, (name, system, image))
            prepared[name, system] = image, time.time()
    return prepared


def make_aged(name, system, image):
    laboratory.prepare(SCENARIOS[name](), system)
    shutil.move(laboratory.base, image)


def jobs(combinations, images, seed):
    total = sum(WEIGHTS.get(system, 1) for _, system in combinations)
    found = []
    for name, system in combinations:
        left = max(2, round(images * WEIGHTS.get(system, 1) / total))
        recordings = -(-left // PER_RECORDING)
        for number in range(recordings):
            part = -(-left // (recordings - number))
            found.append(Job(name, system, number, part, f"{seed}/{name}/{system}/{number}"))
            left -= part
    return found


def chosen(names):
    """Scenarios, each on each file system; those of aged files last, which must wait."""
    every = [(name, system) for name in SCENARIOS for system in FILE_SYSTEMS]
    for name in names:
        scenario, _, system = name.partition(":")
        if scenario not in SCENARIOS or system and system not in FILE_SYSTEMS:
            sys.exit(f"{name}: a scenario is one of {', '.join(SCENARIOS)}; a file system one of {', '.join(FILE_SYSTEMS)}")
    if names:
        every = [item for item in every if item[0] in names or ":".join(item) in names]
    return sorted(every, key=lambda item: SCENARIOS[item[0]].is_aged)


def main(arguments):
    program, without = os.path.abspath(os.environ["DRYDOCK"]), os.environ.get("WITHOUT", "")
    # The disks are in memory, which is faster.
    work = os.environ["WORK"]
    run_tool("mount", "-t", "tmpfs", "-o", "mode=700", "none", work)
    if arguments[:1] == ["check"]:
        open_laboratory(work, program, without, {})
        problems = laboratory.check_kept(arguments[1])
        print("\n".join(problems) or "nothing is wrong")
        return bool(problems)
    images = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else 1000
    seed = int(os.environ.get("SEED") or random.randrange(1_000_000))
    combinations = chosen(arguments)
    todo = jobs(combinations, images, seed)
    count = int(os.environ.get("JOBS") or os.cpu_count())
    print(f"SEED={seed}, {sum(job.images for job in todo)} images of {len(todo)} recordings, {count} at once", flush=True)
    shutil.rmtree(KEPT, ignore_errors=True)
    os.makedirs(KEPT)
    aged = [item for item in combinations if SCENARIOS[item[0]].is_aged]
    prepared = prepare_aged(work, aged, program) if aged else {}
    left = {item: [job for job in todo if (job.scenario, job.system) == item] for item in combinations}
    results, failed = {item: [] for item in combinations}, 0
    with multiprocessing.Pool(count, open_laboratory, (work, program, without, prepared)) as pool:
        for result in pool.imap_unordered(run_job, todo):
            item = result.job.scenario, result.job.system
            results[item].append(result)
            if len(results[item]) == len(left[item]):
                failed += report(item, results[item])
    print(f"{failed} failures" if failed else "no failures")
    return failed > 0


def report(item, results):
    """Prints one line for a scenario on a file system, and the first failures."""
    images, refused = sum(result.images for result in results), sum(result.refused for result in results)
    failures = [failure for result in results for failure in result.failures]
    errors = [result for result in results if result.error]
    if refused > max(1, images * REFUSED):
        errors.append(results[0]._replace(error="too many images are not mounted"))
    print(
        f"{item[0]:20} {item[1]:6} {images:5} images, {len(failures) + len(errors)} failures"
        + (f", {refused} images are not mounted" if refused else ""), flush=True)
    for result in errors[:KEPT_IMAGES]:
        print(f"  recording {result.job.number}, seed {result.job.seed}:\n    " + result.error.strip().replace("\n", "\n    "))
    for where, problems, kept in failures[:KEPT_IMAGES]:
        print(f"  {where}" + (f", in {kept}" if kept else ""))
        print("\n".join("    " + problem.replace("\n", "\n      ") for problem in problems[:6]), flush=True)
    return len(failures) + len(errors)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
