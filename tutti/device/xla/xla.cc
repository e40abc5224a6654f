#include "tutti/device/xla/xla.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "tutti/base/disk_cache.h"
#include "tutti/base/error.h"
#include "tutti/device/host.h"
#include "tutti/device/xla/lowering.h"
#include "tutti/device/xla/plugins.h"
#include "tutti/device/xla/target.h"

namespace tutti {

namespace {

class XlaBuffer : public Buffer {
 public:
  explicit XlaBuffer(Type type) : Buffer(std::move(type)) {}
  std::span<std::byte> host() override { return {}; }
  xla::DeviceBuffer buffer;  // empty until it is written
};

XlaBuffer& own(Buffer& buffer) {
  auto* found = dynamic_cast<XlaBuffer*>(&buffer);
  if (found == nullptr) fail<InvalidArgument>("xla", "a buffer {} is another device's", to_string(buffer.type()));
  return *found;
}

// One device of a plugin, and what was last given it to do.
struct Place {
  std::string name;
  std::shared_ptr<const xla::Client> client;
  PJRT_Device* device = nullptr;
  std::mutex mutex;
  xla::DeviceBuffer last;

  xla::DeviceBuffer upload(std::span<const std::byte> bytes, const Type& type) const { return client->upload(bytes, type, device); }
  int64_t free_bytes() const {
    const auto memory = client->memory(device);
    return memory ? memory->free : available_memory();
  }
};

// Of one model: also the weights on the device, while a program has them.
struct XlaCache : xla::FoldCache {
  // By where their bytes lie on the host: whoever holds the buffer holds those as well.
  std::map<std::pair<const std::byte*, const Place*>, std::pair<Type, std::weak_ptr<PJRT_Buffer>>> resident;

  xla::DeviceBuffer find(const Tensor& value, const Place& place) const {
    const auto found = resident.find({value.bytes().data(), &place});
    if (found == resident.end() || !(found->second.first == value.type())) return {};
    return xla::DeviceBuffer(found->second.second.lock());
  }
};

// What contexts share.
struct XlaCode {
  std::vector<std::shared_ptr<Place>> places;  // by replica
  std::vector<PJRT_Device*> devices;
  xla::Executable executable;
  xla::StableHlo program;                   // without its text
  std::vector<xla::DeviceBuffer> resident;  // by replica, then by what the program has resident; none for states

  const xla::Client& client() const { return *places[0]->client; }
  const xla::StableHlo::Resident& leaf(size_t i) const { return program.resident[i % program.resident.size()]; }
  size_t replica(size_t i) const { return i / program.resident.size(); }
};

class XlaProgram : public Program {
 public:
  XlaProgram(const Graph& graph, std::shared_ptr<const XlaCode> code, CompileSettings& settings)
      : Program(graph, code->places.size()), code_(std::move(code)), results_(code_->executable.results() * code_->places.size()) {
    xla::describe(code_->executable, graph, stats_, settings.report);
    bind(settings.states);
  }
  std::string executable() const override { return code_->executable.serialized(); }

  void run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    check_arguments(inputs, outputs);
    const size_t replicas = code_->places.size(), given = inputs.size() / replicas, leaves = code_->program.resident.size();
    arguments_.clear();
    for (size_t r = 0; r < replicas; ++r) {
      for (size_t i = r * given; i < (r + 1) * given; ++i) {
        const xla::DeviceBuffer& buffer = own(*inputs[i]).buffer;
        if (!buffer) fail<InvalidArgument>("run", "input {} was never written", i);
        arguments_.push_back(buffer.get());
      }
      for (size_t i = r * leaves; i < (r + 1) * leaves; ++i) arguments_.push_back(resident_[i]->buffer.get());
    }
    const size_t each = code_->executable.results(), asked = outputs.size() / replicas;
    try {
      code_->executable.run(arguments_, results_, code_->devices);
      // XLA's replicas on the processor share its threads: those of the next run would take the ones that this run's wait for.
      if (replicas > 1 && each > 0 && code_->client().platform() == "cpu")
        for (size_t r = 0; r < replicas; ++r) code_->client().wait(results_[r * each]);
    } catch (const Error&) {
      reset_states();
      throw;
    }
    for (size_t r = 0; r < replicas; ++r) {
      std::lock_guard lock(code_->places[r]->mutex);
      if (each > 0) code_->places[r]->last = results_[r * each];
    }
    for (size_t i = 0; i < outputs.size(); ++i) own(*outputs[i]).buffer = std::move(results_[i / asked * each + i % asked]);
    for (size_t i = 0; i < resident_.size(); ++i)
      if (const int64_t next = code_->leaf(i).state_result; next >= 0)
        resident_[i]->buffer = std::move(results_[code_->replica(i) * each + static_cast<size_t>(next)]);
  }

