"""Links of documents."""

import re


def dead_links(folder):
    """Links of the Markdown files in a folder that lead nowhere, with the file that each is in."""
    dead = []
    for page in sorted(folder.rglob("*.md")):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            path = target.partition("#")[0]
            is_elsewhere = target.startswith(("http:", "https:", "mailto:"))
            if path and not is_elsewhere and not (page.parent / path).exists():
                dead.append((page.name, target))
    return dead
