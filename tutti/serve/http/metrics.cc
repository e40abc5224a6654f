// /metrics: what Prometheus reads. https://prometheus.io/docs/instrumenting/exposition_formats
#include "tutti/serve/http/api.h"

namespace tutti::serve {

namespace {

// A family of samples: its help and type once, then a line each.
class Family {
 public:
  Family(std::string& text, std::string_view name, std::string_view type, std::string_view help) : text_(text), name_(name) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }
  template <class T>
  void add(const std::string& labels, T value, std::string_view suffix = "") {
    text_ += fmt::format("{}{}{}{}{} {}\n", name_, suffix, labels.empty() ? "" : "{", labels, labels.empty() ? "" : "}", value);
  }
  void add(const std::string& labels, const Statistics::Histogram& histogram) {
    int64_t below = 0;
    for (size_t i = 0; i < Statistics::bounds.size(); ++i) {
      below += histogram.counts[i];
      add(fmt::format("{},le=\"{}\"", labels, Statistics::bounds[i]), below, "_bucket");
    }
    add(labels + ",le=\"+Inf\"", histogram.count, "_bucket");
    add(labels, histogram.sum, "_sum");
    add(labels, histogram.count, "_count");
  }

 private:
  std::string& text_;
  std::string name_;
};

constexpr int64_t batch_bounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

void add_batches(Family& family, const std::string& labels, const std::map<int64_t, Statistics::Batch>& batches) {
  int64_t all = 0, samples = 0;
  for (const auto& [size, batch] : batches) {
    all += batch.count;
    samples += size * batch.count;
  }
  for (int64_t bound : batch_bounds) {
    int64_t below = 0;
    for (const auto& [size, batch] : batches)
      if (size <= bound) below += batch.count;
    family.add(fmt::format("{},le=\"{}\"", labels, bound), below, "_bucket");
  }
  family.add(labels + ",le=\"+Inf\"", all, "_bucket");
  family.add(labels, samples, "_sum");
  family.add(labels, all, "_count");
}

}  // namespace

std::string metrics_text(const Models& models, const Scheduler& scheduler, const NetworkCounters& counters) {
  std::string text;
  const std::vector<VersionInfo> versions = models.index();
  // Names of models have no character that would have to be escaped in a label: check_name().
  std::vector<std::string> labels;
  for (const VersionInfo& version : versions) labels.push_back(fmt::format("model=\"{}\",version=\"{}\"", version.name, version.version));
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto&& add) {
    Family family(text, name, type, help);
    for (size_t i = 0; i < versions.size(); ++i) add(family, labels[i], versions[i]);
  };
  const auto load = scheduler.load();
  Family(text, "tutti_queue_requests", "gauge", "Requests that wait").add("", load.queued);
  Family(text, "tutti_computing_requests", "gauge", "Requests that are being computed").add("", load.computing);
  Family(text, "tutti_queue_limit_requests", "gauge", "Requests that may wait at most").add("", scheduler.options().queue);
  Family(text, "tutti_draining", "gauge", "1 when the server ends").add("", load.draining ? 1 : 0);
  for (const auto& [protocol, name, of] : {std::tuple("http", "HTTP", &counters.http), std::tuple("grpc", "gRPC", &counters.grpc)}) {
    Family(text, fmt::format("tutti_{}_connections", protocol), "gauge", fmt::format("{} connections that are open", name))
        .add("", of->open.load());
    Family(text, fmt::format("tutti_{}_connections_refused_total", protocol), "counter",
           fmt::format("{} connections closed at once: there were too many", name))
        .add("", of->refused.load());
  }
  Family answers(text, "tutti_http_answers_total", "counter", "HTTP answers by class of status");
  for (size_t i = 2; i < counters.http_answers.size(); ++i) answers.add(fmt::format("code=\"{}xx\"", i), counters.http_answers[i].load());
  each("tutti_model_ready", "gauge", "1 when the version is loaded",
       [](Family& family, const std::string& label, const VersionInfo& version) {
         family.add(label, version.state == ModelState::ready ? 1 : 0);
       });
  each("tutti_requests_total", "counter", "Requests that ended, by outcome",
       [](Family& family, const std::string& label, const VersionInfo& version) {
         for (int kind = 0; kind < failure_kinds; ++kind) {
           const auto outcome = static_cast<FailureKind>(kind);
           family.add(fmt::format("{},outcome=\"{}\"", label, outcome == FailureKind::none ? "ok" : name(outcome)),
                      version.statistics.requests[static_cast<size_t>(kind)]);
         }
       });
  each("tutti_samples_total", "counter", "Samples computed",
       [](Family& family, const std::string& label, const VersionInfo& version) { family.add(label, version.statistics.samples); });
  each("tutti_batches_total", "counter", "Batches computed",
       [](Family& family, const std::string& label, const VersionInfo& version) { family.add(label, version.statistics.executions); });
  each("tutti_request_seconds", "histogram", "From a request's arrival to its answer",
       [](Family& family, const std::string& label, const VersionInfo& version) { family.add(label, version.statistics.latency); });
  each("tutti_queue_seconds", "histogram", "Of that, waiting",
       [](Family& family, const std::string& label, const VersionInfo& version) { family.add(label, version.statistics.queueing); });
  each("tutti_compute_seconds", "histogram", "Of that, the program of the batch it was in",
       [](Family& family, const std::string& label, const VersionInfo& version) { family.add(label, version.statistics.computing); });
  each("tutti_batch_samples", "histogram", "Samples of a batch", [](Family& family, const std::string& label, const VersionInfo& version) {
    add_batches(family, label, version.statistics.batches);
  });
  return text;
}

}  // namespace tutti::serve
