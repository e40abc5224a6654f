"""A folder of tutti/ includes only folders before it in the order a model flows through them, and keras/ and transform/ do not see each other."""

import pathlib
import re
import sys

LEVELS = [["base"], ["graph"], ["keras", "transform"], ["device"], ["data"], ["run"], ["serve"], ["cli"]]
LEVEL = {folder: level for level, folders in enumerate(LEVELS) for folder in folders}
ROOT = pathlib.Path(__file__).resolve().parents[2]


def problems(root):
    files = sorted(path for path in (root / "tutti").rglob("*") if path.suffix in (".h", ".cc"))
    if not files:
        yield f"no sources under {root}/tutti"
    for path in files:
        inside = path.relative_to(root / "tutti")
        if len(inside.parts) == 1:  # tutti.h, the public surface, may name everything
            continue
        folder = inside.parts[0]
        if folder not in LEVEL:
            yield f"{path}: the folder '{folder}' has no place in the order; add it to {__file__}"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*["<]([^">]+)[">]', line)
            if not found or (line.lstrip().find('"') < 0 and not found[1].startswith("tutti/")):
                continue
            where = f"{path}:{number}"
            parts = found[1].split("/")
            if parts[0] != "tutti":
                yield f'{where}: our headers are included by their whole path, "tutti/..."; got "{found[1]}"'
            elif len(parts) == 2:
                if folder != "cli":
                    yield f"{where}: {folder}/ does not include the public header {found[1]}"
            elif parts[1] not in LEVEL:
                yield f"{where}: includes the unknown folder '{parts[1]}'"
            elif parts[1] != folder and LEVEL[parts[1]] >= LEVEL[folder]:
                yield f"{where}: {folder}/ does not see {parts[1]}/"


if __name__ == "__main__":
    found = list(problems(ROOT))
    print("\n".join(found))
    sys.exit(1 if found else 0)
