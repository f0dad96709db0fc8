"""What the program does when the power is cut, and what must be true afterwards."""
import json
import os
import shutil

from machine import run_tool
from trees import content_only, differences, listing

CONFIGURATION = """\
app: com.example.notes
migrations: Migrations
databases: {notes: Documents/notes.sqlite}
version-markers: [{defaults: dataSchemaVersion}]
"""
MIGRATIONS = {
    "0001_settings.yaml": """\
steps:
  - defaults.rename: {keys: {user_name: username}}
  - defaults.convert: {key: dark_mode, to: theme, map: {true: dark, false: light}}
""",
    "0002_tasks.sql": """\
-- drydock: database notes
-- migrate:up
ALTER TABLE task ADD COLUMN colour TEXT;
UPDATE task SET colour = 'none' WHERE colour IS NULL;
""",
    "0003_files.yaml": """\
steps:
  - files.move: {from: "Documents/Photos/*.jpg", to: Library/Pictures}
  - files.write: {path: Documents/About.txt, text: "These are your notes."}
  - files.write: {path: Documents/fixed.txt, text: "Migrated.", if-exists: replace}
  - files.delete: {path: Documents/Texts/5.txt, destructive: a test}
""",
}
GROUP_MIGRATION = """\
steps:
  - defaults.set: {suite: group.notes, values: {theme: dark}, if-exists: replace}
  - files.move: {from: Documents/Texts/7.txt, to: .groups/group.notes/7.txt}
"""
VAULT_MIGRATION = """\
steps:
  - vault.move-from-defaults: {key: auth_token, service: com.example.notes, account: auth}
"""
SECRET = b"the-secret-token"
IN_PLACE = {"DRYDOCK_COMMIT": "in-place"}


class Scenario:
    name = ""
    # Further variables of the program.
    variables = {}
    # What else happens meanwhile: one of these for each recording.
    writers = ("", "commits", "writeback")
    # No file of the container is younger than a minute, so that a snapshot goes by the files' times.
    is_aged = False

    def prepare(self, machine):
        """Makes what is on the disk at the beginning."""
        self.configure(machine)
        os.makedirs(machine.apps)
        machine.app("create", machine.container)

    def configure(self, machine, more="", migrations={}):
        """Writes what is not on the disk."""
        with open(os.path.join(machine.beside, "drydock.yaml"), "w") as file:
            file.write(CONFIGURATION + more)
        folder = os.path.join(machine.beside, "Migrations")
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        for name, text in {**MIGRATIONS, **migrations}.items():
            with open(os.path.join(folder, name), "w") as file:
                file.write(text)

    def act(self, machine):
        """Does what the power cut interrupts. Two marks: `begin` is the first moment, when the state is `before`; `done` is the
        one when it has succeeded."""
        self.before = self.state(machine)
        machine.mark("begin")
        machine.require(*self.command(machine), variables=self.variables, injected=True)
        machine.mark("done")

    def command(self, machine):
        raise NotImplementedError

    def state(self, machine):
        """What the scenario is about, as JSON."""
        raise NotImplementedError

    def check(self, machine, before, after, is_done, random):
        """What is wrong after a power cut, in words."""
        raise NotImplementedError

    def reading(self, machine):
        """Variables of commands that read archives."""
        return self.variables

    def restored(self, machine, archive):
        """What an archive of the repository brings back."""
        target = os.path.join(machine.beside, "Restored")
        try:
            machine.require("restore", archive, target, "-r", machine.repository, variables=self.reading(machine))
            return listing(target)
        finally:
            shutil.rmtree(target, ignore_errors=True)
            for name in os.listdir(machine.beside):
                if name.startswith(".drydock-"):
                    shutil.rmtree(os.path.join(machine.beside, name))

    def run(self, machine, *arguments, variables=None):
        """Runs a command that must succeed: its output, and what is wrong."""
        result = machine.drydock(*arguments, variables={**self.variables, **(variables or {})})
        if result.returncode == 0:
            return result.stdout, []
        return None, [machine.failure(arguments, result)]


# Containers


