"""A disk that may lose, in a power cut, whatever was not synced.

By POSIX alone: a file's bytes are durable when it was synced, a name when its folder was.
"""

import hashlib
import os
import random

from . import tape

SECTOR_BYTES = 512

ZEROS = bytes(SECTOR_BYTES)


class Content:
    """A file's bytes, in sectors; those that are not there are zeros."""

    def __init__(self, length=0, sectors=None):
        self.length = length
        self.sectors = sectors if sectors is not None else {}

    def copy(self):
        return Content(self.length, dict(self.sectors))

    def write(self, offset, data):
        self.length = max(self.length, offset + len(data))
        for start, piece in by_sector(offset, data):
            place, within = divmod(start, SECTOR_BYTES)
            if len(piece) < SECTOR_BYTES:
                whole = bytearray(self.sectors.get(place, ZEROS))
                whole[within : within + len(piece)] = piece
                piece = bytes(whole)
            if piece == ZEROS:
                self.sectors.pop(place, None)
            else:
                self.sectors[place] = piece

    def truncate(self, length):
        if length < self.length:
            for place in [p for p in self.sectors if (p + 1) * SECTOR_BYTES > length]:
                kept = max(0, length - place * SECTOR_BYTES)
                whole = self.sectors.pop(place)[:kept]
                if any(whole):
                    self.sectors[place] = whole.ljust(SECTOR_BYTES, b"\0")
        self.length = length

    def apply(self, change):
        _, offset, data = change
        if data is None:
            self.truncate(offset)
        else:
            self.write(offset, data)

    def place(self, path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(descriptor, self.length)
        for place, sector in self.sectors.items():
            start = place * SECTOR_BYTES
            os.pwrite(descriptor, sector[: self.length - start], start)
        os.close(descriptor)


def by_sector(offset, data):
    """The pieces of a write, each within a sector, and where they begin."""
    start = 0
    while start < len(data):
        end = min(len(data), start + SECTOR_BYTES - (offset + start) % SECTOR_BYTES)
        yield offset + start, data[start:end]
        start = end


class File:
    """What of a file is durable, and its later changes: (number of the step, offset, bytes)."""

    def __init__(self, durable=None):
        self.durable = durable or Content()
        self.pending = []

    def sync(self):
        for change in self.pending:
            self.durable.apply(change)
        self.pending = []

    def after(self, chance, how):
        """Its content after a power cut."""
        if how == "none" or not self.pending:
            return self.durable.copy()
        content = self.durable.copy()
        most = len(self.pending) if how != "prefix" else chance.randint(0, len(self.pending))
        for change in self.pending[:most]:
            spoil(content, change, chance, how)
        if how == "prefix" and most < len(self.pending):
            spoil(content, self.pending[most], chance, "torn")
        return content


def spoil(content, change, chance, how):
    """Applies a change as far as `how` lets it reach the disk."""
    _, offset, data = change
    if how in ("all", "prefix") or data is None:
        if data is not None or how in ("all", "prefix") or chance.random() < 0.5:
            content.apply(change)
        return
    if how == "writes":
        if chance.random() < 0.5:
            content.apply(change)
        return
    for start, piece in by_sector(offset, data):
        luck = chance.random()
        if how == "garbled" and luck < 0.2:
            content.write(start, bytes([chance.randrange(256)]) * len(piece))
        elif luck < 0.6:
            content.write(start, piece)


class Folder:
    """Names: those that are durable, and those that the program sees."""

    def __init__(self):
        self.durable = {}
        self.live = {}


class Disk:
    """The files below a folder, from a copy of it on, step by step."""

    def __init__(self):
        self.root = Folder()
        self.inodes = {}
        # Changes of names: (number of the step, [(folder, name, file or folder or None)]).
        self.pending = []
        self.count = 0

    @staticmethod
    def of(folder):
        """All that is there, durable."""
        disk = Disk()
        disk._take(folder, disk.root)
        return disk

    def _take(self, path, folder):
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                node = Folder()
                self._take(entry.path, node)
            elif entry.is_file(follow_symlinks=False):
                node = File(read_sparse(entry.path))
                self.inodes[entry.inode()] = node
            else:
                continue
            folder.durable[entry.name] = folder.live[entry.name] = node

    def find(self, path):
        """The folder that holds a path, and its last name."""
        *folders, name = path.split("/")
        node = self.root
        for one in folders:
            node = node.live[one]
        return node, name

    def apply(self, step):
        """A step that is done."""
        self.begin(step)
        if step.what == tape.SYNC:
            if step.inode in self.inodes:
                self.inodes[step.inode].sync()
        elif step.what == tape.SYNC_FOLDER:
            folder = self.root if not step.path else None
            if folder is None:
                above, name = self.find(step.path)
                folder = above.live[name]
            self._sync_folder(folder)
        elif step.what == tape.SYNC_ALL:
            self.sync_all()
        elif step.what == tape.SYNC_REFUSED:
            # What was to be synced passes for written from here on: each sector is, or is lost.
            file = self.inodes[step.inode]
            file.durable = file.after(random.Random(self.count), "torn")
            file.pending = []
        self.count += 1

    def begin(self, step):
        """A step that is under way: nothing of it is durable for certain."""
        if step.what == tape.WRITE and step.inode in self.inodes:
            self.inodes[step.inode].pending.append((self.count, step.number, step.data))
        elif step.what == tape.TRUNCATE and step.inode in self.inodes:
            self.inodes[step.inode].pending.append((self.count, step.number, None))
        elif step.what == tape.CREATE:
            self.inodes[step.inode] = File()
            self._name([(*self.find(step.path), self.inodes[step.inode])])
        elif step.what == tape.LINK:
            self._name([(*self.find(step.path), self.inodes[step.inode])])
        elif step.what == tape.MAKE_FOLDER:
            self._name([(*self.find(step.path), Folder())])
        elif step.what == tape.REMOVE:
            folder, name = self.find(step.path)
            if name in folder.live:
                self._name([(folder, name, None)])
        elif step.what == tape.RENAME:
            (above, name), (other, second) = self.find(step.path), self.find(step.second)
            # 1: the two have changed names.
            left = other.live[second] if step.number == 1 else None
            self._name([(above, name, left), (other, second, above.live[name])])

    def _name(self, changes):
        self.pending.append((self.count, changes))
        for folder, name, node in changes:
            set_name(folder.live, name, node)

    def _sync_folder(self, folder):
        left = []
        for number, changes in self.pending:
            if any(one is folder for one, _, _ in changes):
                for of, name, node in changes:
                    set_name(of.durable, name, node)
            else:
                left.append((number, changes))
        self.pending = left

    def sync_all(self):
        """As after a stop of the machine in good order."""
        for file in self._files(self.root, "live"):
            file.sync()
        for _, changes in self.pending:
            for of, name, node in changes:
                set_name(of.durable, name, node)
        self.pending = []

    def _files(self, folder, which):
        for node in getattr(folder, which).values():
            if isinstance(node, File):
                yield node
            else:
                yield from self._files(node, which)

    def cut(self, chance, data="all", names="all"):
        """What is there after a power cut: paths and contents; a folder has None."""
        kept = self._kept_names(chance, names)
        tables = {}

        def table(folder):
            if id(folder) not in tables:
                tables[id(folder)] = dict(folder.durable)
            return tables[id(folder)]

        for _, changes in kept:
            for folder, name, node in changes:
                set_name(table(folder), name, node)
        image, done = {}, {}

        def walk(folder, path):
            for name, node in sorted(table(folder).items()):
                if isinstance(node, Folder):
                    image[path + name] = None
                    walk(node, path + name + "/")
                elif is_kept(name):
                    if id(node) not in done:
                        done[id(node)] = node.after(chance, chance.choice(MIXED[data]))
                    image[path + name] = done[id(node)]

        walk(self.root, "")
        return image

    def _kept_names(self, chance, how):
        if how in ("all", "none"):
            return self.pending if how == "all" else []
        if how == "prefix":
            return self.pending[: chance.randint(0, len(self.pending))]
        return [change for change in self.pending if chance.random() < 0.5]


# What happens to files' bytes in a power cut, for the disk as a whole: of these, one for each file.
MIXED = {
    "all": ["all"],
    "none": ["none"],
    "files": ["all", "none"],
    "prefix": ["prefix"],
    "writes": ["writes"],
    "torn": ["torn"],
    "garbled": ["garbled"],
    "mixed": ["all", "none", "prefix", "writes", "torn", "garbled"],
}


def set_name(table, name, node):
    if node is None:
        table.pop(name, None)
    else:
        table[name] = node


def is_kept(name):
    """The lock is only held."""
    return name != "lock"


def read_sparse(path):
    """A file's content, without reading holes."""
    content = Content()
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        at = 0
        while at < size:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            content.write(at, os.pread(file.fileno(), end - at, at))
            at = end
        content.truncate(size)
    return content


def place(image, folder):
    """Puts what a power cut left into a folder."""
    os.mkdir(folder, 0o700)
    for path, content in image.items():
        if content is None:
            os.mkdir(os.path.join(folder, path), 0o700)
        else:
            content.place(os.path.join(folder, path))


def digest(image):
    """What tells one image from others."""
    whole = hashlib.blake2b(digest_size=16)
    for path, content in image.items():
        whole.update(path.encode() + b"\0")
        if content is not None:
            whole.update(b"%d" % content.length)
            for place_, sector in sorted(content.sectors.items()):
                whole.update(b"%d" % place_ + sector)
    return whole.digest()
