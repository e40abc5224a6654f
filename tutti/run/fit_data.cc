#include "tutti/run/fit_data.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>

#include "tutti/base/error.h"
#include "tutti/run/fit_source.h"

namespace tutti {

namespace {

// A counter whose values are well mixed (Steele, Lea and Flood's SplitMix64): nothing to set up, and a draw takes a nanosecond.
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // A number under `bound`, each as likely: the upper half of a product, those draws left out that would favour some (Lemire).
  uint64_t below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    Wide product = static_cast<Wide>(next()) * bound;
    while (static_cast<uint64_t>(product) < bound && static_cast<uint64_t>(product) < -bound % bound)
      product = static_cast<Wide>(next()) * bound;
    return static_cast<uint64_t>(product >> 64);
  }

 private:
  uint64_t state_;
};

void check_counts(const FitData& data, const std::string& x, const std::string& y) {
  for (const auto* list : {&data.x, &data.y, &data.w})
    for (const FitArray& array : *list)
      if (array.samples() != data.samples())
        fail<InvalidArgument>("fit", "x ('{}') has {} samples, y ('{}') or its weights {}", escape(x), data.samples(), escape(y),
                              array.samples());
  if (data.samples() == 0) fail<InvalidArgument>("fit", "'{}' has no samples", escape(x));
}

// The first samples and the rest.
std::pair<FitData, FitData> split(const FitData& data, int64_t first) {
  FitData head, tail;
  const auto cut = [&](const std::vector<FitArray>& all, std::vector<FitArray>& a, std::vector<FitArray>& b) {
    for (const FitArray& array : all) {
      a.push_back(array.part(0, first));
      b.push_back(array.part(first, array.samples() - first));
    }
  };
  cut(data.x, head.x, tail.x);
  cut(data.y, head.y, tail.y);
  cut(data.w, head.w, tail.w);
  return {std::move(head), std::move(tail)};
}

// Weights by class, of a table { 0 = 1.5, 3 = 2.0 } or a list.
std::map<int64_t, float> weights_by_class(const Json& json) {
  std::map<int64_t, float> out;
  const auto add = [&](int64_t label, const Json& weight) {
    if (!weight.is_number() || !std::isfinite(weight.as_number()))
      fail<InvalidArgument>("fit", "class_weight: weights are finite numbers; got {}", escape(weight.dump(), 60));
    out[label] = static_cast<float>(weight.as_number());
  };
  if (json.is_list()) {
    for (size_t i = 0; i < json.size(); ++i) add(static_cast<int64_t>(i), json[i]);
  } else if (json.is_object()) {
    for (const auto& [key, weight] : json.members()) {
      int64_t label = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), label);
      if (error != std::errc() || end != key.data() + key.size())
        fail<InvalidArgument>("fit", "class_weight: classes are whole numbers; got '{}'", escape(key, 40));
      add(label, weight);
    }
  } else {
    fail<InvalidArgument>("fit", "class_weight is a table of weights by class; got {}", escape(json.dump(), 60));
  }
  return out;
}

// The weight of each sample by its class: the largest of a row, or a number that is rounded.
Tensor class_weights(const Json& json, const FitArray& y) {
  const std::map<int64_t, float> weights = weights_by_class(json);
  const Type row = y.type(1);
  if (row.shape.rank() > 2) fail<InvalidArgument>("fit", "class_weight: a sample has one class; targets are {}", to_string(row.shape));
  Tensor out(DType::f32, {y.samples()}), one(row);
  for (int64_t i = 0; i < y.samples(); ++i) {
    y.copy({&i, 1}, one.bytes());
    const Tensor numbers = one.converted(DType::f32);
    const auto values = numbers.as<float>();
    const int64_t label = values.size() > 1 ? std::max_element(values.begin(), values.end()) - values.begin()
                                            : static_cast<int64_t>(std::nearbyint(std::clamp(static_cast<double>(values[0]), -1e9, 1e9)));
    const auto found = weights.find(label);
    out.as<float>()[static_cast<size_t>(i)] = found == weights.end() ? 1 : found->second;
  }
  return out;
}

}  // namespace

bool FitData::waits() const {
  for (const auto* list : {&x, &y, &w})
    if (std::any_of(list->begin(), list->end(), [](const FitArray& array) { return array.waits(); })) return true;
  return false;
}

void FitData::expect(std::span<const int64_t> rows) {
  for (auto* list : {&x, &y, &w})
    for (FitArray& array : *list) array.expect(rows);
}

