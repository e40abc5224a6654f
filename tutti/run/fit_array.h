// One array of a job's data, a row a sample: in memory, or read from its file while the steps before are computed.
#pragma once

#include "tutti/data/row_source.h"

namespace tutti {

class FitArray {
 public:
  explicit FitArray(Tensor all);
  explicit FitArray(std::shared_ptr<const RowSource> source);
  DType dtype() const { return row_.dtype; }
  int64_t samples() const { return samples_; }
  Type type(int64_t samples) const;                                      // of so many rows: [samples, ...]
  FitArray part(int64_t first, int64_t count) const;                     // the same data
  FitArray with_row(const Shape& row) const;                             // the same data, rows of another shape
  bool waits() const { return source_ != nullptr && source_->waits(); }  // for files

  // The rows of these numbers, one behind another. Throws InvalidArgument when they cannot be read.
  void copy(std::span<const int64_t> rows, std::span<std::byte> to) const;

  // Rows that copy() will be asked for soon, all or some of them in this order: threads that all jobs share begin to read them. Of what was
  // expected and not asked for, the oldest is forgotten beyond `most_ahead`: memory is bounded.
  static constexpr size_t most_ahead = 4;
  void expect(std::span<const int64_t> rows);

 private:
  class Ahead;
  Type row_;  // of one sample
  int64_t samples_ = 0, first_ = 0;
  Tensor all_;
  std::shared_ptr<const RowSource> source_;
  std::shared_ptr<Ahead> ahead_;
};

}  // namespace tutti
