// An iteration space cut into blocks that stay in L1: a block is a run of consecutive elements in row-major order, made of some steps along
// one axis and everything inside of it. Streams are the values read or written there; a stride of 0 repeats.
#pragma once

#include <span>

#include "tutti/base/shape.h"

namespace tutti::cpu {

class BlockSpace {
 public:
  // Strides of each stream in elements, one an axis. At most `block` elements a block, unless one row of the innermost axis is longer.
  BlockSpace(const Shape& shape, std::vector<Ints> streams, int64_t block);

  int64_t blocks() const { return blocks_; }
  int64_t longest() const { return inner_ * chunk_; }    // elements of a block
  int64_t last() const { return inner_ * last_chunk_; }  // elements of the last block along the cut axis

  enum class Access { dense, one, other };  // of a stream inside of a block: consecutive, a single element, or a pattern
  Access access(size_t stream) const;
  // Whether the pattern does not advance along the cut axis.
  bool repeats(size_t stream) const { return strides(stream)[cut_] == 0; }

  // Elements that a stream moves by from one block to the next, one an outer axis; the last is the cut axis, in chunks.
  Ints steps(size_t stream) const;
  Ints counts() const;  // blocks along each outer axis

  // The block of a stream written out as consecutive elements. `whole`: the longest block, else the last one. What is written may be
  // followed by up to `slack` bytes of anything.
  static constexpr int64_t slack = 64;
  void expand(size_t stream, int64_t element_bytes, bool whole, const std::byte* from, std::byte* to) const;

 private:
  const Ints& strides(size_t stream) const { return streams_[stream]; }
  Ints extents_;               // neighbours that every stream walks as one are joined; at least one
  std::vector<Ints> streams_;  // strides, one an axis of extents_
  size_t cut_ = 0;
  int64_t chunk_ = 1, last_chunk_ = 1, inner_ = 1, blocks_ = 1;
};

}  // namespace tutti::cpu
