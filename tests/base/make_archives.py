"""Writes zip archives in the ways of Python's zipfile: make_archives.py OUT. A member's content is its name, repeated."""

import io
import pathlib
import sys
import zipfile

MEMBERS = {
    "metadata.json": (zipfile.ZIP_STORED, 3),
    "folder/é.bin": (zipfile.ZIP_DEFLATED, 10000),
    "empty": (zipfile.ZIP_STORED, 0),
    "empty_deflated": (zipfile.ZIP_DEFLATED, 0),
    "model.weights.h5": (zipfile.ZIP_STORED, 5000),
}


class Unseekable(io.RawIOBase):
    def __init__(self, file):
        self.file = file

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


def write(path, seekable, zip64, comment=b""):
    with open(path, "wb") as file, zipfile.ZipFile(file if seekable else Unseekable(file), "w") as archive:
        archive.comment = comment
        for name, (method, count) in MEMBERS.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=zip64) as member:
                member.write(name.encode() * count)


def main():
    out = pathlib.Path(sys.argv[1])
    for seekable in (True, False):
        for zip64 in (True, False):
            write(out / f"{'seekable' if seekable else 'streamed'}{'_zip64' if zip64 else ''}.zip", seekable, zip64)
    write(out / "comment.zip", True, False, b"a comment that holds PK\5\6 itself")
    with zipfile.ZipFile(out / "folders.zip", "w") as archive:
        archive.mkdir("assets")
        archive.writestr("assets/a.txt", "assets/a.txt")
    with zipfile.ZipFile(out / "many.zip", "w") as archive:
        for i in range(70000):
            archive.writestr(f"m{i}", b"")
    with zipfile.ZipFile(out / "other_method.zip", "w") as archive:
        archive.writestr("a", b"a" * 1000, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(out / "bomb.zip", "w") as archive:
        archive.writestr("zeros", bytes(300 << 20), zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(out / "zeros.zip", "w") as archive:
        archive.writestr("zeros", bytes(100 << 20), zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
