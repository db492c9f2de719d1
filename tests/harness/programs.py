"""Programs of others, and the files they move."""

import subprocess

from harness.content import MIB, digest, write_file


def run(command, environment, *, timeout=170, **options):
    """Runs a program that must succeed, and returns what it wrote to standard output."""
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **options,
    )
    told = f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, f"exit code {done.returncode} of {told}"
    return done.stdout


def make_tree(folder, large_bytes=64 * MIB + 1):
    """Fills a folder with small files, odd names, an empty file and a large one."""
    for index in range(12):
        inner = folder / f"folder {index % 3}"
        inner.mkdir(parents=True, exist_ok=True)
        write_file(inner / f"file {index}", index * 5000)
    write_file(folder / "ümlaut & Co (1).txt", 100)
    write_file(folder / "large", large_bytes)
    return folder


def tree_digests(folder):
    """Digest by relative path of all files below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): digest(path) for path in files}
