"""The log of a disk, and what the disk may have after a power cut.

A disk has a volatile cache. A flush puts everything on the disk that was written before it. Of what was written since the last
flush a power cut leaves any part: some writes are lost, also if later ones are not, and some are torn at sectors.
"""
import bisect
import os
import struct
from typing import NamedTuple

# Of one record of the log: its kind, the place on the disk, the number of bytes that follow.
RECORD = struct.Struct("<cQI")
WRITE, FLUSH = b"W", b"F"
SECTOR = 512


class Write(NamedTuple):
    offset: int
    length: int
    # Of its data in the log.
    place: int


class Log:
    def __init__(self, path):
        self.file = os.open(path, os.O_RDONLY)
        # A Write, or None for a flush; and where each record ends in the file.
        self.records, self.ends = [], []
        place, size = 0, os.fstat(self.file).st_size
        while place < size:
            kind, offset, length = RECORD.unpack(os.pread(self.file, RECORD.size, place))
            place += RECORD.size
            self.records.append(Write(offset, length, place) if kind == WRITE else None)
            place += length
            self.ends.append(place)

    def count(self, length):
        """The number of records when the log had this length."""
        return bisect.bisect_right(self.ends, length)

    def flushed(self, count):
        """How many of the first records are on the disk for sure."""
        while count > 0 and self.records[count - 1] is not None:
            count -= 1
        return count

    def close(self):
        os.close(self.file)


class Cut(NamedTuple):
    """A power cut."""

    # The number of records that the disk had got.
    count: int
    # The ranges of bytes that the disk has of a write, by its number; of others it has all.
    parts: dict
    # For people.
    description: str


def whole_cut(log, count):
    """Everything that the disk had got is on it."""
    return Cut(count, {}, f"after record {count} of {len(log.records)}")


def bare_cut(log, count):
    """Nothing but what was flushed is on it."""
    lost = {number: [] for number in range(log.flushed(count), count)}
    return Cut(count, lost, f"after record {count} of {len(log.records)}, without the {len(lost)} writes since the last flush")


def random_cut(log, count, random):
    """Some of the writes since the last flush are lost, and some are torn."""
    start = log.flushed(count)
    loss, tears = random.choice([0, 0.1, 0.5, 0.9]), random.choice([0, 0.3])
    parts = {}
    for number in range(start, count):
        length = log.records[number].length
        # The disk was at work on the last one.
        if random.random() < (0.5 if number == count - 1 else tears) and length > SECTOR:
            parts[number] = torn(length, random)
        elif random.random() < loss:
            parts[number] = []
    lost = sum(not part for part in parts.values())
    return Cut(
        count, parts, f"after record {count} of {len(log.records)}, of the last {count - start} writes since the last flush "
        f"{lost} are lost and {len(parts) - lost} torn")


def torn(length, random):
    """A beginning, an end, or any sectors of a write."""
    sectors = length // SECTOR
    kind, at = random.randrange(3), random.randrange(1, sectors)
    if kind == 0:
        return [(0, at * SECTOR)]
    if kind == 1:
        return [(at * SECTOR, length)]
    return [(at * SECTOR, (at + 1) * SECTOR) for at in range(sectors) if random.random() < 0.5]


def cuts(log, number, first, done, random):
    """Cuts at moments of a recording: half of them at flushes, others in between.

    `first` is the number of records before the program began, `done` that when it had ended.
    """
    # What the program has promised must be there with nothing else on the disk; with all that was flushed later, too.
    found = [bare_cut(log, done), whole_cut(log, len(log.records))]
    flushes = [count + 1 for count, record in enumerate(log.records) if record is None and count >= first]
    chosen = random.sample(flushes, min(len(flushes), max(1, number // 2)))
    found += [whole_cut(log, count) for count in sorted(chosen)]
    # Between two flushes there may be one write or a thousand: a moment is chosen among all writes, or in one of the parts.
    ends = sorted({first, len(log.records), *flushes})
    while len(found) < number:
        part = random.randrange(1, len(ends)) if len(ends) > 1 and random.random() < 0.5 else None
        start, end = (ends[part - 1], ends[part]) if part else (first, len(log.records))
        found.append(random_cut(log, random.randint(start, end), random))
    return found[:number]


def make_image(log, base, cut, target):
    """Writes what is on the disk after a power cut, from what was on it when the recording began."""
    copy_sparse(base, target)
    image = os.open(target, os.O_WRONLY)
    try:
        for number, record in enumerate(log.records[:cut.count]):
            if record is None:
                continue
            for start, end in cut.parts.get(number, [(0, record.length)]):
                os.pwrite(image, os.pread(log.file, end - start, record.place + start), record.offset + start)
    finally:
        os.close(image)


def copy_sparse(source, target):
    """Copies a file with its holes: a disk of 300 MB has 3 MB of content."""
    with open(source, "rb") as reader, open(target, "wb") as writer:
        size, end = os.fstat(reader.fileno()).st_size, 0
        writer.truncate(size)
        while end < size:
            try:
                start = os.lseek(reader.fileno(), end, os.SEEK_DATA)
            except OSError:
                # No data follows.
                return
            end = os.lseek(reader.fileno(), start, os.SEEK_HOLE)
            while start < end:
                start += os.pwrite(writer.fileno(), os.pread(reader.fileno(), min(end - start, 1 << 20), start), start)
