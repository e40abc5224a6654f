// The header of NumPy's .npy format (versions 1 to 3): a Python dict literal, read strictly and checked against the file's size.
#pragma once

#include <string>
#include <string_view>

#include "tutti/base/file.h"
#include "tutti/base/tensor.h"

namespace tutti {

struct NpyHeader {
  Type type;
  bool fortran_order = false;  // first axis fastest
  bool big_endian = false;
  uint64_t data_offset = 0;
};

inline constexpr std::string_view npy_magic{"\x93NUMPY", 6};

// `file` names the source in messages. Corrupt: InvalidArgument. Well-formed, but of a dtype that has no DType (complex, text, dates,
// Python objects): Unsupported. The declared data are exactly what the source holds after the header.
NpyHeader read_npy_header(const ByteSource& source, std::string_view file);

// The text that numpy.save puts before an array of this type, byte for byte. Its length does not depend on the first extent, so that it can
// be written again once the number of rows is known.
std::string npy_header(const Type& type);

}  // namespace tutti
