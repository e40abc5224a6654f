"""Writes HDF5 files in every way that h5py can, and what they hold: make_files.py OUT.

OUT/NAME.h5 and OUT/expected.json: {NAME: {PATH: object}}, where an object has "kind" and
- a group "children",
- a data set "dtype", "shape" and "crc32" of its little-endian bytes, or "strings", or "error" (what the message of the refusal contains),
- "attributes": {name: the same as for a data set}, in the order in which h5py lists them.
"""

import ctypes
import glob
import json
import os
import pathlib
import sys
import zlib

import h5py
import ml_dtypes
import numpy as np
from h5py import h5d, h5f, h5p, h5s, h5t

EVERY_LIBVER = ("earliest", "v108", "v110", "latest")
NUMBERS = "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split()


def numbers(shape, dtype, seed=0):
    dtype = np.dtype(dtype)
    random = np.random.default_rng(seed)
    if dtype.kind == "f":
        return random.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, size=shape).astype(bool)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, size=shape, dtype=dtype.newbyteorder("="), endpoint=True).astype(dtype)


# Every writer fills an open file. Those with a fixed way of opening have it in their name's row of FILES.


def types(file):
    for name in NUMBERS:
        file[f"little/{name}"] = numbers((3, 5), "<" + name)
        file[f"big/{name}"] = numbers((3, 5), ">" + name)
        file[f"scalar/{name}"] = numbers((), "<" + name)[()]
        file.create_dataset(f"no_rows/{name}", (0, 4), "<" + name)
    file["bool"] = numbers((4, 4), "bool")
    file["bool_scalar"] = True
    file["enum"] = np.zeros(3, h5py.enum_dtype({"RED": 0, "GREEN": 7}, "i2")) + 7
    file["specials"] = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7e308])
    file["half_specials"] = np.array([np.nan, np.inf, -np.inf, -0.0, 6e-8, 65504], "f2")
    file["nothing"] = h5py.Empty("f4")
    file["complete/bfloat16"] = numbers((7, 3), "f4").astype(ml_dtypes.bfloat16)
    file["complete/bfloat16"].attrs["dtype"] = "bfloat16"
    file["opaque"] = numbers((3,), "u2").view("V2")
    file["type"] = np.dtype("<f4")
    file.create_dataset("typed", data=numbers((4,), "f4"), dtype=file["type"])
    file["typed"].attrs.create("also", numbers((2,), "f4"), dtype=file["type"])


def strings(file):
    file["fixed"] = np.array([b"a", b"", b"longer", "é".encode()])
    file["fixed_scalar"] = np.bytes_(b"scalar")
    file["variable"] = ["one", "", "zwölf", "x" * 5000]
    file["variable_scalar"] = "text"
    file["variable_rows"] = np.array([["a", "b"], ["c", "d"]], dtype=h5py.string_dtype())
    file.create_dataset("chunked", data=[f"row {i}" for i in range(100)], chunks=(7,), compression="gzip")
    for padding in (h5t.STR_NULLTERM, h5t.STR_NULLPAD, h5t.STR_SPACEPAD):
        kind = h5t.C_S1.copy()
        kind.set_size(8)
        kind.set_strpad(padding)
        data = h5d.create(file.id, f"padding_{padding}".encode(), kind, h5s.create_simple((2,)))
        short = b"ab      " if padding == h5t.STR_SPACEPAD else b"ab"
        data.write(h5s.ALL, h5s.ALL, np.array([short, b"1234567" if padding == h5t.STR_NULLTERM else b"12345678"], "S8"), kind)
    file.create_dataset("unwritten", (3,), h5py.string_dtype())


def attributes(file):
    group, data = file.create_group("group"), file.create_dataset("data", data=np.arange(4))
    for target in (file, group, data):
        target.attrs["text"] = "variable é"
        target.attrs["bytes"] = b"variable bytes"
        target.attrs["fixed"] = np.bytes_(b"fixed")
        target.attrs["empty_text"] = ""
        target.attrs["texts"] = ["a", "bc", ""]
        target.attrs["fixed_texts"] = np.array([b"kernel:0", b"bias:0"])
        target.attrs["number"] = 3
        target.attrs["flag"] = True
        target.attrs["half"] = np.float16(1.5)
        target.attrs["big_endian"] = numbers((2, 3), ">f4")
        target.attrs["nothing"] = h5py.Empty("f8")
        target.attrs["no_texts"] = np.array([], h5py.string_dtype())
        target.attrs["config"] = json.dumps({"layers": [{"name": f"dense_{i}"} for i in range(3000)]})


