#include "tutti/device/xla/key_values.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>

namespace tutti::xla {

namespace {

PJRT_Error* refuse(PJRT_CallbackError* make, PJRT_Error_Code code, const std::string& why) { return (*make)(code, why.data(), why.size()); }

// Nothing may be thrown through a plugin.
template <class Args, class Work>
PJRT_Error* guarded(Args* args, Work work) {
  try {
    return work(*static_cast<const Hosts*>(args->user_arg), std::string(args->key, args->key_size));
  } catch (const std::exception& problem) {
    return refuse(args->callback_error, PJRT_Error_Code_INTERNAL, problem.what());
  }
}

template <class Args>
PJRT_Error* give(Args* args, double seconds, PJRT_Error_Code otherwise) {
  return guarded(args, [&](const Hosts& hosts, const std::string& key) -> PJRT_Error* {
    const auto found = hosts.get(key, seconds);
    if (!found) return refuse(args->callback_error, otherwise, fmt::format("no rank has put '{}' within {:.0f} s", key, seconds));
    args->value = new char[found->size() + 1];
    args->value_size = found->size();
    std::memcpy(args->value, found->data(), found->size());
    args->value_deleter_callback = [](char* own) { delete[] own; };
    return nullptr;
  });
}

PJRT_Error* get(PJRT_KeyValueGetCallback_Args* args) { return give(args, args->timeout_in_ms * 1e-3, PJRT_Error_Code_DEADLINE_EXCEEDED); }

PJRT_Error* try_get(PJRT_KeyValueTryGetCallback_Args* args) { return give(args, 0, PJRT_Error_Code_NOT_FOUND); }

PJRT_Error* put(PJRT_KeyValuePutCallback_Args* args) {
  return guarded(args, [&](const Hosts& hosts, const std::string& key) -> PJRT_Error* {
    hosts.put(key, std::string(args->value, args->value_size));
    return nullptr;
  });
}

}  // namespace

void set_key_values(PJRT_Client_Create_Args& args, const Hosts& hosts) {
  args.kv_get_callback = get;
  args.kv_put_callback = put;
  args.kv_try_get_callback = try_get;
  args.kv_get_user_arg = args.kv_put_user_arg = args.kv_try_get_user_arg = const_cast<Hosts*>(&hosts);
}

}  // namespace tutti::xla
