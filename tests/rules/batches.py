"""batches.py BUILD: no two files of a target have the same thing in their anonymous namespaces, nor one that a header has in the namespace around it.

The presets compile several files of a target as one, and which ones changes with every file that is added: names that are apart today meet then.
clang-format leaves what a namespace holds at the beginning of its line, so that this needs no parser of C++.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOT_CODE = re.compile(r'R"(\w*)\(.*?\)\1"|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'', re.S)
NO_NAME = re.compile(r"using namespace|using [\w:]+;|friend|static_assert|extern|template (class|struct)|template <.*>$|[A-Z_]+\(")
TYPE = re.compile(r"(?:struct|class|union|enum(?: class)?) (\w+)[^;=()]*$")
FUNCTION = re.compile(r"[^=(]* \W?([\w:]+)\(")
VARIABLE = re.compile(r"[^=({]* \W?(\w+)(\[\w*\])*( =|\{)")

Name = collections.namedtuple("Name", "namespace anonymous name alias path line")


def main(build):
    targets = collections.defaultdict(set)
    for batch in pathlib.Path(build).rglob("Unity/unity_*.cxx"):
        targets[batch.parent.parent.stem].update(map(pathlib.Path, re.findall(r'#include "(.*)"', batch.read_text())))
    if not targets:
        sys.exit(f"{build} compiles no files together")
    headers = [name for path in sorted((ROOT / "tutti").rglob("*.h")) for name in names_of(path)]
    found = [clash for target, files in sorted(targets.items()) for clash in clashes(target, sorted(files), headers)]
    print("\n".join(found))
    sys.exit(1 if found else 0)


def clashes(target, files, headers):
    beside = [path for folder in {path.parent for path in files} if "tests" in folder.parts for path in folder.glob("*.h")]
    names = [name for path in files for name in names_of(path) if name.anonymous] + [name for path in beside for name in names_of(path)] + headers
    together = collections.defaultdict(list)
    for name in names:
        together[name.namespace, name.name].append(name)
    for (namespace, text), same in together.items():
        is_alias = same[0].alias and len({name.alias for name in same}) == 1  # which may be written twice
        if any(name.anonymous for name in same) and len({name.path for name in same}) > 1 and not is_alias:
            yield f"{target}: {namespace}::{text} in " + ", ".join(f"{name.path.relative_to(ROOT)}:{name.line}" for name in same)


def names_of(path):
    """What a file declares in its namespaces."""
    lines = NOT_CODE.sub(lambda found: '""' + "\n" * found[0].count("\n"), path.read_text()).split("\n")
    namespaces, depth = [], 0  # with the depth of braces outside of each
    for number, line in enumerate(lines, 1):
        if opened := re.match(r"(?:inline )?namespace ?([\w:]*) \{$", line):
            namespaces.append((opened[1], depth))
        elif namespaces and re.match("[A-Za-z_]", line) and not NO_NAME.match(line):
            name, alias = declared(" ".join(lines[number - 1 : number + 9]))
            if name:
                outer = [text for text, _ in namespaces]
                yield Name("::".join(filter(None, outer)), "" in outer, name, alias, path, number)
        depth += line.count("{") - line.count("}")
        if namespaces and depth == namespaces[-1][1]:
            namespaces.pop()


def declared(text):
    """The name that this declaration gives to something, of a function with the types of its parameters; and of an alias, what it stands for."""
    if found := re.match(r"(?:using|namespace) (\w+) = ([^;]*);", text):
        return found[1], found[2]
    masked = without_template_arguments(text)
    if found := re.match("template _+ ", masked):
        text, masked = text[found.end() :], masked[found.end() :]
    head = re.split("[;{]", masked)[0]
    if found := TYPE.match(head):
        return found[1], None
    if found := FUNCTION.match(head):
        return (None if "::" in found[1] else f"{found[1]}({', '.join(types_of(text, masked, found.end()))})"), None
    if found := VARIABLE.match(masked):
        return found[1], None
    return None, None


def without_template_arguments(text):
    """With as many underscores in their place."""
    before = None
    while text != before:
        before, text = text, re.sub("<[^<>;{}]*>", lambda found: "_" * len(found[0]), text)
    return text


def types_of(text, masked, start):
    depth = 1
    for end in range(start, len(masked)):
        depth += {"(": 1, ")": -1}.get(masked[end], 0)
        if depth == 0 or (masked[end] == "," and depth == 1):
            yield re.sub(r"([\w>&*.] ?[ &*])\w+$", r"\1", text[start:end].split(" = ")[0].strip()).strip()
            start = end + 1
        if depth == 0:
            return


if __name__ == "__main__":
    main(sys.argv[1])
