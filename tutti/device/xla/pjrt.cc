#include "tutti/device/xla/pjrt.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "tutti/base/error.h"
#include "tutti/device/xla/key_values.h"
#include "tutti/device/xla/pjrt_api.h"
#include "tutti/device/xla/proto.h"

namespace tutti::xla {

namespace {

PJRT_Buffer_Type buffer_type(DType dtype) {
  switch (dtype) {
    case DType::boolean: return PJRT_Buffer_Type_PRED;
    case DType::i8: return PJRT_Buffer_Type_S8;
    case DType::i16: return PJRT_Buffer_Type_S16;
    case DType::i32: return PJRT_Buffer_Type_S32;
    case DType::i64: return PJRT_Buffer_Type_S64;
    case DType::u8: return PJRT_Buffer_Type_U8;
    case DType::u16: return PJRT_Buffer_Type_U16;
    case DType::u32: return PJRT_Buffer_Type_U32;
    case DType::u64: return PJRT_Buffer_Type_U64;
    case DType::f16: return PJRT_Buffer_Type_F16;
    case DType::bf16: return PJRT_Buffer_Type_BF16;
    case DType::f32: return PJRT_Buffer_Type_F32;
    case DType::f64: return PJRT_Buffer_Type_F64;
  }
  fail<InternalError>("xla", "a dtype without a PJRT type");
}

PJRT_NamedValue named_value(std::string_view name, PJRT_NamedValue_Type type) {
  auto out = pjrt<PJRT_NamedValue>();
  out.name = name.data();
  out.name_size = name.size();
  out.type = type;
  out.value_size = 1;
  return out;
}

PJRT_NamedValue named_value(std::string_view name, const std::string& value) {
  auto out = named_value(name, PJRT_NamedValue_kString);
  out.string_value = value.data();
  out.value_size = value.size();
  return out;
}

PJRT_NamedValue named_value(std::string_view name, int64_t value) {
  auto out = named_value(name, PJRT_NamedValue_kInt64);
  out.int64_value = value;
  return out;
}

PJRT_Program program_of(std::string& text) {
  constexpr std::string_view format = "mlir";
  auto out = pjrt<PJRT_Program>();
  out.code = text.data();
  out.code_size = text.size();
  out.format = format.data();
  out.format_size = format.size();
  return out;
}

// CompileOptionsProto { executable_build_options(3) { num_replicas(4), num_partitions(5), device_assignment(9) { replica_count(1),
// computation_count(2), computation_devices(3) { replica_device_ids(1) } } }, compile_portable_executable(4), env_option_overrides(7) {
// key(1), value(2) { string_field(1) } } }. Without devices of its own, a program for one device runs on any.
std::string compile_options(bool portable, std::span<const XlaFlag> flags, size_t replicas = 1, std::span<const int64_t> devices = {}) {
  ProtoWriter out, build;
  build.number(4, replicas).number(5, 1);
  if (!devices.empty()) {
    ProtoWriter ids;
    for (int64_t id : devices) ids.number(1, static_cast<uint64_t>(id));
    build.text(9, ProtoWriter().number(1, devices.size()).number(2, 1).text(3, ids.bytes()).bytes());
  }
  out.text(3, build.bytes());
  if (portable) out.number(4, 1);
  for (const auto& [name, value] : flags) out.text(7, ProtoWriter().text(1, name).text(2, ProtoWriter().text(1, value).bytes()).bytes());
  return out.bytes();
}

std::shared_ptr<const Api> open_api(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Api>> open;
  std::lock_guard lock(mutex);
  auto& found = open[path];
  if (!found) found = std::make_shared<const Api>(path);
  return found;
}

}  // namespace

struct Client::Impl {
  explicit Impl(const std::string& path) : api(open_api(path)) {
    auto create = pjrt<PJRT_Client_Create_Args>();
    std::vector<PJRT_NamedValue> options;
    if (path.find("cuda") != std::string::npos || path.find("rocm") != std::string::npos) {  // other plugins do not know the words
      // They take three quarters of the memory at once unless asked not to.
      options.push_back(named_value("preallocate", PJRT_NamedValue_kBool));
      if (hosts().nodes > 1) {
        options.push_back(named_value("node_id", int64_t{hosts().node}));
        options.push_back(named_value("num_nodes", int64_t{hosts().nodes}));
        set_key_values(create, hosts());
        spans_hosts = true;
      }
    }
    create.create_options = options.data();
    create.num_options = options.size();
    api->call(&PJRT_Api::PJRT_Client_Create, create, "opening the device");
    client = create.client;
    auto name = pjrt<PJRT_Client_PlatformName_Args>();
    name.client = client;
    api->call(&PJRT_Api::PJRT_Client_PlatformName, name, "asking for the platform");
    platform.assign(name.platform_name, name.platform_name_size);
    auto list = pjrt<PJRT_Client_AddressableDevices_Args>();
    list.client = client;
    api->call(&PJRT_Api::PJRT_Client_AddressableDevices, list, "listing devices");
    devices.assign(list.addressable_devices, list.addressable_devices + list.num_addressable_devices);
  }
  ~Impl() {
    auto end = pjrt<PJRT_Client_Destroy_Args>();
    end.client = client;
    api->try_call(&PJRT_Api::PJRT_Client_Destroy, end);
  }