class ContainerChange(Scenario):
    """A transaction: afterwards the container is wholly old or wholly new."""

    # What undoes the command.
    undo = "rollback",
    # Whether also other programs see the container wholly old or wholly new, before the program recovers it.
    is_atomic = True

    def state(self, machine):
        return {"container": listing(machine.container), "group": listing(machine.shared)}

    def check(self, machine, before, after, is_done, random):
        problems, seen = [], self.state(machine)
        if is_done and seen != after:
            problems.append("the command had ended, and programs see: " + show(seen, after))
        elif self.is_atomic and content(seen) not in (content(before), content(after)):
            problems += ["programs see a mixture: it differs from before by " + show(content(seen), content(before)),
                         "and from after by " + show(content(seen), content(after))]
        first = random.choice(["recover", "recover", "status", "log", "inspect"])
        if os.path.isdir(machine.container):
            problems += self.run(machine, first, machine.container)[1]
        now = self.state(machine)
        sides = [name for name, side in (("before", before), ("after", after)) if now == side]
        if not sides:
            return problems + [
                "a mixture: it differs from before by " + show(now, before), "and from after by " + show(now, after)]
        if is_done and sides == ["before"]:
            return problems + ["it is as before, although the command had ended"]
        return problems + self.check_state(machine) + self.go_on(machine, sides[0], before, after)

    def check_state(self, machine):
        """Recovery leaves nothing that is unfinished."""
        if not os.path.isdir(machine.container):
            return []
        output, problems = self.run(machine, "log", machine.container, "--json")
        if output and any(entry["state"] == "interrupted" for entry in json.loads(output)["transactions"]):
            problems.append("the log has an interrupted transaction")
        for directory in [machine.container, machine.apps]:
            for name in os.listdir(directory):
                stage = os.path.join(directory, name, "stage")
                if name.startswith(".drydock-") and os.path.isdir(stage) and os.listdir(stage):
                    problems.append(f"{os.path.relpath(stage, machine.root)} has {os.listdir(stage)}")
        return problems

    def go_on(self, machine, side, before, after):
        """What was interrupted is done again; what was done is undone."""
        if side == "before":
            _, problems = self.run(machine, *self.command(machine))
            now = self.state(machine)
            found = show(content(now), content(after))
            return problems + ([f"done again, it has: {found}"] if found else [])
        if before["container"] is None:
            return []
        _, problems = self.run(machine, *self.undo, machine.container)
        now = self.state(machine)
        return problems + ([] if now == before else ["undone, it differs from before by " + show(now, before)])


def content(state):
    return {key: content_only(tree) for key, tree in state.items()}


def show(now, wanted):
    return "; ".join(text for key in now for text in differences(now[key], wanted[key]))


class Migrate(ContainerChange):
    name = "migrate"

    def command(self, machine):
        return "migrate", machine.container


class MigrateInPlace(Migrate):
    name, variables, is_atomic = "migrate-in-place", IN_PLACE, False


class MigrateGroups(Migrate):
    """A container and a group, each exchanged by a call of its own."""

    name, is_atomic = "migrate-groups", False

    def prepare(self, machine):
        super().prepare(machine)
        machine.app("group", machine.shared)

    def configure(self, machine):
        super().configure(machine, "groups: {group.notes: ../../Shared/notes}\n", {"0004_group.yaml": GROUP_MIGRATION})


class MigrateVault(Migrate):
    """A setting moves into the vault, and what is kept for a rollback is sealed."""

    name = "migrate-vault"

    def configure(self, machine):
        super().configure(machine, migrations={"0004_vault.yaml": VAULT_MIGRATION})
        self.variables = {"DRYDOCK_DEVICE_KEY": make_key(machine, "device.txt")[0]}

    def check_state(self, machine):
        problems = super().check_state(machine)
        # As long as the container is old, the setting is in it.
        if has_secret(machine.container):
            return problems
        return problems + [f"{path} has the secret" for path in has_secret(machine.apps)]

    def go_on(self, machine, side, before, after):
        # A vault that is made again is encrypted anew.
        return super().go_on(machine, side, before, after) if side == "after" else []


def make_key(machine, name):
    """A new key that age reads: its file, and its public half."""
    path = os.path.join(machine.beside, name)
    if not os.path.exists(path):
        machine.require("keygen", "-o", path)
    return path, machine.require("keygen", "-y", path).strip()


def has_secret(directory):
    """The files that have the secret."""
    found = []
    for folder, _, names in os.walk(directory):
        for path in (os.path.join(folder, name) for name in names):
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    found += [path] if SECRET in file.read() else []
    return found


class Write(ContainerChange):
    name = "defaults-write"

    def command(self, machine):
        return "defaults", "write", machine.container, "theme", "sepia"


class Recover(ContainerChange):
    """The power is cut while a command recovers what a killed one has left."""

    name = "recover"
    points = (
        "staged", "tree-built", "synced", "rewalked", "committed", "marked", "found-unused", "exchanged", "merged", "undo-kept",
        "old-removed", "done")

    def prepare(self, machine):
        super().prepare(machine)
        self.old = self.state(machine)
        point = {"DRYDOCK_KILL_AT": self.random.choice(self.points)}
        killed = machine.drydock("migrate", machine.container, variables={**self.variables, **point})
        if killed.returncode != -9:
            raise RuntimeError(f"{point} exits with {killed.returncode}: {killed.stderr}")

    def act(self, machine):
        super().act(machine)
        # The state between is a mixture, which no command sees.
        self.before = self.old

    def command(self, machine):
        return "recover", machine.container


