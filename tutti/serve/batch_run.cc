#include "tutti/serve/batch_run.h"

#include <algorithm>
#include <cstring>

#include "tutti/base/error.h"
#include "tutti/base/memory.h"

namespace tutti::serve {

namespace {

int64_t nanoseconds(Clock::duration duration) { return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count(); }

// Rows `from` to `to` of a request.
struct Part {
  PendingRequest* pending;
  int64_t from, to;
};

void end(Part& part, Answer&& answer) {
  part.pending->ended = true;
  auto done = std::move(part.pending->request.done);
  done(std::move(answer));
}

void end_failed(Part& part, const Failure& failure) {
  part.pending->request.model->statistics().add_failure(failure.kind, nanoseconds(Clock::now() - part.pending->submitted));
  end(part, {failure, {}});
}

// Rows `begin` to `end` of a tensor of [count, row...], as bytes.
template <class Bytes>
Bytes rows_of(Bytes bytes, int64_t count, int64_t begin, int64_t end) {
  const size_t row = count == 0 ? 0 : bytes.size() / static_cast<size_t>(count);
  return bytes.subspan(static_cast<size_t>(begin) * row, static_cast<size_t>(end - begin) * row);
}

void copy(std::span<const std::byte> from, std::span<std::byte> to, DType dtype) {
  // A client's truth may be any byte, a program's is 0 or 1.
  if (dtype == DType::boolean)
    std::transform(from.begin(), from.end(), to.begin(), [](std::byte value) { return std::byte{value != std::byte{0}}; });
  else if (!to.empty())
    std::memcpy(to.data(), from.data(), to.size());
}

class BatchRun {
 public:
  explicit BatchRun(ModelVersion& model, std::vector<Part*> parts) : model_(model), parts_(std::move(parts)) {
    for (const Part* part : parts_) samples_ += part->to - part->from;
  }

  // Throws what a program throws, or gives why there is none; then nobody has been answered.
  Failure operator()() {
    const Rows& rows = parts_[0]->pending->rows;
    const auto begun = Clock::now();
    for (int64_t done = 0; done < samples_;) {
      const auto watch = Clock::now();
      const Programs::Choice choice = model_.programs().choose(rows, samples_ - done);
      if (choice.failure) return choice.failure;
      if (choice.program == nullptr) return {FailureKind::failed, "[serve] too many shapes at once: the program was given up"};
      times_.samples = choice.samples;
      if (parts_.size() == 1 && choice.size == samples_ && is_in_place(*choice.program))
        run_in_place(*choice.program);
      else
        run_gathered(*choice.program, done, choice);
      model_.programs().add_time(rows, choice.size, static_cast<double>(nanoseconds(Clock::now() - watch)) * 1e-9);
      model_.statistics().add_batch(times_);
      done += choice.samples;
    }
    answer(begun);
    return {};
  }

 private:
  // Where outputs go, once the program says what they are.
  void place_outputs(Part& part, const Predictor& program, int64_t size) {
    if (!part.pending->outputs.empty()) return;  // of the part before
    std::vector<Type> types = program.output_types();
    if (size != part.pending->samples)
      for (Type& type : types) {
        Ints extents = type.shape.extents();
        extents[0] = part.pending->samples;
        type.shape = extents;
      }
    if (part.pending->request.place) {
      part.pending->outputs = part.pending->request.place(types);
    } else {
      for (const Type& type : types) part.pending->outputs.emplace_back(type);
    }
  }

  bool is_in_place(Predictor& program) {
    const PendingRequest& pending = *parts_[0]->pending;
    const Request& request = pending.request;
    if (pending.samples != samples_) return false;
    const auto is_usable = [](const Tensor& tensor) { return is_aligned(tensor.bytes()) && tensor.dtype() != DType::boolean; };
    return program.computes_in_host_memory() && std::all_of(request.inputs.begin(), request.inputs.end(), is_usable) &&
           (!request.inputs_change || model_.programs().may_borrow());
  }

  void run_in_place(Predictor& program) {
    Part& part = *parts_[0];
    place_outputs(part, program, samples_);
    const bool aligned = std::all_of(part.pending->outputs.begin(), part.pending->outputs.end(),
                                     [](const Tensor& tensor) { return is_aligned(tensor.bytes()); });
    std::vector<std::span<const std::byte>> inputs;
    std::vector<std::span<std::byte>> outputs;
    for (const Tensor& tensor : part.pending->request.inputs) inputs.push_back(tensor.bytes());
    for (Tensor& tensor : part.pending->outputs) outputs.push_back(tensor.bytes());
    const auto begin = Clock::now();
    if (aligned)
      program.run_in_place(inputs, outputs);
    else
      program.run(inputs, outputs);
    times_.input_ns = times_.output_ns = 0;
    times_.compute_ns = nanoseconds(Clock::now() - begin);
  }

