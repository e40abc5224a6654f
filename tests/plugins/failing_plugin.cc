// A plugin that is another one, TUTTI_REAL_PLUGIN, but for failures: after fail_runs(code), or with TUTTI_FAIL_CODE, runs end with an error
// of that code and the text "the device fell off the bus", until fail_runs(0). count_uploads() tells how many values went to the device.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "real_plugin.h"

namespace {

const PJRT_Api* real = nullptr;
std::atomic<int> code = 0;  // of the next run's error; 0: none
int token = 0;              // the address of the error that is ours
PJRT_Error* const our_error = reinterpret_cast<PJRT_Error*>(&token);

void message_of(PJRT_Error_Message_Args* args) {
  if (args->error != our_error) return real->PJRT_Error_Message(args);
  args->message = "the device fell off the bus\n=== Source Location Trace: ===\nfailing_plugin.cc:1\n";
  args->message_size = std::strlen(args->message);
}

PJRT_Error* code_of(PJRT_Error_GetCode_Args* args) {
  if (args->error != our_error) return real->PJRT_Error_GetCode(args);
  args->code = static_cast<PJRT_Error_Code>(code.load());
  return nullptr;
}

void destroy(PJRT_Error_Destroy_Args* args) {
  if (args->error != our_error) real->PJRT_Error_Destroy(args);
}

std::atomic<int> uploads = 0;

PJRT_Error* upload(PJRT_Client_BufferFromHostBuffer_Args* args) {
  ++uploads;
  return real->PJRT_Client_BufferFromHostBuffer(args);
}

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* args) { return code != 0 ? our_error : real->PJRT_LoadedExecutable_Execute(args); }

}  // namespace

extern "C" int count_uploads() { return uploads; }
extern "C" void fail_runs(int with) { code = with; }

extern "C" const PJRT_Api* GetPjrtApi() {
  static PJRT_Api changed;
  real = open_real_plugin();
  if (real == nullptr) return nullptr;
  if (const char* from_start = std::getenv("TUTTI_FAIL_CODE")) code = std::atoi(from_start);
  changed = *real;
  changed.PJRT_Error_Message = message_of;
  changed.PJRT_Error_GetCode = code_of;
  changed.PJRT_Error_Destroy = destroy;
  changed.PJRT_LoadedExecutable_Execute = execute;
  changed.PJRT_Client_BufferFromHostBuffer = upload;
  return &changed;
}
