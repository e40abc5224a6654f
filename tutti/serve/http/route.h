// Where a request goes: the paths of the Open Inference Protocol, of TF Serving, and our own.
#pragma once

#include <string>
#include <string_view>

namespace tutti::serve {

enum class Endpoint {
  none,           // no such path
  page,           // /
  metrics,        // /metrics
  server,         // /v2
  live,           // /v2/health/live
  ready,          // /v2/health/ready
  index,          // /v2/repository/index
  load,           // /v2/repository/models/NAME/load
  unload,         // /v2/repository/models/NAME/unload
  statistics,     // /v2/models/stats, /v2/models/NAME[/versions/V]/stats
  metadata,       // /v2/models/NAME[/versions/V]
  config,         // .../config
  model_ready,    // .../ready
  infer,          // .../infer
  shared_memory,  // /v2/systemsharedmemory/..., /v2/cudasharedmemory/...
  tf_status,      // /v1/models/NAME[/versions/V]
  tf_metadata,    // /v1/models/NAME[/versions/V]/metadata
  tf_predict,     // /v1/models/NAME[/versions/V]:predict
  tf_other,       // /v1/models/NAME[/versions/V]:classify, :regress
};

struct Route {
  Endpoint endpoint = Endpoint::none;
  std::string model, version;  // "": none given
  std::string_view methods;    // that it answers: "GET", "POST"
};

// Of a request's target, query and all: any bytes. What does not decode, or has a segment of more than 256 bytes, is none.
Route route_of(std::string_view target);

}  // namespace tutti::serve
