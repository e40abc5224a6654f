#include "tutti/keras/layers/histogram_equalization.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/error.h"
#include "tutti/graph/compose.h"

namespace tutti::keras {

namespace {

constexpr int64_t levels = 256;

// tiles: i32 [tiles, pixels] of bins -> f32 [tiles, bins]
Value histograms(Value tiles, int64_t bins) {
  Graph& graph = tiles.graph();
  int64_t count = tiles.extent(0);
  Value place = flatten(tiles + iota(graph, tiles.type(), 0) * static_cast<double>(bins));
  Value counts = full(graph, {DType::f32, {Shape({count, bins}).elements()}}, 0);
  ScatterDims dims;
  dims.inserted_window_dims = dims.scatter_dims_to_operand_dims = {0};
  dims.index_vector_dim = 1;
  counts = scatter(counts, place, full(graph, {DType::f32, place.shape()}, 1), dims, "add");
  return reshape(counts, {count, bins});
}

// f32 [tiles, levels]: what becomes of each level, from 0 to 255.
Value curves(Value counts, double pixels, double clip_limit) {
  if (clip_limit > 0) {
    Value clipped = clamp(counts, 0, clip_limit * pixels / static_cast<double>(levels));
    counts = clipped + sum(counts - clipped, {1}, true) / static_cast<double>(levels);
  }
  Value running = cumulative(counts, "add", 1);
  Value least = reduce_min(running, {1}, true);
  Value span = pixels - least;
  span = select(compare(span, 0, Direction::EQ), full_like(span, 1), span);
  return clamp((running - least) * 255 / span, 0, 255);
}

// Along one axis: for each pixel the two tiles (of `tiles` with one more at each end) whose centres it lies between, and the second's
// share.
struct Neighbours {
  std::vector<int32_t> first, second;
  std::vector<float> share;
};

Neighbours neighbours(int64_t tiles, int64_t size) {
  Neighbours out;
  for (int64_t i = 0; i < tiles * size; ++i) {
    float at = (static_cast<float>(i) - static_cast<float>(size) / 2) / static_cast<float>(size) + 1;
    float floor = std::floor(at);
    auto clip = [&](float tile) { return static_cast<int32_t>(std::clamp(tile, 0.0f, static_cast<float>(tiles + 1))); };
    out.first.push_back(clip(floor));
    out.second.push_back(clip(floor + 1));
    out.share.push_back(at - floor);
  }
  return out;
}

Value ends_repeated(Value x, int64_t axis) {
  return concatenate({slice_axis(x, axis, 0, 1), x, slice_axis(x, axis, x.extent(axis) - 1, x.extent(axis))}, axis);
}

}  // namespace

Value equalize_tiles(Value images, const Ints& grid, double clip_limit) {
  int64_t n = images.extent(0), height = images.extent(1), width = images.extent(2), channels = images.extent(3);
  constexpr int64_t most_tiles = 4096;
  if (grid.size() != 2 || std::min(grid[0], grid[1]) < 1 || std::max(grid[0], grid[1]) > most_tiles)
    fail<InvalidArgument>("keras", "'tile_grid_size' is two numbers between 1 and {}; got {}", most_tiles, to_string(grid));
  int64_t rows = grid[0], columns = grid[1], tile_h = (height + rows - 1) / rows, tile_w = (width + columns - 1) / columns;
  Shape table_shape({n, rows + 2, columns + 2, channels, levels});
  if (table_shape.elements() >= int64_t{1} << 31) fail<InvalidArgument>("keras", "tiles {} are too many", to_string(table_shape));
  Value x = pad(images, PadMode::symmetric, {0, 0, 0, 0}, {0, tile_h * rows - height, tile_w * columns - width, 0});

  Value tiles = transpose(reshape(x, {n, rows, tile_h, columns, tile_w, channels}), {0, 1, 3, 5, 2, 4});
  tiles = reshape(tiles, {n * rows * columns * channels, tile_h * tile_w});
  tiles = convert(clamp(convert(tiles, DType::i32), 0, levels - 1), DType::i32);
  Value table = curves(histograms(tiles, levels), static_cast<double>(tile_h * tile_w), clip_limit);
  table = flatten(ends_repeated(ends_repeated(reshape(table, {n, rows, columns, channels, levels}), 1), 2));

  // Positions in the table [n, rows + 2, columns + 2, channels, levels].
  Graph& graph = images.graph();
  Value level = convert(clamp(x, 0, levels - 1), DType::i32);
  Value base = level + iota(graph, level.type(), 0) * static_cast<double>((rows + 2) * (columns + 2) * channels * levels) +
               iota(graph, level.type(), 3) * static_cast<double>(levels);
  Neighbours y = neighbours(rows, tile_h), z = neighbours(columns, tile_w);
  int64_t tall = tile_h * rows, wide = tile_w * columns;
  auto row = [&](const std::vector<int32_t>& tile) {
    return constant<int32_t>(graph, {tall, 1, 1}, tile) * static_cast<double>((columns + 2) * channels * levels);
  };
  auto column = [&](const std::vector<int32_t>& tile) {
    return constant<int32_t>(graph, {wide, 1}, tile) * static_cast<double>(channels * levels);
  };
  Value down = constant<float>(graph, {tall, 1, 1}, y.share), right = constant<float>(graph, {wide, 1}, z.share);
  auto across = [&](const std::vector<int32_t>& tile) {
    return take(table, base + row(tile) + column(z.first), 0) * (1 - right) + take(table, base + row(tile) + column(z.second), 0) * right;
  };
  Value mixed = across(y.first) * (1 - down) + across(y.second) * down;
  return slice_axis(slice_axis(mixed, 1, 0, height), 2, 0, width);
}

Value equalize_channels(Value images, int64_t bins) {
  const int64_t channels = images.extent(3), pixels = images.shape().elements() / std::max<int64_t>(channels, 1);
  if (Shape({channels, bins}).elements() >= int64_t{1} << 31) fail<InvalidArgument>("keras", "{} bins are too many", bins);
  const Value x = reshape(transpose(images, {3, 0, 1, 2}), {channels, pixels});
  const double last = static_cast<double>(bins - 1);
  const auto bin = [&](Value place) { return convert(clamp(place, 0, last), DType::i32); };
  const Value counts = histograms(bin(x * last / 255.0), bins), running = cumulative(counts, "add", 1);
  const Value least =
      reduce_min(select(compare(running, 0, Direction::GT), running, full_like(running, static_cast<double>(pixels))), {1}, true);
  const Value span = maximum(static_cast<double>(pixels) - least, 1);
  const Value curve = clamp(unary(Op::round_nearest_even, (running - least) * 255.0 / span), 0, 255);
  const Value level = bin(x / 255.0 * last), place = level + iota(x.graph(), level.type(), 0) * static_cast<double>(bins);
  const Value filled = sum(convert(compare(counts, 0, Direction::GT), DType::f32), {1}, true);
  const Value y = select(broadcast_to(compare(filled, 1, Direction::LE), x.shape()), x, take(flatten(curve), place, 0));
  return transpose(reshape(y, {channels, images.extent(0), images.extent(1), images.extent(2)}), {1, 2, 3, 0});
}

}  // namespace tutti::keras
