// The samples of a job: inputs, targets and weights side by side.
#pragma once

#include <map>
#include <optional>

#include "tutti/keras/model.h"
#include "tutti/run/fit_array.h"
#include "tutti/run/fit_job.h"

namespace tutti {

struct FitData {
  std::vector<FitArray> x, y, w;  // by input and output of the model: [samples, ...]; w is empty, or has one an output
  int64_t samples() const { return x[0].samples(); }
  bool waits() const;  // for files
  // Rows that will be asked for soon.
  void expect(std::span<const int64_t> rows);
  // "x of sample 7 holds nan": the first of these that holds what is no finite number, or "".
  std::string broken_sample(std::span<const int64_t> rows) const;
};

struct JobData {
  FitData training;
  std::optional<FitData> validation;
  std::vector<std::string> classes;  // by number, where they have names
};

// The data of all jobs of a run. What several name is held once. All that is held takes at most so many bytes; files beyond are read while
// they are used.
class FitDataStore : public RowMemory {
 public:
  // `folder`: for what has to be written to be read while it is used; "": that of the system.
  explicit FitDataStore(int64_t memory_bytes, std::string folder = "") : left_(memory_bytes), folder_(std::move(folder)) {}
  // What a job names, split as it says; `measured` says which outputs have a loss or a metric, and no others need targets. Throws
  // InvalidArgument where files do not fit the model or each other.
  JobData load(const keras::Model& model, const FitJob& job, const std::vector<bool>& measured);

  bool hold(int64_t bytes) override;
  void give_back(int64_t bytes) override { left_ += bytes; }
  const std::string& folder() const override;

 private:
  FitData load_part(const keras::Model& model, const FitJob& job, const DataSource& x, const DataSource& y, const DataSource& weight,
                    const std::vector<bool>& measured, std::vector<std::string>& classes);
  int64_t left_;
  mutable std::string folder_;
  std::map<std::string, std::vector<FitArray>> known_;
};

// The order in which pass number `pass` over so many samples goes: by the seed, the same on every machine.
std::vector<int64_t> shuffled(int64_t samples, uint64_t seed, uint64_t pass);

}  // namespace tutti
