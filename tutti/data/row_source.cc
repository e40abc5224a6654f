#include "tutti/data/row_source.h"

#include <algorithm>
#include <numeric>

namespace tutti {

namespace {

class NpyRows : public RowSource {
 public:
  NpyRows(NpyReader array, DType dtype, const Shape& row)
      : RowSource({dtype, with_rows(array.type().shape[0], row)}), array_(std::move(array)) {}

  void read(std::span<const int64_t> rows, std::span<std::byte> to) const override {
    const size_t row = row_bytes();
    for (size_t i = 0; i < rows.size();) {
      // Neighbours in the file are one read.
      size_t count = 1;
      while (i + count < rows.size() && rows[i + count] == rows[i] + static_cast<int64_t>(count)) ++count;
      const auto part = to.subspan(i * row, count * row);
      if (array_.type().dtype == type_.dtype)
        array_.read(rows[i], static_cast<int64_t>(count), part);
      else
        std::ranges::copy(array_.rows(rows[i], static_cast<int64_t>(count)).converted(type_.dtype).bytes(), part.begin());
      i += count;
    }
  }

 private:
  NpyReader array_;
};

}  // namespace

std::shared_ptr<const RowSource> npy_rows(NpyReader array, DType dtype, const Shape& row) {
  return std::make_shared<NpyRows>(std::move(array), dtype, row);
}

Tensor all_rows(const RowSource& source) {
  Tensor out(source.type());
  const int64_t count = source.type().shape[0];
  if (count == 0) return out;
  constexpr int64_t some = 1 << 14;
  const size_t row = out.bytes().size() / static_cast<size_t>(count);
  std::vector<int64_t> rows;
  for (int64_t first = 0; first < count; first += some) {
    rows.resize(static_cast<size_t>(std::min(some, count - first)));
    std::iota(rows.begin(), rows.end(), first);
    source.read(rows, out.bytes().subspan(static_cast<size_t>(first) * row, rows.size() * row));
  }
  return out;
}

}  // namespace tutti
