// The contract of a device: allocate, copy, say what it supports, compile, run, synchronize. Devices are chosen at run time and live side
// by side in one process. Everything above this header is the same for all of them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/device/speed.h"
#include "tutti/graph/graph.h"

namespace tutti {

struct CompileReport;  // report.h
class Collective;      // collective.h

// Memory of a device holding one value. Move-only through its unique_ptr.
class Buffer {
 public:
  explicit Buffer(Type type) : type_(std::move(type)) {}
  virtual ~Buffer() = default;
  const Type& type() const { return type_; }
  // The bytes themselves where the device computes in host memory, else an empty span.
  virtual std::span<std::byte> host() = 0;

 private:
  Type type_;
};

// States that several programs share, by name: a step of training at each batch size, and its evaluation.
using StateBuffers = std::map<std::string, std::shared_ptr<Buffer>>;

struct ProgramStats {
  int64_t kernels = 0;            // launched a run
  int64_t flops = 0;              // a run
  int64_t bytes = 0;              // read and written a run, if nothing were cached
  int64_t peak_memory_bytes = 0;  // intermediate values, as planned
  int64_t weight_bytes = 0;
};

// A compiled graph. Weights and state live inside; run() may be called again and again, from one thread at a time.
class Program {
 public:
  virtual ~Program() = default;
  // Inputs and outputs in the graph's order, of exactly its types. May return while the device still computes (is_asynchronous()): then
  // inputs may be written again at once, and to_host() waits for the outputs.
  virtual void run(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) = 0;
  // The same, a little slower, adding to `seconds` what each step of the CompileReport took; where tells_times().
  virtual void run_timed(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, std::span<double> seconds);
  virtual bool tells_times() const { return false; }
  virtual bool computes() const { return true; }  // else there is nothing to measure: the device plans only, or is not here
  // The same program for another thread: shares code and weights, has memory of its own. Its states live as in CompileSettings, with their
  // initial values where they are new.
  virtual std::unique_ptr<Program> context(StateBuffers* states = nullptr) const = 0;
  // The program as bytes that the device's own libraries can load again; throws Unsupported where there is no such thing.
  virtual std::string executable() const;
  // The same; `ready` hears of each output as soon as its bytes are there, on the thread that runs, before the next is computed. Where a
  // device cannot tell, after all of them. `seconds`, if given, as run_timed() has them.
  using Ready = std::function<void(size_t output)>;
  virtual void run_telling(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs, const Ready& ready,
                           std::span<double> seconds = {});
  // One of several replicas from now on, whose all_reduce nodes meet there; nullptr: alone. Throws Unsupported where the device does not.
  virtual void join(Collective* collective);
  const std::vector<Type>& input_types() const { return input_types_; }
  const std::vector<Type>& output_types() const { return output_types_; }
  const ProgramStats& stats() const { return stats_; }

 protected:
  Program(const Program&) = default;
  // Takes the types, of as many replicas one after another; counts all of the stats but kernels and planned memory.
  explicit Program(const Graph& graph, size_t replicas = 1);
  Program(std::vector<Type> inputs, std::vector<Type> outputs) : input_types_(std::move(inputs)), output_types_(std::move(outputs)) {}
  // Throws InvalidArgument naming the first input or output that does not fit.
  void check_arguments(std::span<Buffer* const> inputs, std::span<Buffer* const> outputs) const;
  ProgramStats stats_;