  std::unique_ptr<Program> context(StateBuffers* states) const override {
    auto other = std::make_unique<XlaProgram>(*this);
    other->bind(states);
    return other;
  }

 private:
  // Weights are the code's. A run computes in the place of states, so each context has its own, or those that are shared by name.
  void bind(StateBuffers* shared) {
    resident_.clear();
    for (size_t i = 0; i < code_->resident.size(); ++i) {
      const auto& leaf = code_->leaf(i);
      std::shared_ptr<XlaBuffer> own_buffer;
      if (leaf.is_state && shared != nullptr) {
        std::shared_ptr<Buffer>& known = shared[code_->replica(i)][leaf.name];
        if (known == nullptr) known = std::make_shared<XlaBuffer>(leaf.value.type());
        if (!(known->type() == leaf.value.type()))
          fail<InvalidArgument>("device", "state '{}' is {}; shared as {}", leaf.name, to_string(leaf.value.type()),
                                to_string(known->type()));
        own(*known);
        own_buffer = std::static_pointer_cast<XlaBuffer>(known);
      } else {
        own_buffer = std::make_shared<XlaBuffer>(leaf.value.type());
        own_buffer->buffer = code_->resident[i];
      }
      resident_.push_back(std::move(own_buffer));
    }
    reset_states();
  }
  // States that are not there, or were given to a run that failed, have their first values.
  void reset_states() {
    for (size_t i = 0; i < resident_.size(); ++i) {
      const auto& leaf = code_->leaf(i);
      xla::DeviceBuffer& buffer = resident_[i]->buffer;
      if (code_->resident[i] || (buffer && !code_->client().is_gone(buffer))) continue;
      buffer = code_->places[code_->replica(i)]->upload(leaf.value.bytes(), leaf.value.type());
    }
  }
  std::shared_ptr<const XlaCode> code_;
  std::vector<std::shared_ptr<XlaBuffer>> resident_;
  std::vector<xla::DeviceBuffer> results_;
  std::vector<PJRT_Buffer*> arguments_;
};

class XlaDevice : public Device {
 public:
  XlaDevice(const std::string& name, const std::string& plugin, size_t index) : place_(std::make_shared<Place>()) {
    place_->name = name;
    place_->client = xla::Client::open(plugin);
    const auto& devices = place_->client->devices();
    if (index >= devices.size())
      fail<DeviceError>(name, "there is no device {}: the plugin has {}, {} to {}", index, devices.size(),
                        device_after(kind_of_device(name), 0), device_after(kind_of_device(name), devices.size() - 1));
    place_->device = devices[index];
  }
  std::string name() const override { return place_->name; }
  std::string description() const override {
    const std::string kind = place_->client->kind(place_->device);
    return fmt::format("{}, {}", kind == "cpu" ? "this machine's processor by XLA" : kind, place_->client->version());
  }
  int64_t memory_bytes() const override {
    const auto memory = place_->client->memory(place_->device);
    return memory ? memory->all : total_memory();
  }
  std::optional<std::string> refuses(const Graph&, const Node&) const override { return {}; }
  std::unique_ptr<Buffer> allocate(const Type& type) override { return std::make_unique<XlaBuffer>(type); }

