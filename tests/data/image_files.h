// Images of the tests: what make_images.py wrote with TensorFlow, and tests/data/images, made with Pillow.
#pragma once

#include "tests/scratch.h"
#include "tutti/data/image.h"
#include "tutti/data/npz.h"

namespace tutti {

inline std::string tensorflow_file(const std::string& name) { return std::string(TUTTI_TEST_DATA) + "/data_images/" + name; }
inline std::string pillow_file(const std::string& name) { return std::string(TUTTI_SOURCE_DIR) + "/tests/data/images/" + name; }

inline std::vector<std::byte> file_bytes(const std::string& path) { return read_all(*open_file(path), 1 << 24); }

inline Image image_of(const std::string& path, int64_t channels = 3) { return decode_image(file_bytes(path), {.channels = channels}); }

inline std::span<const std::byte> bytes_in(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace tutti
