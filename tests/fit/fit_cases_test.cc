// Every training case of cases.py step by step: the losses of Keras, and its weights in the end.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/fit/fit_case.h"
#include "tutti/device/device.h"
#include "tutti/transform/stack.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

const fs::path root = fs::path(TUTTI_TEST_DATA) / "fit_cases";

Tensor rows(const Tensor& all, int64_t first, int64_t count) {
  Ints extents = all.shape().extents();
  const auto row_bytes = static_cast<size_t>(all.type().bytes() / extents[0]);
  extents[0] = count;
  Tensor out(all.dtype(), extents);
  std::copy_n(all.bytes().begin() + static_cast<std::ptrdiff_t>(row_bytes * static_cast<size_t>(first)), out.bytes().size(),
              out.bytes().begin());
  return out;
}

Tensor backwards(const Tensor& x) {
  std::vector<Tensor> parts;
  for (int64_t i = x.shape()[0]; i-- > 0;) parts.push_back(x.part(i));
  return Tensor::stacked(parts);
}

// How cases run: on a device, or on the cpu as the second of two models in one program, of which the first one sees other data.
constexpr const char* stacked_device = "stacked";
std::string device_of(const std::string& way) { return way == stacked_device ? "cpu" : way; }

// Programs of a case by batch size, and the states they share.
class Trained {
 public:
  Trained(FitCase& one, const std::string& way) : case_(one), stacked_(way == stacked_device), device_(open_device(device_of(way))) {}

  double step(const std::vector<Tensor>& x, const std::vector<Tensor>& y, const std::vector<Tensor>& w) {
    const int64_t batch = x[0].shape()[0];
    auto& program = programs_[batch];
    if (program == nullptr) {
      Graph graph = case_.step_graph(batch);
      const auto twice = [](const Node& state) { return Tensor::stacked(std::vector{state.literal, state.literal}); };
      if (stacked_) graph = stack_models(graph, 2, twice);
      verify(graph);
      CompileSettings settings;
      settings.threads = 1;
      settings.states = &states_;
      program = device_->compile(graph, settings);
    }
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < x.size(); ++i) inputs.push_back(x[i].converted(case_.model.inputs()[i].dtype));
    inputs.push_back(Tensor::scalar<uint64_t>(1));
    inputs.push_back(Tensor::scalar<uint64_t>(steps_++));
    for (size_t i = 0; i < y.size(); ++i) {
      inputs.push_back(y[i]);
      if (!w.empty()) inputs.push_back(w[i]);
    }
    if (stacked_)
      for (Tensor& input : inputs) input = Tensor::stacked(std::vector{input.shape().rank() == 0 ? input : backwards(input), input});
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<Buffer*> from, to;
    for (const Tensor& input : inputs) {
      from.push_back(buffers.emplace_back(device_->allocate(input.type())).get());
      device_->to_device(input.bytes(), *from.back());
    }
    for (const Type& type : program->output_types()) to.push_back(buffers.emplace_back(device_->allocate(type)).get());
    program->run(from, to);
    std::vector<float> loss(stacked_ ? 2 : 1);
    device_->to_host(*to[0], std::as_writable_bytes(std::span(loss)));
    return static_cast<double>(loss.back());
  }

  // Of the variables, which lie in the order of those of the end, and of the optimizer's, so that Keras goes on with what is written.
  std::string difference(const fs::path& end, double tolerance) {
    const keras::Model expected = keras::load(end);
    const auto ours = case_.model.variables().flatten(), theirs = expected.variables().flatten();
    for (size_t i = 0; i < ours.size(); ++i) {
      const auto now = state(ours[i]->path);
      const std::string said = apart(ours[i]->path, now ? *now : ours[i]->value, theirs[i]->value, tolerance, 0);
      if (!said.empty()) return said;
    }
    const auto of_optimizer = expected.optimizer_variables();
    for (size_t i = 0; i < of_optimizer.size(); ++i) {
      const auto now = state(optimizer_state(i));
      if (!now && i + 1 < of_optimizer.size()) continue;  // a counter that nobody reads
      if (!now) return fmt::format("there is no {}", optimizer_state(i));
      constexpr double nearly_nothing = 1e-6;  // moments of weights that have hardly any gradient
      const std::string said = apart(optimizer_state(i), *now, of_optimizer[i], 10 * tolerance, nearly_nothing);
      if (!said.empty()) return said;
    }
    return state(optimizer_state(of_optimizer.size())) ? "the optimizer has more variables than Keras's" : "";
  }

 private:
  std::optional<Tensor> state(const std::string& name) {
    const auto found = states_.find(name);
    if (found == states_.end()) return {};
    Tensor out(found->second->type());
    device_->to_host(*found->second, out.bytes());
    return stacked_ ? out.part(1) : out;
  }

  static std::string apart(const std::string& name, const Tensor& ours, const Tensor& theirs, double tolerance, double absolute) {
    if (!(ours.shape() == theirs.shape()))
      return fmt::format("{} is {}, expected {}", name, to_string(ours.type()), to_string(theirs.type()));
    if (!is_float(ours.dtype())) return "";
    const Tensor now = ours.converted(DType::f32), then = theirs.converted(DType::f32);
    double largest = 0, worst = 0;
    for (size_t k = 0; k < now.as<float>().size(); ++k) {
      const double a = static_cast<double>(now.as<float>()[k]), b = static_cast<double>(then.as<float>()[k]);
      largest = std::max(largest, std::fabs(b));
      worst = std::max(worst, std::isfinite(a) ? std::fabs(a - b) : 1e30);
    }
    return worst > tolerance * largest + absolute ? fmt::format("{} is off by {} of {}", name, worst, largest) : "";
  }

  FitCase& case_;
  bool stacked_;
  std::shared_ptr<Device> device_;
  StateBuffers states_;
  std::map<int64_t, std::unique_ptr<Program>> programs_;
  uint64_t steps_ = 0;
};