  void to_device(std::span<const std::byte> from, Buffer& to) override {
    check_size(from.size(), to.type());
    own(to).buffer = place_->upload(from, to.type());
  }
  void to_host(Buffer& from, std::span<std::byte> to) override {
    check_size(to.size(), from.type());
    const xla::DeviceBuffer& buffer = own(from).buffer;
    if (!buffer) fail<InvalidArgument>(name(), "a buffer {} was never written", to_string(from.type()));
    place_->client->download(buffer, to);
  }

  std::unique_ptr<Program> compile(const Graph& graph, CompileSettings& settings) override {
    if (!settings.cache) settings.cache = std::make_shared<XlaCache>();
    auto& cache = dynamic_cast<XlaCache&>(*settings.cache);
    std::lock_guard lock(cache.mutex);
    xla::Lowered lowered = xla::lower(graph, settings, cache.folded, name(), place_->client->platform());
    auto code = std::make_shared<XlaCode>();
    code->places = places_for(settings);
    for (const auto& place : code->places) code->devices.push_back(place->device);
    code->program = std::move(lowered.program);
    code->executable = executable_of(code->program.text, replica_numbers(*code, settings));
    code->program.text.clear();
    for (const auto& place : code->places) require_free(*code, cache, *place);
    for (const auto& place : code->places)
      for (const auto& leaf : code->program.resident) code->resident.push_back(resident(leaf, cache, *place));
    return std::make_unique<XlaProgram>(lowered.graph, std::move(code), settings);
  }

  bool spans_hosts() const override { return place_->client->spans_hosts(); }
  int64_t number() const override { return place_->client->id(place_->device); }
  bool is_asynchronous() const override { return true; }
  bool launches_replicas() const override { return true; }
  void synchronize() override {
    xla::DeviceBuffer last;
    {
      std::lock_guard lock(place_->mutex);
      std::swap(last, place_->last);
    }
    if (last && !place_->client->is_gone(last)) place_->client->wait(last);
  }

 private:
  void check_size(size_t bytes, const Type& type) const {
    if (bytes != static_cast<size_t>(type.bytes()))
      fail<InvalidArgument>(name(), "a buffer {} has {} bytes; got {}", to_string(type), type.bytes(), bytes);
  }

  std::vector<std::shared_ptr<Place>> places_for(const CompileSettings& settings) const {
    std::vector<std::shared_ptr<Place>> out;
    for (const auto& device : settings.replicas) {
      const auto* other = dynamic_cast<const XlaDevice*>(device.get());
      if (other == nullptr || other->place_->client != place_->client)
        fail<InvalidArgument>(name(), "replicas are devices of one plugin; got '{}'", device->name());
      out.push_back(other->place_);
    }
    if (out.empty()) out.push_back(place_);
    return out;
  }

  // Of a program for several devices.
  std::vector<int64_t> replica_numbers(const XlaCode& code, const CompileSettings& settings) const {
    std::vector<int64_t> out = settings.replica_numbers;
    if (out.empty() && code.devices.size() > 1)
      for (PJRT_Device* device : code.devices) out.push_back(place_->client->id(device));
    return out;
  }

  // From the cache on disk, or compiled. What an entry is good for is in its key.
  xla::Executable executable_of(const std::string& text, std::span<const int64_t> replicas) const {
    const DiskCache cache;
    const xla::Client& client = *place_->client;
    const auto flags = xla::flags_of(client.platform());
    std::string key =
        fmt::format("{}\n{}\n{}\n", client.version(), client.kind(place_->device), client.platform() == "cpu" ? processor_features() : "");
    for (const auto& [flag, value] : flags) key += fmt::format("{}={}\n", flag, value);
    for (int64_t number : replicas) key += fmt::format("replica on {}\n", number);
    key += text;
    // While plugins compile for several hosts, each waits for what the others have found out: none may be spared it.
    if (spans_hosts() && !replicas.empty()) return client.compile(text, flags, replicas);
    if (const auto known = cache.find(key)) try {
        return client.load(*known, !replicas.empty());
      } catch (const DeviceError&) {
        cache.remove(key);  // of another build of the plugin, perhaps
      }
    xla::Executable made = client.compile(text, flags, replicas);
    try {
      if (!cache.folder().empty()) cache.store(key, made.serialized());
    } catch (const DeviceError&) {
      return made;  // a plugin need not be able to
    }
    return made;
  }

