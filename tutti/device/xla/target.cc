#include "tutti/device/xla/target.h"

#include <fmt/format.h>

#include "tutti/base/error.h"
#include "tutti/base/file.h"
#include "tutti/base/toml.h"
#include "tutti/device/report.h"
#include "tutti/device/xla/lowering.h"

namespace tutti::xla {

// The files targets/*.toml by name: made by CMake.
const std::vector<std::pair<std::string, std::string_view>>& target_files();

namespace {

Target parse_target(const std::string& name, std::string_view text) {
  const Json file = parse_toml(text);
  Target out{name, file.at("platform").as_string(), file.at("config").as_string(), {}, file.at("bytes_per_second").as_number(), 0};
  for (size_t i = 0; i < precision_names().size(); ++i) out.flops[i] = file.at("flops").at(precision_names()[i]).as_number();
  out.memory_bytes = file.at("memory_bytes").as_int();
  return out;
}

class TargetProgram : public Program {
 public:
  TargetProgram(const Graph& graph, Executable executable, std::string device, CompileReport* report)
      : Program(graph), executable_(std::move(executable)), device_(std::move(device)) {
    describe(executable_, graph, stats_, report);
  }
  bool computes() const override { return false; }
  void run(std::span<Buffer* const>, std::span<Buffer* const>) override {
    fail<DeviceError>(device_, "programs are compiled for a device that is not here, and do not run");
  }
  std::unique_ptr<Program> context(StateBuffers*) const override { return std::make_unique<TargetProgram>(*this); }
  std::string executable() const override { return executable_.serialized(); }

 private:
  Executable executable_;
  std::string device_;
};

class TargetDevice : public Device {
 public:
  TargetDevice(std::string name, Target target, Plugin plugin)
      : name_(std::move(name)), target_(std::move(target)), plugin_(std::move(plugin)), cuda_(cuda_folder(plugin_)) {
    if (cuda_.empty())
      fail<DeviceError>(name_,
                        "there is no CUDA compiler (bin/ptxas and nvvm/libdevice) beside the plugin or in CUDA_HOME; hint: ./x install "
                        "cuda, or pip install nvidia-cuda-nvcc nvidia-nvvm");
  }
  std::string name() const override { return name_; }
  std::string description() const override { return "compiles for a device that is not here"; }
  int64_t memory_bytes() const override { return target_.memory_bytes; }
  std::optional<std::string> refuses(const Graph&, const Node&) const override { return {}; }
  std::unique_ptr<Buffer> allocate(const Type&) override { fail_absent(); }
  void to_device(std::span<const std::byte>, Buffer&) override { fail_absent(); }
  void to_host(Buffer&, std::span<std::byte>) override { fail_absent(); }
  void synchronize() override {}
  bool launches_replicas() const override { return true; }

  std::unique_ptr<Program> compile(const Graph& graph, CompileSettings& settings) override {
    if (!settings.cache) settings.cache = std::make_shared<FoldCache>();
    auto& cache = dynamic_cast<FoldCache&>(*settings.cache);
    std::lock_guard lock(cache.mutex);
    const Lowered lowered = lower(graph, settings, cache.folded, name_, target_.platform);
    // Without the device nothing can be tried out: what would be tuned has its default.
    std::vector<XlaFlag> flags = flags_of(target_.platform);
    flags.push_back({"xla_gpu_autotune_level", "0"});
    flags.push_back({"xla_gpu_cuda_data_dir", cuda_});
    Executable made = compile_for(plugin_.path, target_.config, lowered.program.text, flags, std::max<size_t>(1, settings.replicas.size()));
    if (settings.report != nullptr)
      settings.report->published = Speed{1, target_.flops[static_cast<size_t>(settings.precision)], {{1 << 20, target_.bytes_per_second}}};
    return std::make_unique<TargetProgram>(lowered.graph, std::move(made), name_, settings.report);
  }

 private:
  [[noreturn]] void fail_absent() const { fail<DeviceError>(name_, "this device is not here; its programs can be compiled and explained"); }
  std::string name_;
  Target target_;
  Plugin plugin_;
  std::string cuda_;
};

}  // namespace

const std::vector<std::string>& target_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& [name, text] : target_files()) out.push_back(name);
    return out;
  }();
  return names;
}

Target find_target(const std::string& name) {
  for (const auto& [known, text] : target_files())
    if (known == name) return parse_target(name, text);
  if (!name.ends_with(".toml"))
    fail<InvalidArgument>("target", "unknown target '{}'{}; known: {}, and files like them", name, did_you_mean(name, target_names()),
                          fmt::join(target_names(), ", "));
  const auto bytes = read_all(*open_file(name), 1 << 20);
  return parse_target(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::unique_ptr<Device> make_target_device(const std::string& name, const DeviceName& asked) {
  Target target = find_target(asked.target);
  if (target.platform != asked.platform->name)
    fail<InvalidArgument>("target", "'{}' is a target for --device {}; got {}", target.name, target.platform, asked.platform->name);
  return std::make_unique<TargetDevice>(name, std::move(target), require_plugin(*asked.platform));
}

}  // namespace tutti::xla
