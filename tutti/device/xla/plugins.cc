#include "tutti/device/xla/plugins.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tutti/base/error.h"

namespace tutti::xla {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) out.push_back(entry->path());
  std::sort(out.begin(), out.end());
  return out;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_plugin(const fs::path& path) {
  std::error_code error;
  return contains(path.filename().string(), ".so") && fs::is_regular_file(path, error);
}

// site-packages: {xla,jax}_plugins/FOLDER/*.so and libtpu/libtpu.so. The last of several versions.
std::optional<fs::path> in_packages(const fs::path& packages, const Platform& platform) {
  std::vector<fs::path> folders = entries(packages / "xla_plugins"), more = entries(packages / "jax_plugins");
  folders.insert(folders.end(), more.begin(), more.end());
  folders.push_back(packages / "libtpu");
  std::optional<fs::path> found;
  for (const fs::path& folder : folders) {
    if (!contains(folder.filename().string(), platform.word)) continue;
    for (const fs::path& file : entries(folder))
      if (is_plugin(file) && contains(file.filename().string(), platform.word)) found = file;
  }
  return found;
}

// A Python environment, its site-packages, or a plain folder of plugins.
std::optional<fs::path> in_folder(const fs::path& folder, const Platform& platform) {
  for (const fs::path& python : entries(folder / "lib"))
    if (contains(python.filename().string(), "python"))
      if (auto found = in_packages(python / "site-packages", platform)) return found;
  if (auto found = in_packages(folder, platform)) return found;
  for (const fs::path& file : entries(folder))
    if (is_plugin(file) && contains(file.filename().string(), platform.word)) return file;
  return {};
}

std::optional<fs::path> in_list(std::string_view list, const Platform& platform) {
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(':'));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    if (one.empty()) continue;
    const fs::path path(one);
    if (is_plugin(path)) {
      if (contains(path.filename().string(), platform.word)) return path;
    } else if (auto found = in_folder(path, platform)) {
      return found;
    }
  }
  return {};
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

const std::vector<Platform>& platforms() {
  static const std::vector<Platform> all = {
      {"cuda", "cuda", "jax-cuda13-pjrt", "cuda"},
      {"rocm", "rocm", "jax-rocm7-pjrt", ""},
      {"tpu", "tpu", "libtpu", ""},
      {"xla:cpu", "cpu", "xla-cpu-pjrt", "xla", true},
  };
  return all;
}

const Platform* find_platform(std::string_view name) {
  const auto found = std::find_if(platforms().begin(), platforms().end(), [&](const Platform& platform) { return platform.name == name; });
  return found == platforms().end() ? nullptr : &*found;
}

std::optional<DeviceName> device_name(const std::string& name) {
  DeviceName out;
  std::string_view base = name;
  const size_t colon = name.rfind(':'), digits = colon == std::string::npos ? 0 : name.size() - colon - 1;
  if (digits > 0 && digits < 6 && name.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
    out.index = static_cast<size_t>(std::stoi(name.substr(colon + 1)));
    base = base.substr(0, colon);
  }
  if (const size_t at = name.find('@'); at != std::string::npos && find_platform(base.substr(0, at)) != nullptr) {
    out.target = name.substr(at + 1);
    base = base.substr(0, at);
  }
  out.platform = find_platform(base);
  if (out.platform == nullptr) out.path = base;
  if (out.platform == nullptr && !contains(base, "/") && !base.ends_with(".so")) return {};
  return out;
}

std::optional<Plugin> find_plugin(const Platform& platform) {
  for (const char* name : {"TUTTI_PJRT_PLUGIN_PATH", "VIRTUAL_ENV"})
    if (auto found = in_list(environment(name), platform)) return Plugin{*found, name};
  if (auto found = in_list(TUTTI_PLUGIN_ENVIRONMENTS, platform)) return Plugin{*found, "the build's plugins"};
  return {};
}

Plugin require_plugin(const Platform& platform) {
  if (auto found = find_plugin(platform)) return *found;
  fail<DeviceError>(platform.name, "no plugin in TUTTI_PJRT_PLUGIN_PATH, VIRTUAL_ENV or the build; hint: {}pip install {}",
                    platform.install.empty() ? "" : fmt::format("./x install {}, or ", platform.install), platform.wheel);
}

std::optional<std::string> missing_driver(const Platform& platform, const Plugin& plugin) {
  if (platform.name != "cuda") return {};
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // stays open: the plugin wants it next
  if (driver == nullptr) return "plugin found, no GPU visible (there is no NVIDIA driver)";
  using GetVersion = int (*)(int*);
  const auto get = reinterpret_cast<GetVersion>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;  // 1000 * major + 10 * minor
  if (get == nullptr || get(&version) != 0) return "plugin found, no GPU visible (the NVIDIA driver does not answer)";
  // The folder of a plugin ends with the CUDA version that it is for: xla_cuda13.
  const std::string folder = fs::path(plugin.path).parent_path().filename();
  const size_t word = folder.rfind("cuda");
  const int wanted = word == std::string::npos ? 0 : std::atoi(folder.c_str() + word + 4);
  if (version / 1000 >= wanted) return {};
  return fmt::format(
      "plugin found, the NVIDIA driver is too old: it is for CUDA {}.{}, the plugin for CUDA {}; hint: a newer driver, or pip install "
      "jax-cuda{}-pjrt",
      version / 1000, version % 1000 / 10, wanted, version / 1000);
}

std::string cuda_folder(const Plugin& plugin) {
  std::vector<fs::path> candidates;
  for (const fs::path& folder : entries(fs::path(plugin.path).parent_path().parent_path().parent_path() / "nvidia"))
    candidates.push_back(folder);
  if (const auto named = environment("CUDA_HOME"); !named.empty()) candidates.emplace_back(named);
  candidates.emplace_back("/usr/local/cuda");
  for (const fs::path& folder : candidates) {
    std::error_code error;
    if (fs::is_regular_file(folder / "bin" / "ptxas", error) && fs::is_directory(folder / "nvvm" / "libdevice", error)) return folder;
  }
  return "";
}

}  // namespace tutti::xla