  // What a run takes besides the weights that are there already.
  void require_free(const XlaCode& code, const XlaCache& cache, const Place& place) const {
    const xla::ExecutableStats stats = code.executable.stats();
    int64_t needed = stats.temporary_bytes + stats.argument_bytes + stats.output_bytes - stats.alias_bytes + stats.code_bytes;
    for (const auto& leaf : code.program.resident)
      if (cache.find(leaf.value, place)) needed -= leaf.value.type().bytes();
    if (needed < (1 << 20)) return;
    if (const int64_t there = place.free_bytes(); needed > there) throw TooLarge(place.name, "the program", needed, there);
  }

  xla::DeviceBuffer resident(const xla::StableHlo::Resident& leaf, XlaCache& cache, const Place& place) const {
    if (leaf.is_state) return {};
    if (auto found = cache.find(leaf.value, place)) return found;
    auto made = place.upload(leaf.value.bytes(), leaf.value.type());
    if (!leaf.value.bytes().empty()) cache.resident[{leaf.value.bytes().data(), &place}] = {leaf.value.type(), made.weak()};
    return made;
  }

  std::shared_ptr<Place> place_;
};

// Plugins name no devices when they find none; the reason is said in the words of `tutti devices`.
[[noreturn]] void fail_without_device(const std::string& name, const std::string& message) {
  constexpr std::string_view none[] = {"No visible GPU", "no NVIDIA GPU", "CUDA_ERROR_NO_DEVICE", "no ROCm-capable device"};
  for (const auto words : none)
    if (message.find(words) != std::string::npos) fail<DeviceError>(name, "plugin found, no GPU visible");
  fail<DeviceError>(name, "{}", std::string_view(message).substr(message.find("] ") + 2));
}

}  // namespace

std::unique_ptr<Device> make_xla_device(const std::string& name) {
  const auto asked = xla::device_name(name);
  if (!asked) fail<InternalError>("xla", "'{}' is no name of a device", name);
  if (!asked->target.empty()) return xla::make_target_device(name, *asked);
  if (asked->platform == nullptr) return std::make_unique<XlaDevice>(name, asked->path, asked->index);
  const xla::Plugin plugin = xla::require_plugin(*asked->platform);
  if (const auto why = xla::missing_driver(*asked->platform, plugin)) fail<DeviceError>(name, "{}", *why);
  try {
    return std::make_unique<XlaDevice>(name, plugin.path, asked->index);
  } catch (const DeviceError& e) {
    fail_without_device(name, e.what());
  }
}

std::vector<DeviceListing> list_xla_devices() {
  std::vector<DeviceListing> out;
  for (const xla::Platform& platform : xla::platforms()) {
    const std::string base(platform.name);
    try {
      const xla::Plugin plugin = xla::require_plugin(platform);
      make_xla_device(base);  // why not, in the right words
      const size_t count = platform.is_host ? 1 : xla::Client::open(plugin.path)->devices().size();
      for (size_t i = 0; i < count; ++i)
        out.push_back({i == 0 ? base : fmt::format("{}:{}", base, i), platform.is_host ? "host" : "accelerator", "",
                       fmt::format("plugin in {}", plugin.found), true, 0});
    } catch (const DeviceError& e) {
      const std::string_view message = e.what();
      out.push_back({base, "accelerator", "", std::string(message.substr(message.find("] ") + 2)), false, 0});
    }
  }
  return out;
}

}  // namespace tutti