def many_attributes(file):
    group = file.create_group("group")
    for i in range(300):
        group.attrs[f"attribute {i * 7 % 300}"] = f"value {i}" if i % 2 else np.arange(i)


def large_attributes(file):
    """Above 64 KiB attributes leave the header; above 4 KiB they are huge objects of the heap."""
    for size in (10, 5000, 20000, 100000):
        file.attrs[f"attribute {size}"] = numbers((size,), "f4", size)


def many_links(file):
    group = file.create_group("many")
    for i in range(1200):
        group[f"layer {i * 7 % 1200}"] = np.float32(i)
    for name in "cab":
        file.create_group(name)
        for other in ("z", "a", "m"):
            file[name].create_group(other)


def nested(file):
    file["/".join("abcdefghij" * 3)] = np.arange(3)
    file["shared/first"] = np.arange(5)
    file["shared/second"] = file["shared/first"]


def long_headers(file):
    """Messages in continuation blocks: links and attributes come after the header is full."""
    for i in range(7):
        group = file.require_group(f"a group with quite a long name {i % 3}")
        for k in range(7):
            group[f"a data set with an even longer name than that, to fill blocks {i} {k}"] = np.float32([i, k])
            group.attrs[f"attribute {i} {k}"] = "x" * 50 * k


def chunked(file):
    for rank, shape, chunks in ((1, (100,), (7,)), (2, (30, 17), (8, 5)), (3, (9, 10, 11), (4, 10, 3)), (4, (3, 4, 5, 6), (2, 2, 2, 2))):
        for name, options in {
            "plain": {},
            "gzip": {"compression": "gzip"},
            "gzip_shuffle": {"compression": 9, "shuffle": True},
            "fletcher": {"fletcher32": True},
            "all": {"compression": 4, "shuffle": True, "fletcher32": True},
        }.items():
            for dtype in ("<f4", ">i2", "f8"):
                file.create_dataset(f"rank {rank}/{name}/{dtype}", data=numbers(shape, dtype), chunks=chunks, **options)
    file.create_dataset("bools", data=numbers((50,), "bool"), chunks=(8,), compression="gzip")
    file.create_dataset("odd_bytes", data=numbers((13,), "u1"), chunks=(13,), fletcher32=True, shuffle=True)
    file.create_dataset("incompressible", data=numbers((1000,), "u8"), chunks=(100,), compression="gzip")
    file.create_dataset("zeros", data=np.zeros((1000, 1000), "f4"), chunks=(250, 250), compression="gzip")


def fill_values(file):
    file.create_dataset("unwritten", (5, 6), "f4")
    file.create_dataset("unwritten_filled", (5, 6), "f4", fillvalue=2.5)
    file.create_dataset("unwritten_big_endian", (5,), ">i4", fillvalue=77)
    for name, options in {"plain": {}, "gzip": {"compression": "gzip"}}.items():
        data = file.create_dataset(f"partly/{name}", (20, 20), "i4", chunks=(6, 6), fillvalue=-1, **options)
        data[7, 7] = 5
        data[19, 19] = 6
        file.create_dataset(f"never/{name}", (20, 20), "i4", chunks=(6, 6), fillvalue=-1, **options)