 private:
  std::vector<Type> input_types_, output_types_;
};

// What the programs of one model share, at whatever batch size: weights as the device wants them.
struct CompileCache {
  virtual ~CompileCache() = default;
};

// What f32 products may be rounded to on the way; sums stay f32.
enum class Precision { float32, tf32, bfloat16 };
std::string_view name(Precision precision);
Precision precision_of(std::string_view name);  // throws InvalidArgument for other words
const std::vector<std::string>& precision_names();

class Device;

struct CompileSettings {
  int threads = 0;                           // at most; 0: as many as the work is worth
  std::shared_ptr<CompileCache> cache = {};  // of the device; an empty one may be filled by compile, for the model's next program
  CompileReport* report = nullptr;           // filled when given
  Precision precision = Precision::float32;  // a device that has no other refuses
  // Where the program's states live; those that are not there yet are added with their initial values. nullptr: inside of the program. Of
  // replicas, as many one after another.
  StateBuffers* states = nullptr;
  // One program for these devices of one plugin, which a run starts on all of them at once; its all_reduce nodes meet inside. Inputs and
  // outputs are those of the first replica, then those of the second, ..., each in its device's memory. Empty: it runs where it is
  // compiled.
  std::vector<std::shared_ptr<Device>> replicas = {};
  // Where devices of other hosts have replicas too (Device::spans_hosts): the number() of all of them, in order, `replicas` among them.
  std::vector<int64_t> replica_numbers = {};
};

// For devices that compute in float32 alone, one program on one device. Throws Unsupported.
void require_plain(const CompileSettings& settings, std::string_view device);

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;         // "reference", "cpu", "cuda:1"
  virtual std::string description() const = 0;  // one line for `tutti devices`
  virtual int64_t memory_bytes() const = 0;     // in all
  // Why this node cannot run here, or nothing.
  virtual std::optional<std::string> refuses(const Graph& graph, const Node& node) const = 0;
  virtual std::unique_ptr<Buffer> allocate(const Type& type) = 0;
  virtual void to_device(std::span<const std::byte> from, Buffer& to) = 0;
  virtual void to_host(Buffer& from, std::span<std::byte> to) = 0;
  // Throws Unsupported listing every refused node, OutOfMemory (before allocating) when the plan does not fit.
  virtual std::unique_ptr<Program> compile(const Graph& graph, CompileSettings& settings) = 0;
  std::unique_ptr<Program> compile(const Graph& graph) {
    CompileSettings settings;
    return compile(graph, settings);
  }
  virtual void synchronize() = 0;  // waits for all that was begun
  virtual bool is_asynchronous() const { return false; }
  virtual bool launches_replicas() const { return false; }  // takes CompileSettings::replicas
  // Programs of one thread each, side by side on the device's threads, `threads` at most: body(piece, slot) for each piece; no two that run
  // at the same time have the same slot, which is below `threads`. Where a device has no such threads, one after another.
  virtual void side_by_side(int threads, int64_t pieces, const std::function<void(int64_t piece, int slot)>& body);
  // How many parts of a program that do not wait for each other run at the same time, each on a core of its own, given so many threads.
  virtual int parts_at_once(int /* threads */) const { return 1; }
  // Whether its programs can have replicas on devices of other processes (hosts.h), and which of all devices it is.
  virtual bool spans_hosts() const { return false; }
  virtual int64_t number() const { return 0; }
  // How fast it computes with so many threads, measured now, in about a tenth of a second; nothing where nothing is computed.
  virtual std::optional<Speed> measure(int threads);
};

// What --device and CompileOptions mean when nothing is said.
inline constexpr std::string_view default_device = "cpu";
// The best usable accelerator, else the default.
inline constexpr std::string_view automatic_device = "auto";

// The devices of this process by name, made on first use. Unknown names throw InvalidArgument with the nearest known ones.
std::shared_ptr<Device> open_device(const std::string& name);

// A name without the number of the device, "cuda" of "cuda:1"; and another device of the same kind, counted from the one that is named.
// What has one device only, the processor or a device that is not here, is itself whatever the number.
std::string kind_of_device(const std::string& name);
std::string device_after(const std::string& name, size_t count);

struct DeviceListing {
  std::string name, kind, description, found;  // found: how it was found, or why it is absent
  bool usable = false;
  int64_t memory_bytes = 0;
};
std::vector<DeviceListing> list_devices();

}  // namespace tutti
