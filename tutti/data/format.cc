#include "tutti/data/format.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/base/utf8.h"
#include "tutti/data/npy_header.h"

namespace tutti {

namespace {

bool is_image(std::string_view start, const std::string& suffix) {
  return start.starts_with("\xff\xd8\xff") || start.starts_with("\x89PNG") || suffix == ".jpg" || suffix == ".jpeg" || suffix == ".png";
}

bool is_compressed(std::string_view start) {
  static constexpr std::string_view beginnings[] = {"\x1f\x8b", "BZh", "\3757zXZ", "\x28\xb5\x2f\xfd"};  // gzip, bzip2, xz, zstd
  return std::ranges::any_of(beginnings, [&](std::string_view begin) { return start.starts_with(begin); });
}

bool is_other_image(const std::string& suffix) {
  static constexpr std::string_view suffixes[] = {".avif", ".bmp", ".gif", ".heic", ".jp2", ".ppm", ".tif", ".tiff", ".webp"};
  return std::ranges::find(suffixes, suffix) != std::end(suffixes);
}

}  // namespace

std::string suffix_of(const std::string& path) { return in_lower_case(std::filesystem::path(path).extension().string()); }

DataFormat format_of_input(const std::string& path) {
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored))
    fail<Unsupported>("input", "'{}' is a folder; .npy, .npz and .csv files are read", path);
  auto source = open_file(path);
  std::array<std::byte, 8> bytes{};
  auto known = std::span(bytes).first(std::min<uint64_t>(bytes.size(), source->size()));
  source->read(0, known);
  std::string_view start(reinterpret_cast<const char*>(known.data()), known.size());
  std::string suffix = suffix_of(path);

  if (start.starts_with(npy_magic)) return DataFormat::npy;
  if (suffix == ".keras" || suffix == ".h5" || suffix == ".hdf5" || start.starts_with("\x89HDF"))
    fail<InvalidArgument>(
        "input", "'{}' is a model or HDF5 file; expected data: .npy, .npz or .csv; hint: the model comes first, then its input", path);
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) return DataFormat::npz;
  if (is_compressed(start)) fail<Unsupported>("input", "'{}' is compressed; hint: unpack it first, to a .tar, .npy or .csv", path);
  if (is_image(start, suffix)) fail<Unsupported>("input", "'{}' is an image; .npy, .npz and .csv files are read", path);
  if (suffix == ".pkl" || suffix == ".pickle" || (start.size() > 1 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5))
    fail<Unsupported>("input", "'{}' is a Python pickle, and pickles are never read; hint: numpy.save(file, array)", path);
  if (suffix == ".npy")
    fail<InvalidArgument>("npy", "'{}': not an .npy file; it does not begin with \\x93NUMPY ({} bytes)", path, source->size());
  if (suffix == ".npz")
    fail<InvalidArgument>("npz", "'{}': not an .npz file; it does not begin as a zip archive ({} bytes)", path, source->size());
  if (suffix == ".csv" || suffix == ".txt") return DataFormat::csv;
  if (is_other_image(suffix)) fail<Unsupported>("input", "'{}': of images, JPEG and PNG are read; hint: save it as one of them", path);
  fail<InvalidArgument>("input", "'{}': its format is not known; expected .npy, .npz or .csv", path);
}

DataFormat format_of_output(const std::string& path) {
  std::string suffix = suffix_of(path);
  if (suffix == ".npy") return DataFormat::npy;
  if (suffix == ".npz") return DataFormat::npz;
  if (suffix == ".csv") return DataFormat::csv;
  if (suffix == ".jsonl") return DataFormat::json_lines;
  fail<InvalidArgument>("output", "'{}': the name says the format; expected .npy, .npz or .csv, or .jsonl", path);
}

}  // namespace tutti
