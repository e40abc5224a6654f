// The plugin of tests/plugins/failing_plugin.cc, as a device and as its functions; nothing where it is not built.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "tutti/device/xla/plugins.h"

#ifdef TUTTI_FAILING_PLUGIN
namespace tutti {

// A device's name.
inline std::string failing_plugin() {
  setenv("TUTTI_REAL_PLUGIN", xla::find_plugin(*xla::find_platform("xla:cpu"))->path.c_str(), 1);
  return TUTTI_FAILING_PLUGIN;
}

template <class Function>
Function* function_of_failing_plugin(const char* name) {
  return reinterpret_cast<Function*>(dlsym(dlopen(TUTTI_FAILING_PLUGIN, RTLD_NOW), name));
}

inline int count_uploads() { return function_of_failing_plugin<int()>("count_uploads")(); }
inline void fail_runs(int code) { function_of_failing_plugin<void(int)>("fail_runs")(code); }

}  // namespace tutti

#endif
