#include "tutti/run/best_batch.h"

#include <algorithm>
#include <cmath>

#include "tutti/base/stopwatch.h"
#include "tutti/data/rows.h"

namespace tutti {

std::vector<Tensor> made_of(const std::vector<Type>& rows, int64_t count) {
  std::vector<Tensor> out;
  for (const Type& row : rows) {
    auto bytes = out.emplace_back(row.dtype, with_rows(count, row.shape)).bytes();
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  }
  return out;
}

namespace {

constexpr int64_t as_keras = 32, fewest = 4;

// On the processor, what a network makes of its samples is many times their size, and fresh pages for it cost more than a larger batch
// gains: of images, some megabytes are enough.
int64_t usual_batch(BatchPredictor& predictor, const std::vector<Type>& rows, int64_t sample_bytes) {
  constexpr int64_t enough_bytes = 10 << 20;
  if (as_keras * sample_bytes <= enough_bytes || open_device(predictor.device())->is_asynchronous()) return as_keras;
  if (!predictor.samples_are_independent(rows)) return as_keras;  // Keras's batches are what it means
  int64_t batch = as_keras;
  while (batch > fewest && batch * sample_bytes > enough_bytes) batch /= 2;
  return batch;
}

}  // namespace

int64_t best_batch(BatchPredictor& predictor, const std::vector<Type>& rows, std::optional<int64_t> samples) {
  constexpr int64_t most_bytes = 64 << 20;
  // Of a batch larger than Keras's: what a core's cache has room for, so that memory hardly depends on what is measured.
  constexpr int64_t larger_bytes = 96 << 10;
  constexpr double long_enough = 400e-6;  // so many seconds gain nothing from being more
  int64_t sample_bytes = 1;
  for (const Type& row : rows) sample_bytes += row.bytes();
  const int64_t most = std::clamp<int64_t>(most_bytes / sample_bytes, 1, predictor.batch());
  if (most <= fewest) return most;
  if (const int64_t usual = usual_batch(predictor, rows, sample_bytes); usual < as_keras) return std::min(most, usual);
  if (most <= as_keras || samples.value_or(INT64_MAX) < 16 * as_keras) return std::min(most, as_keras);
  if (!predictor.samples_are_independent(rows)) return as_keras;
  constexpr int64_t several = 4;         // batches that are measured together, as they will be computed
  constexpr int64_t small = 50'000'000;  // floating-point operations of a batch, less than long_enough
  if (predictor.flops_a_sample(rows) > small / as_keras) return as_keras;
  PreparedPrediction first = predictor.prepare(made_of(rows, several * as_keras), as_keras);

  int64_t best = as_keras;
  double least = INFINITY;  // seconds a sample
  // A quarter of the samples at most: several batches are on their way at once.
  const int64_t largest = std::min({most, std::max(as_keras, larger_bytes / sample_bytes), samples.value_or(INT64_MAX) / 4});
  for (int64_t size = as_keras; size <= largest; size *= 4) {
    const Stopwatch compiling;
    PreparedPrediction batch = size == as_keras ? std::move(first) : predictor.prepare(made_of(rows, several * size), size);
    batch.run();
    const double compiled = compiling.seconds();
    double seconds = INFINITY;
    const Stopwatch measuring;
    for (int i = 0; i < 5 || measuring.seconds() < 2e-3; ++i) {  // the shortest of many: others may be at work too
      const Stopwatch watch;
      batch.run();
      seconds = std::min(seconds, watch.seconds());
    }
    const double each = seconds / static_cast<double>(several * size);
    least = std::min(least, each);
    if (each <= 1.05 * least) best = size;  // of equals the larger: less is handed on
    // The next size has to be worth its compilation.
    if (seconds > long_enough || (samples && 20 * compiled > least * static_cast<double>(*samples))) break;
  }
  return best;
}

}  // namespace tutti
