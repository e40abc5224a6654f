// The models that are served, by name and version. They load on a thread of their own: until a version is ready, and after one failed, the
// one before goes on. A request holds the version that it began on.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tutti/run/predictor.h"
#include "tutti/serve/failure.h"
#include "tutti/serve/statistics.h"

namespace tutti::serve {

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Ints shape;  // the batch first; -1 where only the data know
};

class Programs;  // of a version, by batch: programs.h

// A model that is loaded, with the programs that compute it.
class ModelVersion {
 public:
  // Compiles the program for one sample, with `warm` those of all batch sizes. Throws what loading and compiling throw.
  ModelVersion(std::string name, int64_t version, std::shared_ptr<const keras::AnyModel> model, const CompileOptions& options, bool warm,
               std::shared_ptr<StatisticsCounter> statistics);
  ~ModelVersion();
  const std::string& name() const { return name_; }
  int64_t version() const { return version_; }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  bool is_batched() const;        // else the model mixes samples, and each request is computed alone
  int64_t largest_batch() const;  // samples of a batch of several requests; one request may have more
  StatisticsCounter& statistics() const { return *statistics_; }
  Programs& programs() { return *programs_; }
  // How many samples are given; throws a bad_request that names the input and both types.
  int64_t check(const std::vector<Tensor>& given) const;

 private:
  std::string name_;
  int64_t version_;
  std::vector<TensorInfo> inputs_, outputs_;
  std::shared_ptr<StatisticsCounter> statistics_;
  std::unique_ptr<Programs> programs_;
};

enum class ModelState : uint8_t { loading, ready, failed, unloaded };
std::string_view name(ModelState state);  // "loading"

struct VersionInfo {
  std::string name;
  int64_t version = 1;
  ModelState state = ModelState::loading;
  std::string reason;                    // of a failure: the version that failed, or the reload, while the old one goes on
  std::shared_ptr<ModelVersion> loaded;  // when ready
  Statistics statistics;
};

struct ModelsOptions {
  CompileOptions compile = {.batch = 64};  // batch: the largest; device, threads, precision, arrangement
  bool warm = false;                       // readiness waits for all batch sizes
  std::string repository = {};             // DIR/NAME/N/model.keras (.h5, .toml); "": none
  int64_t versions = 1;                    // of a model of the repository, the newest so many
  std::chrono::milliseconds poll{1000};    // how often files are looked at; 0: never again
  size_t most = 1000;                      // models
};

class Models {
 public:
  explicit Models(ModelsOptions options);
  ~Models();
  Models(const Models&) = delete;
  Models& operator=(const Models&) = delete;

  // A model of the command line, version 1; loads in the background. Throws InvalidArgument for a name that is taken or is none.
  void add(const std::string& name, const std::string& path);
  // The loaded version; -1: the newest. Throws not_found, naming near names, or not_ready with the reason.
  std::shared_ptr<ModelVersion> find(std::string_view name, int64_t version = -1) const;

  // Loads it (again) from where it comes from, in the background; `done` is called once on the loader's thread, or at once, with what went
  // wrong or nothing. A name that is neither of the command line nor in the repository is not_found.
  using Done = std::function<void(const Failure&)>;
  void load(const std::string& name, Done done = {});
  // Requests under way end on it; new ones are not_found until it is loaded again.
  void unload(const std::string& name, Done done = {});
  // Everything known, by name and version; `name`: of that model alone.
  std::vector<VersionInfo> index(std::string_view name = {}) const;

  // Whether all models that were asked for are loaded (and warm): ready to serve. `why`: the first that is not.
  bool ready(std::string* why = nullptr) const;
  void wait();  // until nothing is loading

 private:
  class Store;
  std::unique_ptr<Store> store_;
};

// "NAME=FILE" or "FILE", which is served under its stem. Throws InvalidArgument for a name that is none: 1 to 128 of A-Z a-z 0-9 _ - .
std::pair<std::string, std::string> name_and_file(const std::string& argument);
void check_name(std::string_view name);

}  // namespace tutti::serve