def indexes(file):
    """The chunk indexes of the newer format, by what the data set may grow to."""
    for name, options in {"plain": {}, "gzip": {"compression": "gzip"}}.items():
        def create(path, shape, chunks, **more):
            data = file.create_dataset(f"{name}/{path}", shape, "<i4", chunks=chunks, **more, **options)
            data[...] = numbers(shape, "i4", len(path))
            return data

        create("single", (5, 6), (5, 6))
        create("fixed", (20, 30), (6, 7))
        create("fixed_larger", (20, 30), (6, 7), maxshape=(50, 60))
        create("fixed_pages", (3000,), (1,))
        create("extensible", (20, 30), (6, 7), maxshape=(None, 30))
        create("extensible_last", (20, 30), (6, 7), maxshape=(20, None))
        create("extensible_larger", (8, 9, 10), (3, 3, 3), maxshape=(16, None, 25))
        create("extensible_small", (3,), (1,), maxshape=(None,))
        create("tree", (40, 50), (6, 7), maxshape=(None, None))
        create("tree_deep", (70, 70), (1, 1), maxshape=(None, None))
        data = create("shrunk", (40, 40), (6, 6), maxshape=(None, 40))
        data.resize((13, 40))
        data = file.create_dataset(f"{name}/holes", (5000,), "i2", chunks=(1,), maxshape=(None,), fillvalue=9, **options)
        data[0] = data[17] = data[4000] = 1
        data = file.create_dataset(f"{name}/fixed_holes", (5000,), "i2", chunks=(1,), fillvalue=9, **options)
        data[0] = data[17] = data[4000] = 1
    properties = h5p.create(h5p.DATASET_CREATE)
    properties.set_chunk((4, 5))
    properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)
    for path, maximum in ((b"implicit", (10, 12)), (b"implicit_larger", (20, 30))):
        data = h5d.create(file.id, path, h5t.STD_I32LE, h5s.create_simple((10, 12), maximum), properties)
        data.write(h5s.ALL, h5s.ALL, numbers((10, 12), "i4"))


def many_chunks(file):
    """Secondary blocks and pages of the extensible array."""
    data = file.create_dataset("many", (40000,), "i2", chunks=(1,), maxshape=(None,))
    data.id.write(h5s.ALL, h5s.ALL, numbers((40000,), "i2"))


def plain_edges(file):
    """Chunks over the edge are stored without filters: H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS."""
    for name, maximum in (("fixed", (10, 12)), ("extensible", (h5s.UNLIMITED, 12)), ("tree", (h5s.UNLIMITED, h5s.UNLIMITED)), ("single", None)):
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_chunk((4, 5) if maximum else (10, 12))
        properties.set_deflate(6)
        hdf5().H5Pset_chunk_opts(ctypes.c_int64(properties.id), ctypes.c_uint(2))
        data = h5d.create(file.id, name.encode(), h5t.STD_I32LE, h5s.create_simple((10, 12), maximum or (10, 12)), properties)
        data.write(h5s.ALL, h5s.ALL, numbers((10, 12), "i4"))


def skipped_filters(file):
    """Chunks that say which of their filters were not applied."""
    values = numbers((4, 6), "<i4")
    for name, mask in (("none", 0b000), ("no_deflate", 0b010), ("no_shuffle", 0b001), ("nothing", 0b011)):
        data = file.create_dataset(name, (4, 6), "<i4", chunks=(4, 6), shuffle=True, compression="gzip")
        raw = values.tobytes()
        if not mask & 1:
            raw = np.frombuffer(raw, "u1").reshape(-1, 4).T.tobytes()
        if not mask & 2:
            raw = zlib.compress(raw)
        data.id.write_direct_chunk((0, 0), raw, filter_mask=mask)


def compact(file):
    for dtype in ("<f4", ">f8", "bool"):
        properties = h5p.create(h5p.DATASET_CREATE)
        properties.set_layout(h5d.COMPACT)
        kind = h5t.py_create(np.dtype(dtype), logical=True)
        data = h5d.create(file.id, dtype.encode(), kind, h5s.create_simple((3, 4)), properties)
        data.write(h5s.ALL, h5s.ALL, numbers((3, 4), dtype))


def keras_like(file):
    for i in range(3):
        variables = file.create_group(f"layers/dense_{i}/vars")
        variables["0"] = numbers((8, 8), "f4", i)
        variables["1"] = numbers((8,), "f4", i)
    legacy = file.create_group("model_weights")
    legacy.attrs["layer_names"] = [b"dense", b"dense_1"]
    legacy.attrs["backend"] = "tensorflow"
    for name in legacy.attrs["layer_names"]:
        group = legacy.create_group(name)
        group.attrs["weight_names"] = [f"{name}/kernel:0".encode(), f"{name}/bias:0".encode()]
        for k, weight in enumerate(group.attrs["weight_names"]):
            group[weight] = numbers((4,) * (2 - k), "f4")


