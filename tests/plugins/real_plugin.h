// The plugin behind a plugin that changes some of its calls: the one that TUTTI_REAL_PLUGIN names.
#pragma once

#include <dlfcn.h>
#include <pjrt_c_api.h>

#include <cstdlib>

inline const PJRT_Api* open_real_plugin() {
  void* library = dlopen(std::getenv("TUTTI_REAL_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"))();
}
