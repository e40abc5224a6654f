// One step of training computed by several replicas: where their gradients meet, and how the update is divided between replicas that
// share memory.
#pragma once

#include <span>

#include "tutti/graph/graph.h"

namespace tutti {

// What an exchange carries at least: below, starting one costs more than what it carries.
inline constexpr int64_t bucket_bytes = 4 << 20;

// The same for a link: to start an exchange takes a tenth of its time at most. A power of two, which small differences do not change.
inline constexpr int64_t least_bucket_bytes = 128 << 10, most_bucket_bytes = 32 << 20;
int64_t bucket_for(double latency_seconds, double bytes_per_second);

// Which values go into which exchange, by index. Gradients are computed from the last layer to the first, so the last values come first;
// values of different dtypes never share a bucket.
std::vector<std::vector<size_t>> buckets_of(std::span<const Type> types, int64_t bytes = bucket_bytes);

// The values summed over the replicas, an all_reduce a bucket.
std::vector<Value> reduce_in_buckets(const std::vector<Value>& values, int64_t replicas, int64_t bytes = bucket_bytes);

// The update of all replicas' inputs: each input is summed over the replicas before it is used.
Graph reduce_inputs(const Graph& update, int64_t replicas, int64_t bytes = bucket_bytes);

// A range of a value's elements in row-major order.
struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};
// Part `part` of `parts` of so many elements: whole cache lines, all parts about equal.
ElementRange range_of_part(int64_t elements, int64_t part, int64_t parts);

// The update of one of `parts` replicas that see each other's memory. Each input of `update` becomes `parts` inputs, the replicas' own, one
// after another, which are summed in that order. States that are changed element by element are each replica's for its range only: they,
// and the inputs that go into them, are flat, with as many elements as the range has. All other states are whole, and every replica has one
// of its own.
struct SharedUpdate {
  Graph graph;
  std::vector<bool> divided_inputs;         // by input of `update`
  std::vector<std::string> divided_states;  // by name
};
SharedUpdate share_update(const Graph& update, int64_t part, int64_t parts);

}  // namespace tutti
