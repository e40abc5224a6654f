// tf.space_to_batch and its inverse, of which tf.nn.atrous_conv2d is made in files.
#include <algorithm>
#include <functional>
#include <numeric>

#include "tutti/graph/compose.h"
#include "tutti/keras/layers/tensorflow/arguments.h"

namespace tutti::keras::tf {

namespace {

// [[low, high], ...] of each block axis.
std::pair<Ints, Ints> pairs_of(Call& c, const char* name, size_t count) {
  const Argument& given = argument(c, name);
  Ints low, high;
  for (const Argument& item : given.items) {
    const Ints pair = integers(c, item);
    if (pair.size() != 2 || pair[0] < 0 || pair[1] < 0 || std::max(pair[0], pair[1]) > 1 << 16)
      c.config.invalid("'{}' has {}, expected two sizes", name, to_string(pair));
    low.push_back(pair[0]);
    high.push_back(pair[1]);
  }
  if (low.size() != count) c.config.invalid("'{}' has {} pairs for {} block axes", name, low.size(), count);
  return {low, high};
}
Ints blocks_of(Call& c, Value x) {
  const Ints blocks = integers(c, argument(c, "block_shape"));
  if (blocks.empty() || static_cast<int64_t>(blocks.size()) >= x.rank() ||
      std::any_of(blocks.begin(), blocks.end(), [](int64_t block) { return block < 1 || block > 64; }))
    c.config.invalid("blocks of {} do not fit {}", to_string(blocks), to_string(x.shape()));
  return blocks;
}

// input, block_shape, paddings: what lies at one place of the blocks becomes a sample; places outermost
Outputs space_to_batch(Call& c) {
  Value x = tensor(c);
  const Ints blocks = blocks_of(c, x);
  auto [low, high] = pairs_of(c, "paddings", blocks.size());
  const auto rank = static_cast<size_t>(x.rank());
  low.insert(low.begin(), 0);
  high.insert(high.begin(), 0);
  low.resize(rank, 0);
  high.resize(rank, 0);
  x = pad(x, PadMode::constant, low, high);
  Ints cut{x.extent(0)}, order, to{x.extent(0)};
  for (size_t i = 0; i < blocks.size(); ++i) {
    const int64_t extent = x.extent(static_cast<int64_t>(i) + 1);
    if (extent % blocks[i] != 0)
      c.config.invalid("{} with its padding is not made of blocks of {}", to_string(x.shape()), to_string(blocks));
    cut.insert(cut.end(), {extent / blocks[i], blocks[i]});
    order.push_back(static_cast<int64_t>(2 * i) + 2);
    to[0] *= blocks[i];
    to.push_back(extent / blocks[i]);
  }
  order.push_back(0);
  for (size_t i = 0; i < blocks.size(); ++i) order.push_back(static_cast<int64_t>(2 * i) + 1);
  for (auto axis = static_cast<int64_t>(blocks.size()) + 1; axis < x.rank(); ++axis) {
    order.push_back(static_cast<int64_t>(cut.size()));
    cut.push_back(x.extent(axis));
    to.push_back(x.extent(axis));
  }
  return reshape(transpose(reshape(x, cut), order), to);
}

// input, block_shape, crops: the way back
Outputs batch_to_space(Call& c) {
  Value x = tensor(c);
  const Ints blocks = blocks_of(c, x);
  const auto [low, high] = pairs_of(c, "crops", blocks.size());
  const int64_t places = std::accumulate(blocks.begin(), blocks.end(), int64_t{1}, std::multiplies<>());
  if (x.extent(0) % places != 0) c.config.invalid("{} samples are not made of blocks of {}", x.extent(0), to_string(blocks));
  const auto count = static_cast<int64_t>(blocks.size());
  Ints cut = blocks, order{count}, to{x.extent(0) / places};
  cut.push_back(to[0]);
  for (int64_t axis = 1; axis < x.rank(); ++axis) {
    const bool block = axis <= count;
    cut.push_back(x.extent(axis));
    order.push_back(count + axis);
    if (block) order.push_back(axis - 1);
    to.push_back(x.extent(axis) * (block ? blocks[static_cast<size_t>(axis) - 1] : 1));
  }
  Value out = reshape(transpose(reshape(x, cut), order), to);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t extent = out.extent(i + 1), from = low[static_cast<size_t>(i)], end = extent - high[static_cast<size_t>(i)];
    if (from > end) c.config.invalid("'crops' leave nothing of {}", to_string(out.shape()));
    out = slice_axis(out, i + 1, from, end);
  }
  return out;
}

}  // namespace

std::span<const Function> block_functions() {
  static const Function functions[] = {
      {"batch_to_space", batch_to_space},
      {"batch_to_space_nd", batch_to_space},
      {"space_to_batch", space_to_batch},
      {"space_to_batch_nd", space_to_batch},
  };
  return functions;
}

}  // namespace tutti::keras::tf