  // Calls f(part, from, to, at) for the parts that have rows from `begin` to `end` of the batch: its own rows `from` to `to`, which stand
  // `at` rows after `begin`.
  template <class F>
  void each_part(int64_t begin, int64_t end, F&& f) {
    int64_t offset = 0;
    for (Part* part : parts_) {
      const int64_t count = part->to - part->from;
      const int64_t from = std::max(begin, offset), to = std::min(end, offset + count);
      if (from < to) f(*part, part->from + from - offset, part->from + to - offset, from - begin);
      offset += count;
    }
  }

  void run_gathered(Predictor& program, int64_t first, const Programs::Choice& choice) {
    const auto begin = Clock::now();
    const int64_t last = first + choice.samples;
    // A program's own memory where that is the host's.
    const bool host = program.computes_in_host_memory();
    std::vector<Tensor> staged_inputs, staged_outputs;
    std::vector<std::span<std::byte>> inputs;
    std::vector<std::span<const std::byte>> outputs;
    for (size_t i = 0; i < program.input_types().size(); ++i)
      inputs.push_back(host ? program.input(i) : staged_inputs.emplace_back(program.input_types()[i]).bytes());
    each_part(first, last, [&](Part& part, int64_t from, int64_t to, int64_t at) {
      place_outputs(part, program, model_.is_batched() ? -1 : choice.size);
      for (size_t i = 0; i < inputs.size(); ++i) {
        const Tensor& given = part.pending->request.inputs[i];
        copy(rows_of(given.bytes(), part.pending->samples, from, to), rows_of(inputs[i], choice.size, at, at + to - from), given.dtype());
      }
    });
    for (auto input : inputs) std::ranges::fill(rows_of(input, choice.size, choice.samples, choice.size), std::byte{0});
    const auto computing = Clock::now();
    if (host) {
      program.run();
      for (size_t i = 0; i < program.output_types().size(); ++i) outputs.push_back(program.output(i));
    } else {
      std::vector<std::span<std::byte>> to;
      for (const Type& type : program.output_types()) to.push_back(staged_outputs.emplace_back(type).bytes());
      const std::vector<std::span<const std::byte>> from(inputs.begin(), inputs.end());
      program.run(from, to);
      outputs.assign(to.begin(), to.end());
    }
    const auto handing_out = Clock::now();
    each_part(first, last, [&](Part& part, int64_t from, int64_t to, int64_t at) {
      for (size_t i = 0; i < outputs.size(); ++i) {
        auto place = part.pending->outputs[i].bytes();
        if (model_.is_batched())
          copy(rows_of(outputs[i], choice.size, at, at + to - from), rows_of(place, part.pending->samples, from, to), DType::u8);
        else
          copy(outputs[i], place, DType::u8);
      }
    });
    times_.input_ns = nanoseconds(computing - begin);
    times_.compute_ns = nanoseconds(handing_out - computing);
    times_.output_ns = nanoseconds(Clock::now() - handing_out);
  }

  void answer(Clock::time_point begun) {
    const auto now = Clock::now();
    for (Part* part : parts_) {
      PendingRequest& pending = *part->pending;
      if (!pending.begun) pending.begun = begun;
      pending.computed = part->to;
      if (pending.remaining() > 0) continue;
      const int64_t queue_ns = nanoseconds(*pending.begun - pending.submitted);
      model_.statistics().add_answer(times_, queue_ns, nanoseconds(now - part->pending->submitted));
      end(*part, {{}, std::move(part->pending->outputs), queue_ns, nanoseconds(now - begun)});
    }
  }

  ModelVersion& model_;
  const std::vector<Part*> parts_;
  int64_t samples_ = 0;
  StatisticsCounter::BatchTimes times_;
};

Failure failure_of(const std::exception& e) {
  if (const auto* refused = dynamic_cast<const RequestError*>(&e)) return refused->failure();
  if (dynamic_cast<const std::bad_alloc*>(&e) != nullptr) return {FailureKind::failed, "[memory] not enough memory for this request"};
  return {FailureKind::failed, e.what()};
}

}  // namespace

Pending run(const Batch& batch) {
  std::vector<Part> parts;
  int64_t left = batch.samples;
  for (const Pending& request : batch.requests) {
    const int64_t count = std::min(left, request->remaining());
    parts.push_back({request.get(), request->computed, request->computed + count});
    left -= count;
  }
  const auto attempt = [&](const std::vector<Part*>& some) {
    try {
      return BatchRun(*batch.model, some)();
    } catch (const std::exception& e) {
      return failure_of(e);
    }
  };
  std::vector<Part*> all;
  for (Part& part : parts) all.push_back(&part);
  const Failure failure = attempt(all);
  if (failure && all.size() == 1) {
    end_failed(parts[0], failure);
    return nullptr;
  }
  // Whose fault it was is seen when each is computed alone.
  for (Part* part : all)
    if (failure)
      if (const Failure own = attempt({part})) end_failed(*part, own);
  const Pending& first = batch.requests.front();
  return !first->ended && first->remaining() > 0 ? first : nullptr;
}

}  // namespace tutti::serve