void expect_like_keras(const fs::path& folder, const std::string& device) {
  FitCase here(folder);
  const Json& facts = here.facts;
  const auto &x = here.x, &y = here.y, &w = here.w;
  const int64_t count = x[0].shape()[0], batch = facts.at("batch").as_int();
  Trained trained(here, device);
  const Json* own = facts.find("tolerance");  // of what is computed in 16 bits
  const double of_loss = own != nullptr ? own->as_number() : 2e-4, of_weights = own != nullptr ? own->as_number() : 1e-3;
  const auto part = [&](const std::vector<Tensor>& all, int64_t first, int64_t size) {
    std::vector<Tensor> out;
    for (const Tensor& one : all) out.push_back(rows(one, first, size));
    return out;
  };
  for (int64_t step = 0; step < facts.at("steps").as_int(); ++step) {
    const int64_t first = step * batch % count, size = std::min(batch, count - first);
    const double expected = facts.at("losses")[static_cast<size_t>(step)].as_number();
    const double got = trained.step(part(x, first, size), part(y, first, size), part(w, first, size));
    if (!(std::fabs(got - expected) <= of_loss * std::max(1.0, std::fabs(expected)))) {
      ADD_FAILURE() << folder.filename() << " on " << device << ": the loss of step " << step << " is " << got << ", of Keras " << expected;
      return;
    }
  }
  EXPECT_EQ(trained.difference(folder / "end.keras", of_weights), "") << folder.filename() << " on " << device;
}

constexpr const char* xla_device = "xla:cpu";

void expect_family(const std::string& prefix, const std::string& device) {
  int count = 0;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  const char* only = std::getenv("TUTTI_FIT_CASE");
  for (const auto& folder : folders) {
    const std::string name = folder.filename();
    const bool has_family = name.find('_') != std::string::npos && (name.starts_with("optimizer_") || name.starts_with("schedule_") ||
                                                                    name.starts_with("loss_") || name.starts_with("layer_"));
    if (prefix.empty() ? has_family : !name.starts_with(prefix)) continue;
    // XLA takes long to compile a step: every fourth.
    if (count++ % 4 != 0 && device == xla_device && only == nullptr) continue;
    if (only != nullptr && name != only) continue;
    try {
      expect_like_keras(folder, device);
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << " on " << device << ": " << error.what();
    }
  }
  EXPECT_GT(count, 0) << "no case of " << root;
}

class LikeKeras : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    try {
      open_device(device_of(GetParam()));
    } catch (const DeviceError& error) {
      GTEST_SKIP() << error.what();
    }
  }
};
INSTANTIATE_TEST_SUITE_P(device, LikeKeras, testing::Values("reference", "cpu", stacked_device, xla_device), [](const auto& one) {
  const std::string name = one.param;
  return name == xla_device ? "xla" : name;
});

TEST_P(LikeKeras, optimizers) { expect_family("optimizer_", GetParam()); }
TEST_P(LikeKeras, schedules) { expect_family("schedule_", GetParam()); }
TEST_P(LikeKeras, losses) { expect_family("loss_", GetParam()); }
TEST_P(LikeKeras, layers) { expect_family("layer_", GetParam()); }
TEST_P(LikeKeras, options_of_layers_and_models) { expect_family("", GetParam()); }

}  // namespace
}  // namespace tutti
