// Where PJRT plugins lie: Python wheels put them into an environment's site-packages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::xla {

// A platform by the name that --device has for it.
struct Platform {
  std::string_view name;     // "xla:cpu", "cuda"
  std::string_view word;     // in the names of its plugins' files and folders
  std::string_view wheel;    // what pip installs
  std::string_view install;  // the word for ./x install; "" where wheels are all there is
  bool is_host = false;      // computes on the processor
};
const std::vector<Platform>& platforms();  // the best first
const Platform* find_platform(std::string_view name);

// What --device says: a platform or the path of a plugin (a "/" in it, or ".so"), and ":N" for a device of it or "@TARGET" for a device
// that is not here.
struct DeviceName {
  const Platform* platform = nullptr;
  std::string path;  // where no platform is named
  size_t index = 0;
  std::string target;
};
std::optional<DeviceName> device_name(const std::string& name);

struct Plugin {
  std::string path;
  std::string found;  // how: "TUTTI_PJRT_PLUGIN_PATH", "VIRTUAL_ENV", "the build"
};
// The first of: TUTTI_PJRT_PLUGIN_PATH (plugins, folders of them, or Python environments, separated by ":"), the environment
// VIRTUAL_ENV, and those that the build knew.
std::optional<Plugin> find_plugin(const Platform& platform);
// The same or a DeviceError that says what to install.
Plugin require_plugin(const Platform& platform);

// Why a platform's plugin could find no device, known without opening it; or nothing.
std::optional<std::string> missing_driver(const Platform& platform, const Plugin& plugin);

// The folder of NVIDIA's compiler (bin/ptxas, nvvm/libdevice) beside the plugin, in a CUDA toolkit, or "".
std::string cuda_folder(const Plugin& plugin);

}  // namespace tutti::xla
