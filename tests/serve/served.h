// Models that are served in tests, requests to them, and an owner of the device that is kept busy.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <mutex>

#include "tutti/run/batch_predictor.h"
#include "tutti/run/load_model.h"
#include "tutti/serve/scheduler.h"

namespace tutti::serve {

inline const std::string models_folder = TUTTI_TEST_DATA "/cli_models/";

inline std::shared_ptr<ModelVersion> served(const std::string& file, int64_t batch = 16) {
  return std::make_shared<ModelVersion>(file.substr(0, file.find('.')), 1, load_model(models_folder + file), CompileOptions{.batch = batch},
                                        false, std::make_shared<StatisticsCounter>());
}

// Samples that differ by `seed`.
inline Tensor made_input(const ModelVersion& model, int64_t count, int64_t seed) {
  Ints extents = model.inputs()[0].shape;
  extents[0] = count;
  for (int64_t& extent : extents)
    if (extent < 0) extent = 5;
  Tensor out(DType::f32, extents);
  auto values = out.as<float>();
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37 + static_cast<size_t>(seed) * 101) % 199) / 199 - 0.5f;
  return out;
}

// What the model gives for it alone.
inline Tensor alone(const std::string& file, const Tensor& input) {
  return BatchPredictor(load_model(models_folder + file), {.batch = input.shape()[0]}).predict({input})[0];
}

inline bool same_bits(const Tensor& a, const Tensor& b) { return a.type() == b.type() && std::ranges::equal(a.bytes(), b.bytes()); }

// Answers in the order in which they came.
class Answers {
 public:
  std::function<void(Answer&&)> take(int64_t id) {
    return [this, id](Answer&& answer) {
      std::scoped_lock lock(mutex_);
      order_.push_back(id);
      answers_.emplace_back(std::move(answer));
      came_.notify_all();
    };
  }
  bool wait(size_t count, std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, timeout, [&] { return order_.size() >= count; });
  }
  std::vector<int64_t> order() const {
    std::scoped_lock lock(mutex_);
    return order_;
  }
  Answer of(int64_t id) const {
    std::scoped_lock lock(mutex_);
    for (size_t i = 0; i < order_.size(); ++i)
      if (order_[i] == id) return answers_[i];
    ADD_FAILURE() << "no answer " << id;
    return {};
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::vector<int64_t> order_;
  std::vector<Answer> answers_;
};

inline Request request_for(const std::shared_ptr<ModelVersion>& model, Tensor input, std::function<void(Answer&&)> done,
                           uint64_t client = 0, int priority = 0) {
  Request request;
  request.model = model;
  request.inputs = {std::move(input)};
  request.client = client;
  request.priority = priority;
  request.done = std::move(done);
  return request;
}

// Keeps the owner's thread in a request of its own until it is opened.
class Gate {
 public:
  Gate(Scheduler& scheduler, const std::shared_ptr<ModelVersion>& model) {
    Request request = request_for(model, made_input(*model, 1, 0), [this](Answer&&) { done_.set_value(); });
    request.place = [this](const std::vector<Type>& types) {
      begun_.set_value();
      opened_.get_future().wait();
      std::vector<Tensor> out;
      for (const Type& type : types) out.emplace_back(type);
      return out;
    };
    scheduler.submit(std::move(request));
    begun_.get_future().wait();
  }
  ~Gate() {
    open();
    done_.get_future().wait();
  }
  void open() {
    if (!std::exchange(is_open_, true)) opened_.set_value();
  }

 private:
  std::promise<void> begun_, opened_, done_;
  bool is_open_ = false;
};

}  // namespace tutti::serve