def small_widths(file, attribute_count):
    file["a/b"] = numbers((4, 5), "f4")
    file.create_dataset("chunked", data=numbers((20,), "i4"), chunks=(3,), compression="gzip")
    file["text"] = ["one", "two"]
    for i in range(attribute_count):
        file.attrs[f"attribute {i}"] = i


def old_layouts(path):
    """Layout messages of versions 1 and 2, which no library of today writes: patched over those of version 3."""
    with h5py.File(path, "w", libver=("earliest", "latest")) as file:
        for version in (1, 2):
            file[f"contiguous_{version}"] = numbers((10,), "<f4", version)
            file.create_dataset(f"chunked_{version}", data=numbers((10,), "<f4", version), chunks=(3,), compression="gzip")
        where = {name: item.id.get_offset() for name, item in file.items() if item.chunks is None}
    raw = bytearray(path.read_bytes())
    for version in (1, 2):
        address = where[f"contiguous_{version}"].to_bytes(8, "little")
        patch(raw, b"\3\1" + address + (40).to_bytes(8, "little"), bytes([version, 1, 1, 0, 0, 0, 0, 0]) + address + (10).to_bytes(4, "little"))
        at = raw.index(b"\3\2\2")
        address = raw[at + 3 : at + 11]
        dimensions = (3).to_bytes(4, "little") + (4).to_bytes(4, "little")
        patch(raw, b"\3\2\2" + address + dimensions, bytes([version, 2, 2, 0, 0, 0, 0, 0]) + address + dimensions)
    path.write_bytes(raw)


def patch(raw, old, new):
    assert raw.count(old) == 1, raw.count(old)
    at = raw.index(old)
    raw[at : at + len(new)] = new


def refused(file):
    file["data"] = np.arange(3)
    file["soft"] = h5py.SoftLink("/data")
    file["dangling"] = h5py.SoftLink("/nowhere")
    file["external"] = h5py.ExternalLink("other.h5", "/data")
    file["compound"] = np.zeros(2, [("a", "i4"), ("b", "f4")])
    file.create_dataset("arrays", (2,), np.dtype(("i4", (3,))))
    file["complex"] = np.zeros(2, "c8")
    file["long_double"] = np.zeros(2, "longdouble")
    file.create_dataset("reference", (2,), h5py.ref_dtype)
    file.create_dataset("sequences", (2,), h5py.vlen_dtype("i4"))
    file.create_dataset("lzf", data=np.arange(10), chunks=(5,), compression="lzf")
    file.create_dataset("scaleoffset", data=np.arange(10), chunks=(5,), scaleoffset=2)
    file.create_dataset("outside", (3,), "i4", external=[("data.bin", 0, 12)])
    layout = h5py.VirtualLayout((3,), "i4")
    layout[:] = h5py.VirtualSource("other.h5", "data", (3,))
    file.create_virtual_dataset("virtual", layout)
    file.create_group("group")
    file["other_way"] = file["group"]
    file["loop/self"] = np.arange(1)
    del file["loop/self"]
    file["loop/self"] = file["loop"]


REFUSED = {
    "soft": "soft link",
    "dangling": "soft link",
    "external": "external link",
    "compound": "compound",
    "arrays": "array",
    "complex": "compound",
    "long_double": "float of",
    "reference": "reference",
    "sequences": "variable-length",
    "lzf": "lzf",
    "scaleoffset": "scaleoffset",
    "outside": "other files",
    "virtual": "virtual",
    "other_way": "are one",
    "loop/self": "are one",
}


def hdf5():
    """The library inside of h5py, for what h5py does not expose."""
    folder = pathlib.Path(h5py.__file__).parent.parent / "h5py.libs"
    return ctypes.CDLL(sorted(glob.glob(str(folder / "libhdf5-*.so*")))[0])


def open_with_properties(path, change, low="earliest"):
    properties = h5p.create(h5p.FILE_CREATE)
    change(properties)
    access = h5p.create(h5p.FILE_ACCESS)
    versions = {"earliest": h5f.LIBVER_EARLIEST, "latest": h5f.LIBVER_LATEST}
    access.set_libver_bounds(versions[low], h5f.LIBVER_LATEST)
    return h5py.File(h5f.create(str(path).encode(), h5f.ACC_TRUNC, properties, access))


