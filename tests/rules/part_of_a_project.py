"""A project that has Tutti as a part of it, as the README shows: part_of_a_project.py CMAKE GENERATOR. Configured, and its program compiled, not linked: that would compile the whole library again; but a file of kernels is, as it is where nobody asks for optimisation."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(mine LANGUAGES CXX)
add_subdirectory({root} tutti EXCLUDE_FROM_ALL)
add_executable(mine mine.cc)
target_link_libraries(mine PRIVATE tutti::tutti)
"""
# What this compiler warns of is no error there.
PROGRAM = """#include <tutti/tutti.h>
int main() { int unused; return tutti::load("spots.keras").problems().empty() ? 0 : 1; }
"""


def main():
    cmake, generator = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="tutti_part_") as folder:
        folder = pathlib.Path(folder)
        (folder / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT))
        (folder / "mine.cc").write_text(PROGRAM)
        run(cmake, "-G", generator, "-S", folder, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Debug")
        run(cmake, "--build", folder / "build", "--target", "CMakeFiles/mine.dir/mine.cc.o")
        run(cmake, "--build", folder / "build", "--target", "tutti/CMakeFiles/tutti_library.dir/tutti/device/cpu/gemm/epilogue.cc.o")
        tests = [path.name for path in (folder / "build" / "tutti").iterdir() if path.name in ("tests", "examples", "bench")]
        assert not tests, f"a project that Tutti is a part of gets {tests} as well"


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)


if __name__ == "__main__":
    main()
