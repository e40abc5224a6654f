#include "tutti/serve/programs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tutti/data/rows.h"
#include "tutti/graph/sample_axes.h"
#include "tutti/run/batch_predictor.h"
#include "tutti/run/explain.h"

namespace tutti::serve {

namespace {

constexpr size_t most_kept = 32;  // programs
// Times are compared once there are two of each. They change when others use the machine, so what is passed over is tried again now and
// then: when 300 times as much was computed since. Of seven sizes half as fast as the best that costs one percent.
constexpr int64_t first_runs = 2;
constexpr double try_again_after = 300;
constexpr double newest_weight = 0.1;  // of a time among those before, at least

int64_t share_of_memory(const std::string& device) {
  const int64_t all = open_device(device)->memory_bytes();
  return (all > 0 ? all : std::numeric_limits<int64_t>::max()) / 4;
}

// Whether an address is made of a value anywhere: then it must not change between being checked and being used.
bool finds_by_value(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    switch (node.op) {
      case Op::dynamic_slice:
      case Op::dynamic_update_slice:
      case Op::gather:
      case Op::scatter:
      case Op::select_and_scatter:
      case Op::sort: return true;
      default: return node.body != nullptr && finds_by_value(*node.body);
    }
  });
}

}  // namespace

Programs::Programs(std::shared_ptr<const keras::AnyModel> model, CompileOptions options, int64_t most_bytes)
    : model_(std::move(model)),
      options_(std::move(options)),
      open_(keras::has_open_extents(model_->inputs())),
      most_bytes_(most_bytes != 0 ? most_bytes : share_of_memory(options_.device)) {
  const Graph graph = model_->lower({2, shapes_with(*model_, 2, model_->probe_extent()), nullptr});
  batched_ = !model_->inputs().empty() && graph.updates().empty() && samples_are_independent(graph, 2);
  const auto& inputs = model_->inputs();
  may_borrow_ =
      std::all_of(inputs.begin(), inputs.end(), [](const auto& input) { return is_float(input.dtype); }) && !finds_by_value(graph);
  for (int64_t size = 1; size < options_.batch; size = size_class(size + 1)) sizes_.push_back(size);
  sizes_.push_back(options_.batch);
}

Programs::Entry* Programs::find(const Rows& rows, int64_t size) {
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->size != size || entry->rows != rows) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return &entries_.front();
  }
  return nullptr;
}

bool Programs::is_to_be_tried(const Entry& entry) const {
  return entry.runs < first_runs || computed_ - entry.measured_at > try_again_after * entry.seconds;
}

Programs::Choice Programs::choose(const Rows& rows, int64_t ready) {
  std::scoped_lock lock(mutex_);
  Choice choice;
  if (!batched_) {
    choice.samples = choice.size = ready;
    if (Entry* exact = find(rows, ready)) {
      choice.program = exact->program;
      choice.failure = exact->failure;
    } else {
      choice.wanted = ready;
    }
    return choice;
  }
  // Which would be computed if all were as fast a sample as large batches should be.
  const int64_t best_size = *std::lower_bound(sizes_.begin(), sizes_.end(), std::min(ready, largest()));
  double best = 0;
  Failure failure;
  for (int64_t size : sizes_) {
    if (size > best_size && choice.program != nullptr) break;
    Entry* entry = find(rows, size);
    if (entry == nullptr) {
      if (size == best_size) choice.wanted = size;
      continue;
    }
    if (entry->program == nullptr) {
      failure = entry->failure;
      continue;
    }
    const int64_t samples = std::min(size, ready);
    const bool to_be_tried = is_to_be_tried(*entry);
    const double each = to_be_tried ? 0 : entry->seconds / static_cast<double>(samples);
    if (choice.program == nullptr || each <= best) {
      best = each;
      choice.program = entry->program;
      choice.samples = samples;
      choice.size = size;
    }
  }
  if (choice.program == nullptr) {
    if (choice.wanted == 0) choice.failure = failure;
    choice.samples = std::min(best_size, ready);
    choice.size = best_size;
  }
  return choice;
}

void Programs::add_time(const Rows& rows, int64_t size, double seconds) {
  std::scoped_lock lock(mutex_);
  Entry* entry = find(rows, size);
  if (entry == nullptr || std::exchange(entry->cold, false)) return;
  if (is_to_be_tried(*entry)) entry->runs = std::min<int64_t>(entry->runs, 1);  // what was long ago counts no more than this
  ++entry->runs;
  entry->seconds += std::max(1 / static_cast<double>(entry->runs), newest_weight) * (seconds - entry->seconds);
  entry->measured_at = computed_ += seconds;
}

Failure Programs::compile(const Rows& rows, int64_t size) {
  std::scoped_lock one(compiling_);
  CompileOptions own = options_;
  {
    std::scoped_lock lock(mutex_);
    if (Entry* known = find(rows, size)) {
      if (known->program != nullptr) return {};
      entries_.pop_front();
    }
    own.cache = options_.cache;
  }
  own.batch = size;
  own.input_shapes.clear();
  for (const Shape& row : rows) own.input_shapes.push_back(with_rows(size, row));
  Entry made{.rows = rows, .size = size};
  try {
    made.program = std::make_shared<Predictor>(*model_, own);
    check_memory(made);
  } catch (const InvalidArgument& e) {
    made.failure = {FailureKind::bad_request, e.what()};  // of shapes that a model with open extents does not take
  } catch (const std::exception& e) {
    made.failure = {FailureKind::failed, e.what()};
  }
  Failure failure = made.failure;
  std::scoped_lock lock(mutex_);
  if (made.program != nullptr) options_.cache = made.program->cache();
  ++compilations_;
  entries_.push_front(std::move(made));
  drop_oldest();
  return failure;
}

// Planned, but not yet touched: the memory is taken by the first run.
void Programs::check_memory(Entry& made) const {
  made.bytes = made.program->stats().peak_memory_bytes;
  for (const auto* types : {&made.program->input_types(), &made.program->output_types()})
    for (const Type& type : *types) made.bytes += type.bytes();
  if (!open_ || made.bytes <= most_bytes_) return;
  made.failure = {FailureKind::bad_request, fmt::format("[serve] inputs of these shapes need {} bytes of the device's memory; at most {}",
                                                        std::exchange(made.bytes, 0), most_bytes_)};
  made.program = nullptr;
}

// With the lock.
void Programs::drop_oldest() {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.bytes;
  while (entries_.size() > 1 && (entries_.size() > most_kept || (open_ && bytes > 2 * most_bytes_))) {
    bytes -= entries_.back().bytes;
    entries_.pop_back();
  }
}

int64_t Programs::compilations() const {
  std::scoped_lock lock(mutex_);
  return compilations_;
}

}  // namespace tutti::serve
