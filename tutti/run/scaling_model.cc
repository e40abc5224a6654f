// What steps would cost that were not measured, from costs fitted to those that were; and what to do about the largest loss.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tutti/run/scaling.h"

namespace tutti {

double CostModel::step(int64_t devices, double batch, int64_t small_batches, double link) const {
  const double parts = static_cast<double>(devices), own = batch / parts;
  // More threads than cores take turns.
  const double turns = std::max(1.0, parts * threads / cores);
  const double computing = (fixed * static_cast<double>(small_batches) + by_sample * own) * turns;
  const double exchange = devices == 1 ? 0 : (latency + by_byte * 2 * bytes * (parts - 1) / parts) / link;
  return computing + input_by_sample * own + host + update / (divides_update ? parts : 1) * turns + exchange;
}

// Straight lines through what was measured: the least squares of computing by samples, of exchanging by bytes.
CostModel fit_costs(const std::vector<ScalingArm>& arms, int cores, int threads) {
  CostModel out;
  out.cores = cores;
  out.threads = threads;
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, samples = 0, input = 0, ones = 0;
  for (const ScalingArm& arm : arms) {
    if (arm.devices > 1) continue;
    const double own = static_cast<double>(arm.batch), weight = 1 / (own * own);  // errors are relative
    n += weight, x += weight * own, y += weight * arm.compute, xx += weight * own * own, xy += weight * own * arm.compute;
    samples += own;
    input += arm.input;
    out.host += arm.host + arm.wait;
    out.update += arm.update;
    ++ones;
  }
  const double determinant = n * xx - x * x;
  if (ones > 1 && determinant > 1e-12 * n * xx) {
    out.by_sample = std::max(0.0, (n * xy - x * y) / determinant);
    out.fixed = std::max(0.0, (y - out.by_sample * x) / n);
  } else if (x > 0) {
    out.by_sample = y / x;
  }
  if (ones > 0) {
    out.input_by_sample = input / samples;
    out.host /= ones;
    out.update /= ones;
  }
  double exchanges = 0, spent = 0, moved = 0;
  for (const ScalingArm& arm : arms) {
    if (arm.devices == 1) continue;
    const double parts = static_cast<double>(arm.devices);
    out.bytes = arm.exchanged_bytes * parts / (parts - 1) / 2;
    spent += std::max(0.0, arm.exchange + arm.update - out.update / parts);
    moved += arm.exchanged_bytes;
    ++exchanges;
  }
  constexpr double meeting = 2e-6;  // seconds: below, nothing can be told from noise
  out.latency = meeting;
  if (moved > 0) out.by_byte = std::max(0.0, spent - exchanges * meeting) / moved;
  return out;
}

void advise(ScalingResult& result, const CostModel& model) {
  const int64_t devices = result.many.devices;
  const double batch = static_cast<double>(result.many.batch), now = batch / result.many.step;
  const double modelled = batch / model.step(devices, batch);
  // Relative to what the model says of the present, so that its errors cancel.
  const auto add = [&](std::string what, double samples_a_second) {
    result.what_if.push_back({std::move(what), now * samples_a_second / modelled, samples_a_second / modelled});
  };
  add("batch x 2", 2 * batch / model.step(devices, 2 * batch));
  add("accumulation 4", 4 * batch / model.step(devices, 4 * batch, 4));
  if (devices > 1) add("link x 10", batch / model.step(devices, batch, 1, 10));
  if (devices == 1 || result.lost <= 0) {
    result.advice = devices == 1 ? "one device: what the others are compared to" : "nothing is lost";
    return;
  }
  const double share = result.shares[static_cast<size_t>(result.main)] * 100;
  const auto gain = [&](size_t i) { return fmt::format("{:.2f}x, projected", result.what_if[i].gain); };
  const std::string head = fmt::format("{} is {:.0f} % of what is lost: ", name(result.main), share);
  switch (result.main) {
    case Loss::input: result.advice = head + "data arrive more slowly than they are used; a faster reader, or fewer devices"; break;
    case Loss::dispatch: result.advice = head + "steps are short against what one thread does between them; batch x 2: " + gain(0); break;
    case Loss::communication:
      result.advice = head + fmt::format("the exchange takes longer than it can hide; batch x 2: {}; accumulation 4: {}; link x 10: {}",
                                         gain(0), gain(1), gain(2));
      break;
    case Loss::skew:
      result.advice = head + fmt::format("replica {} takes {:.0f} % longer than the fastest, and all wait for it", result.many.slowest_rank,
                                         100 * (result.many.slowest / std::max(result.many.fastest, 1e-12) - 1));
      break;
    case Loss::small_batch: result.advice = head + "a part of the batch costs more than its share; batch x 2: " + gain(0); break;
    case Loss::oversubscription:
      result.advice = head + fmt::format("{} threads on {} cores; at most --devices {}", devices * model.threads, model.cores,
                                         std::max(1, model.cores / model.threads));
      break;
    default: result.advice = head + "replicas slow each other down (memory, caches, other programs)"; break;
  }
}

}  // namespace tutti
