#include "tutti/data/row_source.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tutti/base/error.h"

namespace tutti {

namespace {

// Neighbours among rows are one read: take(first, count), of places in the list.
template <class F>
void for_runs(std::span<const int64_t> rows, const F& take) {
  for (size_t i = 0; i < rows.size();) {
    size_t count = 1;
    while (i + count < rows.size() && rows[i + count] == rows[i] + static_cast<int64_t>(count)) ++count;
    take(i, count);
    i += count;
  }
}

class NpyRows : public RowSource {
 public:
  NpyRows(NpyReader array, DType dtype, const Shape& row)
      : RowSource({dtype, with_rows(array.type().shape[0], row)}), array_(std::move(array)) {}

  void read(std::span<const int64_t> rows, std::span<std::byte> to) const override {
    const size_t row = row_bytes();
    for_runs(rows, [&](size_t i, size_t count) {
      const auto part = to.subspan(i * row, count * row);
      if (array_.type().dtype == type_.dtype)
        array_.read(rows[i], static_cast<int64_t>(count), part);
      else
        std::ranges::copy(converted(array_.rows(rows[i], static_cast<int64_t>(count)), rows[i]).bytes(), part.begin());
    });
  }

 private:
  // Whole numbers of 64 bits that 32 do not hold would become others.
  Tensor converted(const Tensor& some, int64_t first) const {
    const auto check = [&](auto zero) {
      const auto values = some.as<decltype(zero)>();
      for (size_t i = 0; i < values.size(); ++i)
        if (!std::in_range<int32_t>(values[i]))
          fail<InvalidArgument>("fit", "sample {} of '{}' holds {}, which is more than 32 bits hold",
                                first + static_cast<int64_t>(i / (values.size() / static_cast<size_t>(some.shape()[0]))),
                                escape(array_.file()), values[i]);
    };
    if (type_.dtype == DType::i32 && some.dtype() == DType::i64) check(int64_t{});
    if (type_.dtype == DType::i32 && some.dtype() == DType::u64) check(uint64_t{});
    return some.converted(type_.dtype);
  }

  NpyReader array_;
};

// Rows as they are computed with, one behind another.
class PlainRows : public RowSource {
 public:
  PlainRows(Type type, std::shared_ptr<const ByteSource> bytes) : RowSource(std::move(type)), bytes_(std::move(bytes)) {}

  void read(std::span<const int64_t> rows, std::span<std::byte> to) const override {
    const size_t row = row_bytes();
    for_runs(rows, [&](size_t i, size_t count) { bytes_->read(static_cast<uint64_t>(rows[i]) * row, to.subspan(i * row, count * row)); });
  }

 private:
  std::shared_ptr<const ByteSource> bytes_;
};

constexpr size_t block_bytes = 1 << 20;

}  // namespace

std::span<std::byte> RowCollector::next() {
  if (blocks_.empty() || blocks_.back().size() + row_bytes_ > blocks_.back().capacity()) {
    if (!blocks_.empty()) end_block();
    blocks_.emplace_back().reserve(std::max(block_bytes, row_bytes_));
  }
  std::vector<std::byte>& block = blocks_.back();
  block.resize(block.size() + row_bytes_);
  ++rows_;
  return std::span(block).last(row_bytes_);
}

// Keeps the last block, or writes all that there are.
void RowCollector::end_block() {
  const int64_t bytes = std::ssize(blocks_.back());
  if (file_ == nullptr && memory_.hold(bytes)) {
    held_ += bytes;
    return;
  }
  if (file_ == nullptr) {
    file_ = std::make_unique<ScratchFile>(memory_.folder());
    memory_.give_back(held_);
  }
  for (const auto& block : blocks_) file_->write(block);
  blocks_.clear();
}

RowCollector::Rows RowCollector::finish() {
  if (!blocks_.empty()) end_block();
  const Type all{row_.dtype, with_rows(rows_, row_.shape)};
  if (file_ != nullptr) return {{}, std::make_shared<PlainRows>(all, file_->finish())};
  Tensor out(all);
  auto to = out.bytes().begin();
  for (auto& block : blocks_) {
    to = std::ranges::copy(block, to).out;
    block = {};
  }
  return {std::move(out), nullptr};
}

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
