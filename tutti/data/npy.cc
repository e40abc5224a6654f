#include "tutti/data/npy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tutti/base/error.h"

namespace tutti {

static_assert(std::endian::native == std::endian::little);

namespace {

void reverse_each(std::span<std::byte> bytes, size_t element) {
  for (size_t at = 0; at + element <= bytes.size(); at += element) std::reverse(bytes.data() + at, bytes.data() + at + element);
}

// A bool holding another value than 0 or 1 is undefined behaviour; files may hold any byte.
void make_bools(std::span<std::byte> bytes) {
  for (auto& b : bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
}

}  // namespace

NpyReader::NpyReader(std::shared_ptr<const ByteSource> source, std::string file)
    : source_(std::move(source)), file_(std::move(file)), header_(read_npy_header(*source_, file_)) {}

void NpyReader::check_rows_asked(int64_t begin, int64_t count) const {
  const Shape& shape = header_.type.shape;
  if (shape.rank() == 0)
    fail<InvalidArgument>("npy", "{}: holds a single number; expected an array whose first axis counts the samples", file_);
  if (begin < 0 || count < 0 || begin > shape[0] - count)
    fail<InvalidArgument>("npy", "{}: rows {} to {} asked for; the array has {}", file_, begin, begin + count, shape[0]);
}

Tensor NpyReader::rows(int64_t begin, int64_t count) const {
  check_rows_asked(begin, count);
  Tensor out(header_.type.dtype, with_rows(count, row_of(header_.type.shape)));
  read(begin, count, out.bytes());
  return out;
}

void NpyReader::read(int64_t begin, int64_t count, std::span<std::byte> out) const {
  check_rows_asked(begin, count);
  const Shape& shape = header_.type.shape;
  const int64_t row_bytes = row_of(shape).elements() * byte_size(header_.type.dtype);
  if (static_cast<int64_t>(out.size()) != count * row_bytes)
    fail<InternalError>("npy", "{} rows of {} bytes do not go into {}", count, row_bytes, out.size());
  if (header_.fortran_order && shape.rank() > 1) {
    read_fortran(begin, count, out);
  } else {
    source_->read(header_.data_offset + static_cast<uint64_t>(begin * row_bytes), out);
  }
  if (header_.big_endian) reverse_each(out, static_cast<size_t>(byte_size(header_.type.dtype)));
  if (header_.type.dtype == DType::boolean) make_bools(out);
}

Tensor NpyReader::all() const {
  if (type().shape.rank() > 0) return rows(0, type().shape[0]);
  Tensor out(type());
  source_->read(header_.data_offset, out.bytes());
  if (header_.big_endian) std::reverse(out.bytes().begin(), out.bytes().end());
  if (out.dtype() == DType::boolean) make_bools(out.bytes());
  return out;
}

// The file holds, for each place within a row (its first axis fastest), that place of all rows. One read per place.
void NpyReader::read_fortran(int64_t begin, int64_t count, std::span<std::byte> out) const {
  if (out.empty()) return;
  const Shape& shape = header_.type.shape;
  auto element = static_cast<size_t>(byte_size(header_.type.dtype));
  const int64_t places = row_of(shape).elements();
  Ints strides = shape.strides(), index(strides.size(), 0);
  std::vector<std::byte> column(static_cast<size_t>(count) * element);
  std::byte* target = out.data();
  for (int64_t place = 0, at = 0; place < places; ++place) {
    source_->read(header_.data_offset + static_cast<uint64_t>(place * shape[0] + begin) * element, column);
    for (int64_t row = 0; row < count; ++row)
      std::memcpy(target + static_cast<size_t>(row * strides[0] + at) * element, column.data() + static_cast<size_t>(row) * element,
                  element);
    for (size_t axis = 1; axis < index.size(); ++axis) {
      at += strides[axis];
      if (++index[axis] < shape[static_cast<int64_t>(axis)]) break;
      at -= index[axis] * strides[axis];
      index[axis] = 0;
    }
  }
}

NpyWriter::NpyWriter(std::string path, ArraySpec array) : array_(std::move(array)), file_(std::move(path)) { file_.write(header()); }

std::string NpyWriter::header() const { return npy_header({array_.dtype, with_rows(count_, array_.row)}); }

void NpyWriter::write(const Tensor& rows) {
  check_rows("npy", rows, array_);
  file_.write(rows.bytes());
  count_ += rows.shape()[0];
}

void NpyWriter::commit() {
  std::string final_header = header();
  file_.write_at(0, std::as_bytes(std::span(final_header)));
  file_.commit(false);
}

Tensor read_npy(const std::string& path) { return NpyReader(path).all(); }

void write_npy(const std::string& path, const Tensor& tensor) {
  OutputFile file(path);
  file.write(npy_header(tensor.type()));
  file.write(tensor.bytes());
  file.commit(false);
}

}  // namespace tutti