class RecoverInPlace(Recover):
    name, variables, is_atomic = "recover-in-place", IN_PLACE, False
    points = (
        "staged", "tree-built", "synced", "rewalked", "committed", "moved:1", "moved:2", "moved:4", "moved:8", "moved:12",
        "marked", "found-unused", "placed", "merged", "undo-kept", "done")


class Rollback(ContainerChange):
    name = "rollback"
    undo = "rollback", "--redo"

    def prepare(self, machine):
        super().prepare(machine)
        machine.require("migrate", machine.container, variables=self.variables)

    def command(self, machine):
        return "rollback", machine.container


class RollbackInPlace(Rollback):
    name, variables, is_atomic = "rollback-in-place", IN_PLACE, False


class Restore(ContainerChange):
    name = "restore"

    def prepare(self, machine):
        super().prepare(machine)
        os.mkdir(machine.repository)
        machine.require("snapshot", machine.container, "-r", machine.repository)
        machine.app("edit", machine.container, "4")

    def command(self, machine):
        return "restore", "latest", machine.container, "-r", machine.repository, "--yes"


class RestoreInPlace(Restore):
    name, variables, is_atomic = "restore-in-place", IN_PLACE, False


class RestoreNew(Restore):
    """A restore that makes the container."""

    name = "restore-new"

    def prepare(self, machine):
        super().prepare(machine)
        shutil.rmtree(machine.container)


# Repositories


class RepositoryChange(Scenario):
    """Afterwards each archive that is kept can be read, and has the content that it had."""

    # Each archive has one tag, by which a snapshot is known also after its chain was written again.
    snapshots = 3
    # Tags that an archive may have until the command has ended.
    between = ()
    more = ""

    def configure(self, machine):
        super().configure(machine, self.more)

    def prepare(self, machine):
        super().prepare(machine)
        os.mkdir(machine.repository)
        for number in range(1, self.snapshots + 1):
            machine.require(*self.snapshot(machine, f"s{number}"), variables=self.variables)
            machine.app("edit", machine.container, str(number))

    def snapshot(self, machine, tag):
        return "snapshot", machine.container, "-r", machine.repository, "--tag", tag

    def archives(self, machine):
        """The ids of archives, by their tags."""
        output = machine.require("list", "-r", machine.repository, "--json", variables=self.reading(machine))
        report = json.loads(output)
        found = {}
        for archive in report["archives"]:
            found.setdefault(" ".join(archive["tags"]), []).append(archive["header"]["archive"])
        problems = [f"list: {item}" for item in report["unreadable"] + report["encrypted"] + report["clock_warnings"]]
        return found, problems

    def state(self, machine):
        """What each archive brings back."""
        archives, _ = self.archives(machine)
        return {tag: self.restored(machine, ids[0]) for tag, ids in archives.items()}

    def check(self, machine, before, after, is_done, random):
        try:
            return self.check_archives(machine, before, after, is_done, random)
        except RuntimeError as error:
            return [str(error)]

    def check_archives(self, machine, before, after, is_done, random):
        archives, problems = self.archives(machine)
        problems += self.run(machine, "verify", "-r", machine.repository, "--data", variables=self.reading(machine))[1]
        kept = set(before) & set(after) if not is_done else set(after)
        problems += [f"{tag} is lost" for tag in sorted(kept - set(archives))]
        allowed = set(after) if is_done else {*before, *after, *self.between}
        problems += [f"{tag} is there" for tag in sorted(set(archives) - allowed)]
        known = {**before, **after}
        readable = sorted(set(archives) & set(known))
        for tag in random.sample(readable, min(2, len(readable))):
            found = differences(self.restored(machine, archives[tag][0]), known[tag])
            problems += [f"{tag} brings back: {text}" for text in found]
        return problems + self.go_on(machine, before, after, archives)

    def go_on(self, machine, before, after, archives):
        """The next snapshot works, has what is there, and removes what an interrupted one has left."""
        _, problems = self.run(machine, *self.snapshot(machine, "next"))
        archives, more = self.archives(machine)
        problems += more + self.run(machine, "verify", "-r", machine.repository, "--data", variables=self.reading(machine))[1]
        if "next" in archives:
            found = differences(self.restored(machine, archives["next"][0]), listing(machine.container))
            problems += [f"the next snapshot has: {text}" for text in found]
        return problems + [f"{name} is left" for name in os.listdir(machine.repository) if name.startswith(".drydock-")]


class Snapshot(RepositoryChange):
    name = "snapshot"

    def command(self, machine):
        return self.snapshot(machine, "new")