  std::shared_ptr<const Api> api;
  PJRT_Client* client = nullptr;
  std::string platform;
  std::vector<PJRT_Device*> devices;
  bool spans_hosts = false;
  // What is compiled and still in use, by options and text: one program serves all devices.
  mutable std::mutex mutex;
  mutable std::map<std::string, std::weak_ptr<const Executable::Impl>> compiled;
};

struct Executable::Impl {
  std::shared_ptr<const Api> api;
  std::shared_ptr<const Client::Impl> client;  // whoever owns a thing of a client keeps the client; none for a device that is not here
  PJRT_LoadedExecutable* loaded = nullptr;
  PJRT_Executable* executable = nullptr;
  size_t results = 0;
  bool has_places = false;  // compiled for certain devices

  static Executable of(std::shared_ptr<const Client::Impl> client, PJRT_LoadedExecutable* loaded, bool has_places) {
    auto made = std::make_shared<Impl>();
    made->has_places = has_places;
    made->api = client->api;
    made->client = std::move(client);
    made->loaded = loaded;
    auto get = pjrt<PJRT_LoadedExecutable_GetExecutable_Args>();
    get.loaded_executable = loaded;
    made->api->call(&PJRT_Api::PJRT_LoadedExecutable_GetExecutable, get, "looking at the program");
    made->executable = get.executable;
    auto count = pjrt<PJRT_Executable_NumOutputs_Args>();
    count.executable = made->executable;
    made->api->call(&PJRT_Api::PJRT_Executable_NumOutputs, count, "looking at the program");
    made->results = count.num_outputs;
    Executable out;
    out.impl_ = std::move(made);
    return out;
  }
  ~Impl() {
    auto end = pjrt<PJRT_Executable_Destroy_Args>();
    end.executable = executable;
    if (executable != nullptr) api->try_call(&PJRT_Api::PJRT_Executable_Destroy, end);
    auto unload = pjrt<PJRT_LoadedExecutable_Destroy_Args>();
    unload.executable = loaded;
    if (loaded != nullptr) api->try_call(&PJRT_Api::PJRT_LoadedExecutable_Destroy, unload);
  }
};

namespace {

template <class Owner>
std::shared_ptr<PJRT_Buffer> owned(const std::shared_ptr<Owner>& client, PJRT_Buffer* buffer) {
  return {buffer, [client](PJRT_Buffer* own) {
            auto end = pjrt<PJRT_Buffer_Destroy_Args>();
            end.buffer = own;
            client->api->try_call(&PJRT_Api::PJRT_Buffer_Destroy, end);
          }};
}

}  // namespace

std::shared_ptr<const Client> Client::open(const std::string& plugin_path) {
  static std::mutex mutex;
  // Never taken down: at the end of the process a plugin's own statics may be gone first.
  static auto& open = *std::make_unique<std::map<std::string, std::shared_ptr<const Client>>>().release();
  std::lock_guard lock(mutex);
  auto& found = open[plugin_path];
  if (!found) found = std::make_shared<const Client>(plugin_path);
  return found;
}

Client::Client(const std::string& plugin_path) : impl_(std::make_shared<const Impl>(plugin_path)) {}
Client::~Client() = default;

const std::string& Client::platform() const { return impl_->platform; }
const std::vector<PJRT_Device*>& Client::devices() const { return impl_->devices; }
bool Client::spans_hosts() const { return impl_->spans_hosts; }

std::string Client::version() const {
  auto ask = pjrt<PJRT_Client_PlatformVersion_Args>();
  ask.client = impl_->client;
  impl_->api->call(&PJRT_Api::PJRT_Client_PlatformVersion, ask, "asking for the version");
  std::string own(ask.platform_version, ask.platform_version_size);
  std::replace(own.begin(), own.end(), '\n', ' ');
  return fmt::format("{}{}PJRT {}", own == platform() ? "" : own, own == platform() ? "" : ", ", impl_->api->version());
}

std::string Client::kind(PJRT_Device* device) const {
  auto get = pjrt<PJRT_Device_GetDescription_Args>();
  get.device = device;
  impl_->api->call(&PJRT_Api::PJRT_Device_GetDescription, get, "describing a device");
  auto ask = pjrt<PJRT_DeviceDescription_Kind_Args>();
  ask.device_description = get.device_description;
  impl_->api->call(&PJRT_Api::PJRT_DeviceDescription_Kind, ask, "describing a device");
  return {ask.device_kind, ask.device_kind_size};
}

int64_t Client::id(PJRT_Device* device) const {
  auto get = pjrt<PJRT_Device_GetDescription_Args>();
  get.device = device;
  impl_->api->call(&PJRT_Api::PJRT_Device_GetDescription, get, "describing a device");
  auto ask = pjrt<PJRT_DeviceDescription_Id_Args>();
  ask.device_description = get.device_description;
  impl_->api->call(&PJRT_Api::PJRT_DeviceDescription_Id, ask, "describing a device");
  return ask.id;
}

std::optional<Client::Memory> Client::memory(PJRT_Device* device) const {
  auto ask = pjrt<PJRT_Device_MemoryStats_Args>();
  ask.device = device;
  if (!impl_->api->try_call(&PJRT_Api::PJRT_Device_MemoryStats, ask) || !ask.bytes_limit_is_set) return {};
  return Memory{ask.bytes_limit, std::max<int64_t>(0, ask.bytes_limit - ask.bytes_in_use)};
}

Executable Client::compile(const std::string& stablehlo, std::span<const XlaFlag> flags, std::span<const int64_t> replicas) const {
  std::string text = stablehlo;
  PJRT_Program program = program_of(text);
  const std::string options = replicas.empty() ? compile_options(true, flags) : compile_options(false, flags, replicas.size(), replicas);
  const std::string key = options + "\n" + stablehlo;
  {
    std::lock_guard lock(impl_->mutex);
    std::erase_if(impl_->compiled, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = impl_->compiled.find(key); found != impl_->compiled.end())
      if (Executable known(found->second.lock()); known.impl_ != nullptr) return known;
  }
  auto compile = pjrt<PJRT_Client_Compile_Args>();
  compile.client = impl_->client;
  compile.program = &program;
  compile.compile_options = options.data();
  compile.compile_options_size = options.size();
  impl_->api->call(&PJRT_Api::PJRT_Client_Compile, compile, "compiling");
  Executable made = Executable::Impl::of(impl_, compile.executable, !replicas.empty());
  std::lock_guard lock(impl_->mutex);
  impl_->compiled[key] = made.impl_;
  return made;
}

Executable Client::load(const std::string& serialized, bool has_places) const {
  auto load = pjrt<PJRT_Executable_DeserializeAndLoad_Args>();
  load.client = impl_->client;
  load.serialized_executable = serialized.data();
  load.serialized_executable_size = serialized.size();
  impl_->api->call(&PJRT_Api::PJRT_Executable_DeserializeAndLoad, load, "loading a program");
  return Executable::Impl::of(impl_, load.loaded_executable, has_places);
}

DeviceBuffer Client::upload(std::span<const std::byte> bytes, const Type& type, PJRT_Device* device) const {
  auto copy = pjrt<PJRT_Client_BufferFromHostBuffer_Args>();
  copy.client = impl_->client;
  copy.data = bytes.data();
  copy.type = buffer_type(type.dtype);
  copy.dims = type.shape.extents().data();
  copy.num_dims = type.shape.extents().size();
  copy.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  copy.device = device;
  impl_->api->call(&PJRT_Api::PJRT_Client_BufferFromHostBuffer, copy, "copying to the device");
  DeviceBuffer out(owned(impl_, copy.buffer));
  impl_->api->drop(copy.done_with_host_buffer);  // already: the bytes are read during the call
  return out;
}

void Client::download(const DeviceBuffer& from, std::span<std::byte> to) const {
  if (to.empty()) return;
  if (platform() == "cpu") {
    // The value is in host memory: the plugin would have another thread copy it, which takes longer than most copies.
    auto where = pjrt<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>();
    where.buffer = from.get();
    wait(from);
    if (impl_->api->try_call(&PJRT_Api::PJRT_Buffer_OpaqueDeviceMemoryDataPointer, where) && where.device_memory_ptr != nullptr) {
      std::memcpy(to.data(), where.device_memory_ptr, to.size());
      return;
    }
  }
  auto copy = pjrt<PJRT_Buffer_ToHostBuffer_Args>();
  copy.src = from.get();
  copy.dst = to.data();
  copy.dst_size = to.size();
  impl_->api->call(&PJRT_Api::PJRT_Buffer_ToHostBuffer, copy, "copying from the device");
  impl_->api->await(copy.event, "running the program");
}

void Client::wait(const DeviceBuffer& buffer) const {
  auto ready = pjrt<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = buffer.get();
  impl_->api->call(&PJRT_Api::PJRT_Buffer_ReadyEvent, ready, "waiting for the device");
  impl_->api->await(ready.event, "running the program");
}

bool Client::is_gone(const DeviceBuffer& buffer) const {
  auto ask = pjrt<PJRT_Buffer_IsDeleted_Args>();
  ask.buffer = buffer.get();
  return !impl_->api->try_call(&PJRT_Api::PJRT_Buffer_IsDeleted, ask) || ask.is_deleted;
}

size_t Executable::results() const { return impl_->results; }

void Executable::run(std::span<PJRT_Buffer* const> arguments, std::span<DeviceBuffer> results,
                     std::span<PJRT_Device* const> devices) const {
  thread_local std::vector<PJRT_Buffer*> made;
  thread_local std::vector<PJRT_Buffer* const*> argument_lists;
  thread_local std::vector<PJRT_Buffer**> result_lists;
  const size_t each = arguments.size() / devices.size();
  made.assign(impl_->results * devices.size(), nullptr);
  argument_lists.clear();
  result_lists.clear();
  for (size_t i = 0; i < devices.size(); ++i) {
    argument_lists.push_back(arguments.data() + i * each);
    result_lists.push_back(made.data() + i * impl_->results);
  }
  auto options = pjrt<PJRT_ExecuteOptions>();
  auto execute = pjrt<PJRT_LoadedExecutable_Execute_Args>();
  execute.executable = impl_->loaded;
  execute.options = &options;
  execute.argument_lists = argument_lists.data();
  execute.num_devices = devices.size();
  execute.num_args = each;
  execute.output_lists = result_lists.data();
  if (!impl_->has_places) execute.execute_device = devices[0];
  impl_->api->call(&PJRT_Api::PJRT_LoadedExecutable_Execute, execute, "running the program");
  for (size_t i = 0; i < made.size(); ++i) results[i] = DeviceBuffer(owned(impl_->client, made[i]));
}

ExecutableStats Executable::stats() const {
  ExecutableStats out;
  auto ask = pjrt<PJRT_Executable_GetCompiledMemoryStats_Args>();
  ask.executable = impl_->executable;
  if (impl_->api->try_call(&PJRT_Api::PJRT_Executable_GetCompiledMemoryStats, ask))
    out = {ask.temp_size_in_bytes,
           ask.argument_size_in_bytes,
           ask.output_size_in_bytes,
           ask.alias_size_in_bytes,
           ask.generated_code_size_in_bytes,
           {},
           {}};
  auto cost = pjrt<PJRT_Executable_GetCostAnalysis_Args>();
  cost.executable = impl_->executable;
  if (!impl_->api->try_call(&PJRT_Api::PJRT_Executable_GetCostAnalysis, cost)) return out;
  for (size_t i = 0; i < cost.num_properties; ++i) {
    const PJRT_NamedValue& one = cost.properties[i];
    const std::string_view name(one.name, one.name_size);
    if (one.type != PJRT_NamedValue_kFloat) continue;
    if (name == "flops") out.flops = one.float_value;
    if (name == "bytes accessed") out.bytes = one.float_value;
  }
  return out;
}

std::string Executable::optimized() const {
  auto program = pjrt<PJRT_Program>();
  auto get = pjrt<PJRT_Executable_OptimizedProgram_Args>();
  get.executable = impl_->executable;
  get.program = &program;
  impl_->api->call(&PJRT_Api::PJRT_Executable_OptimizedProgram, get, "reading the program");  // how long it is
  std::string out(program.code_size, '\0');
  program.code = out.data();
  impl_->api->call(&PJRT_Api::PJRT_Executable_OptimizedProgram, get, "reading the program");
  if (std::string_view(program.format, program.format_size) == "hlo") return out;
  // HloModuleProtoWithConfig { hlo_module(1) }
  for (ProtoReader reader(out); const auto field = reader.next();)
    if (field->number == 1) return std::string(field->text);
  return {};
}

std::string Executable::serialized() const {
  auto ask = pjrt<PJRT_Executable_Serialize_Args>();
  ask.executable = impl_->executable;
  impl_->api->call(&PJRT_Api::PJRT_Executable_Serialize, ask, "keeping the program");
  std::string out(ask.serialized_bytes, ask.serialized_bytes_size);
  ask.serialized_executable_deleter(ask.serialized_executable);
  return out;
}

Executable compile_for(const std::string& plugin_path, const std::string& target, const std::string& stablehlo,
                       std::span<const XlaFlag> flags, size_t replicas) {
  const auto api = open_api(plugin_path);
  const std::string one_machine = fmt::format("1x1x{}", replicas);
  const PJRT_NamedValue options[] = {named_value("target_config", target), named_value("topology", one_machine)};
  auto create = pjrt<PJRT_TopologyDescription_Create_Args>();
  create.create_options = options;
  create.num_options = std::size(options);
  create.topology_name = "";
  api->call(&PJRT_Api::PJRT_TopologyDescription_Create, create, "describing the target");
  const std::shared_ptr<void> topology(create.topology, [&](void*) {
    auto end = pjrt<PJRT_TopologyDescription_Destroy_Args>();
    end.topology = create.topology;
    api->try_call(&PJRT_Api::PJRT_TopologyDescription_Destroy, end);
  });
  std::string text = stablehlo;
  PJRT_Program program = program_of(text);
  const std::string bytes = compile_options(false, flags, replicas);
  auto compile = pjrt<PJRT_Compile_Args>();
  compile.topology = create.topology;
  compile.program = &program;
  compile.compile_options = bytes.data();
  compile.compile_options_size = bytes.size();
  api->call(&PJRT_Api::PJRT_Compile, compile, "compiling");
  auto made = std::make_shared<Executable::Impl>();
  made->api = api;
  made->executable = compile.executable;
  Executable out;
  out.impl_ = std::move(made);
  return out;
}

}  // namespace tutti::xla