def make_files(out):
    for writer in (keras_like, chunked, fill_values):
        for libver in EVERY_LIBVER:
            with h5py.File(out / f"{writer.__name__}_{libver}.h5", "w", libver=(libver, "latest")) as file:
                writer(file)
    for writer in (types, strings, attributes, many_attributes, many_links, nested, long_headers, compact, indexes, refused):
        for libver in ("earliest", "latest"):
            with h5py.File(out / f"{writer.__name__}_{libver}.h5", "w", libver=(libver, "latest")) as file:
                writer(file)
    for writer in (large_attributes, many_chunks, plain_edges, skipped_filters):
        with h5py.File(out / f"{writer.__name__}.h5", "w", libver="latest") as file:
            writer(file)
    h5py.get_config().track_order = True
    for writer in (many_links, many_attributes, attributes):
        for libver in ("earliest", "latest"):
            with h5py.File(out / f"{writer.__name__}_ordered_{libver}.h5", "w", libver=(libver, "latest")) as file:
                writer(file)
    h5py.get_config().track_order = False
    for size in (512, 4096):
        for libver in ("earliest", "latest"):
            with h5py.File(out / f"user_block_{size}_{libver}.h5", "w", userblock_size=size, libver=(libver, "latest")) as file:
                keras_like(file)
                chunked(file)
    # The library itself cannot read attributes in a heap when sizes have two bytes.
    for width, count in ((2, 6), (4, 20)):
        for libver in ("earliest", "latest"):
            with open_with_properties(out / f"width_{width}_{libver}.h5", lambda p: p.set_sizes(width, width), libver) as file:
                small_widths(file, count)
    # Another chunk B-tree size than the usual one is what superblock version 1 is for.
    with open_with_properties(out / "superblock_1.h5", lambda p: hdf5().H5Pset_istore_k(ctypes.c_int64(p.id), ctypes.c_uint(5))) as file:
        keras_like(file)
        chunked(file)
    old_layouts(out / "old_layouts.h5")
    with open_with_properties(out / "paged.h5", lambda p: p.set_file_space_strategy(h5f.FSPACE_STRATEGY_PAGE, True, 1), "latest") as file:
        keras_like(file)


def describe_values(value, kind):
    if isinstance(value, h5py.Empty):
        return {"dtype": str(np.dtype(kind)), "shape": [0], "crc32": 0}
    array = np.asarray(value)
    if array.dtype.kind in "SUO":
        return {"strings": [text if isinstance(text, str) else bytes(text).decode() for text in array.ravel().tolist()]}
    array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    return {"dtype": array.dtype.newbyteorder("=").name, "shape": list(array.shape), "crc32": zlib.crc32(array.tobytes())}


def describe(path, item):
    out = {"attributes": {name: describe_values(item.attrs[name], item.attrs.get_id(name).dtype) for name in item.attrs}}
    if isinstance(item, h5py.Group):
        return out | {"kind": "group", "children": list(item)}
    if isinstance(item, h5py.Datatype):
        return out | {"kind": "other"}
    if item.dtype.kind == "V" and "dtype" not in item.attrs:
        return out | {"kind": "dataset", "error": "opaque"}
    value = item[()]
    if item.dtype.kind == "V":
        value = np.asarray(value).view("u2")
        return out | {"kind": "dataset"} | describe_values(value, value.dtype) | {"dtype": "bfloat16"}
    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        value = np.array([b"" if text == 0 else text for text in value.ravel().tolist()], "O")
    return out | {"kind": "dataset"} | describe_values(value, item.dtype)


def describe_file(path):
    objects = {}
    with h5py.File(path) as file:
        if path.stem.startswith("refused"):
            return {name: {"error": text} for name, text in REFUSED.items()} | {"data": describe("data", file["data"])}
        pending = [""]
        while pending:
            name = pending.pop()
            item = file[name or "/"]
            objects[name] = describe(name, item)
            if isinstance(item, h5py.Group):
                pending += [f"{name}/{child}".lstrip("/") for child in item]
    return objects


def main():
    out = pathlib.Path(sys.argv[1])
    for old in out.glob("*"):
        old.unlink()
    make_files(out)
    expected = {path.stem: describe_file(path) for path in sorted(out.glob("*.h5"))}
    temporary = out / "expected.part"
    temporary.write_text(json.dumps(expected))
    os.replace(temporary, out / "expected.json")


if __name__ == "__main__":
    main()