std::string FitData::broken_sample(std::span<const int64_t> rows) const {
  const std::pair<const char*, const std::vector<FitArray>*> lists[] = {{"x", &x}, {"y", &y}, {"the weight", &w}};
  for (const int64_t row : rows)
    for (const auto& [what, list] : lists)
      for (const FitArray& array : *list) {
        if (!is_float(array.dtype())) continue;
        Tensor one(array.type(1));
        array.copy({&row, 1}, one.bytes());
        const Tensor numbers = one.converted(DType::f32);
        for (const float number : numbers.as<float>())
          if (!std::isfinite(number))
            return fmt::format("{} of sample {} holds {}", what, row, std::isnan(number) ? std::fabs(number) : number);
      }
  return "";
}

bool FitDataStore::hold(int64_t bytes) {
  if (bytes > left_) return false;
  left_ -= bytes;
  return true;
}

const std::string& FitDataStore::folder() const {
  if (folder_.empty()) folder_ = std::filesystem::temp_directory_path().string();
  return folder_;
}

FitData FitDataStore::load_part(const keras::Model& model, const FitJob& job, const DataSource& x, const DataSource& y,
                                const DataSource& weight, const std::vector<bool>& measured, std::vector<std::string>& classes) {
  FitSource source(*this, model, job, x, y, measured);
  source.classes = classes;
  // What the arrays depend on.
  Json inputs = Json::list(), outputs = Json::list();
  for (const auto& input : model.inputs()) inputs.push(JsonList{input.name, std::string(name(input.dtype)), to_string(input.shape)});
  for (const auto& output : model.output_names()) outputs.push(output);
  for (const bool is_measured : measured) outputs.push(is_measured);
  const SourceKind kind = kind_of(x);
  const bool whole = kind == SourceKind::images || kind == SourceKind::series;  // the split says how they are ordered or scaled
  const Json split = whole && job.validation_split > 0 ? Json(JsonList{job.validation_split, job.seed}) : Json();
  const auto known = [&](const char* what, const Json& by, const auto& read) -> std::vector<FitArray> {
    if (!x.arrays.empty() || !y.arrays.empty() || !weight.arrays.empty() || (y.empty() && kind != SourceKind::series)) return read();
    const std::string key = Json(JsonList{what, by, split}).dump();
    const auto found = known_.find(key);
    return found != known_.end() ? found->second : known_.emplace(key, read()).first->second;
  };
  FitData out;
  const bool named = y.options.has("classes");  // they are found while targets are read
  const auto targets = [&] { return source.targets(); };
  out.y = named ? targets() : known("y", JsonList{x.facts(), y.facts(), outputs}, targets);
  out.x = known("x", JsonList{x.facts(), y.facts(), inputs}, [&] { return source.inputs(); });
  classes = source.classes;
  DataSource weights = weight;
  if (weights.file.empty() && weights.arrays.empty() && !weights.empty()) weights.file = x.file;  // { columns = [...] } of the same file
  if (!weights.empty())
    for (const FitArray& array : source.by_output(weights, "weights", true)) {
      Tensor values(array.type(array.samples()));
      std::vector<int64_t> rows(static_cast<size_t>(array.samples()));
      std::iota(rows.begin(), rows.end(), 0);
      array.copy(rows, values.bytes());
      out.w.emplace_back(values.converted(DType::f32));
    }
  check_counts(out, x.file, y.empty() ? x.file : y.file);
  return out;
}

JobData FitDataStore::load(const keras::Model& model, const FitJob& job, const std::vector<bool>& measured) {
  JobData out;
  out.training = load_part(model, job, job.x, job.y, job.sample_weight, measured, out.classes);
  if (!job.validation_x.empty()) {
    out.validation = load_part(model, job, job.validation_x, job.validation_y, job.validation_sample_weight, measured, out.classes);
  } else if (job.validation_split > 0) {
    const int64_t samples = out.training.samples();
    const auto first = static_cast<int64_t>(std::floor(static_cast<double>(samples) * (1 - job.validation_split)));
    if (first == 0 || first == samples)
      fail<InvalidArgument>("fit", "a validation_split of {} leaves {} of {} samples to train by", job.validation_split, first, samples);
    auto [head, tail] = split(out.training, first);
    out.training = std::move(head);
    out.validation = std::move(tail);
  }
  if (!job.class_weight.is_null()) {
    if (out.training.y.size() != 1)
      fail<InvalidArgument>("fit", "class_weight is for a model of one output; this one has {}", out.training.y.size());
    if (!out.training.w.empty()) fail<InvalidArgument>("fit", "a job has class_weight or sample_weight; hint: one of them");
    out.training.w.emplace_back(class_weights(job.class_weight, out.training.y[0]));
  }
  return out;
}

std::vector<int64_t> shuffled(int64_t samples, uint64_t seed, uint64_t pass) {
  std::vector<int64_t> order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), 0);
  SplitMix random(SplitMix(seed).next() ^ SplitMix(~pass).next());
  for (uint64_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);  // Fisher and Yates
  return order;
}

}  // namespace tutti