class SnapshotEncrypted(Snapshot):
    """By a machine without an identity: it knows its archives by the manifests in its cache, which is on the disk, too."""

    name = "snapshot-encrypted"

    def configure(self, machine):
        super().configure(machine)
        self.identity, recipient = make_key(machine, "key.txt")
        self.variables = {"DRYDOCK_RECIPIENTS": recipient, "DRYDOCK_CACHE": os.path.join(machine.root, "Cache")}

    def reading(self, machine):
        return {**self.variables, "DRYDOCK_IDENTITY": self.identity}


class Rekey(RepositoryChange):
    """Archives that are not encrypted are replaced by encrypted ones."""

    name = "rekey"

    def configure(self, machine):
        super().configure(machine)
        self.identity, self.recipient = make_key(machine, "key.txt")

    def reading(self, machine):
        return {"DRYDOCK_IDENTITY": self.identity}

    def command(self, machine):
        return "rekey", "-r", machine.repository, "--replace", "--recipient", self.recipient

    def check_archives(self, machine, before, after, is_done, random):
        plain = [name for name in os.listdir(machine.repository) if name.endswith(".zst")]
        problems = super().check_archives(machine, before, after, is_done, random)
        return problems + [f"{name} is not encrypted, although the command had ended" for name in plain if is_done]


class Tag(RepositoryChange):
    name = "tag"

    def command(self, machine):
        return "tag", "-r", machine.repository, "latest", "--add", "t"

    def check_archives(self, machine, before, after, is_done, random):
        archives, _ = self.archives(machine)
        problems = super().check_archives(machine, before, after, is_done, random)
        return problems + ([] if {"s3", "s3 t"} & set(archives) else ["s3 has lost its tag"])


class Forget(RepositoryChange):
    name = "forget"
    snapshots = 6
    # The tags of an archive are removed before it.
    between = "",
    more = "snapshot: {full-after: 2}\n"
    options = ()

    def command(self, machine):
        return "forget", "-r", machine.repository, "--keep-last", "2", *self.options

    def go_on(self, machine, before, after, archives):
        _, problems = self.run(machine, *self.command(machine))
        archives, more = self.archives(machine)
        problems += more
        if {tag: len(ids) for tag, ids in archives.items()} != {tag: 1 for tag in after}:
            problems.append(f"run again, it leaves {archives}, not {sorted(after)}")
        return problems + super().go_on(machine, before, after, archives)


class Compact(Forget):
    """Chains are written again."""

    name = "compact"
    options = ("--compact=1%",)


# Content that is newer than its times


class Unchanged(Scenario):
    """An app overwrites files and syncs their content, so that the disk gets their times later or never. What the program does
    next must not go by the times."""

    name = "unchanged"
    is_aged = True
    # Without anything else that writes the times.
    writers = ("",)

    def act(self, machine):
        os.mkdir(machine.repository)
        machine.require("snapshot", machine.container, "-r", machine.repository)
        self.go_between(machine)
        run_tool("sync", "-f", machine.root)
        self.before = self.state(machine)
        machine.mark("begin")
        machine.app("overwrite", machine.container)
        machine.mark("done")

    def go_between(self, machine):
        pass

    def state(self, machine):
        return listing(machine.container)

    def check(self, machine, before, after, is_done, random):
        now, problems = listing(machine.container), []
        if is_done:
            problems += [f"the app's data: {text}" for text in differences(content_only(now), content_only(after))]
        return problems + (self.check_restore if random.random() < 0.3 else self.check_snapshot)(machine, before, now)

    def check_snapshot(self, machine, before, now):
        _, problems = self.run(machine, "snapshot", machine.container, "-r", machine.repository)
        found = [] if problems else differences(self.restored(machine, "latest"), now)
        return problems + [f"the next snapshot has: {text}" for text in found]

    def check_restore(self, machine, before, now):
        _, problems = self.run(machine, "restore", "latest", machine.container, "-r", machine.repository, "--yes")
        found = differences(content_only(listing(machine.container)), content_only(before))
        return problems + [f"after a restore: {text}" for text in found]


class UnchangedLinked(Unchanged):
    """After a migration, which makes lists of the files that it has linked and written: the next snapshot need not read
    them."""

    name = "unchanged-linked"

    def go_between(self, machine):
        machine.require("migrate", machine.container)

    # The archive is of the version before the migration.
    check_restore = Unchanged.check_snapshot


SCENARIOS = {
    scenario.name: scenario for scenario in (
        Migrate, MigrateInPlace, MigrateGroups, MigrateVault, Write, Rollback, RollbackInPlace, Restore, RestoreInPlace,
        RestoreNew, Recover, RecoverInPlace, Snapshot, SnapshotEncrypted, Forget, Compact, Rekey, Tag, Unchanged,
        UnchangedLinked)}
