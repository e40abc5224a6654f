#include "tutti/run/fit_job.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tutti/base/error.h"
#include "tutti/base/toml.h"

namespace tutti {

namespace {

namespace fs = std::filesystem;

constexpr int64_t most_whole = 1'000'000'000;
constexpr size_t most_jobs = 1'000'000;

// All that data of any kind may be told; run/fit_source.h knows which is for what.
const std::vector<std::string> source_options = {"file",   "folder",      "columns",     "arrays",      "classes", "label_mode",
                                                 "resize", "resize_like", "decode_like", "size",        "scale",   "mean",
                                                 "std",    "channels",    "preprocess",  "fast_decode", "target",  "features",
                                                 "time",   "id",          "lags",        "horizon",     "stride"};

// Reads one table of a job file; knows every key.
class JobReader {
 public:
  JobReader(std::string where, std::string folder) : where_(std::move(where)), folder_(std::move(folder)) {}

  void read(const Json& table, FitJob& job) {
    for (const auto& [key, value] : table.members()) {
      const auto found = std::find_if(std::begin(keys), std::end(keys), [&key = key](const Key& k) { return k.name == key; });
      if (found == std::end(keys)) refuse_key(key);
      (this->*found->read)(value, key, job);
    }
  }

 private:
  using Read = void (JobReader::*)(const Json&, const std::string&, FitJob&);
  struct Key {
    std::string_view name;
    Read read;
  };

  template <std::string FitJob::*member>
  void text(const Json& value, const std::string& key, FitJob& job) {
    if (!value.is_string()) refuse(key, "is text", value);
    job.*member = value.as_string();
  }
  template <std::string FitJob::*member>
  void path(const Json& value, const std::string& key, FitJob& job) {
    text<member>(value, key, job);
    if (!(job.*member).empty()) job.*member = (fs::path(folder_) / (job.*member)).string();
  }
  template <DataSource FitJob::*member>
  void data(const Json& value, const std::string& key, FitJob& job) {
    DataSource& out = job.*member;
    out = {};
    if (value.is_string()) {
      out.file = value.as_string();
    } else {
      if (!value.is_object() || value.size() == 0) refuse(key, "is a path, or a table with one", value);
      for (const auto& [option, content] : value.members()) {
        if (std::find(source_options.begin(), source_options.end(), option) == source_options.end())
          fail<InvalidArgument>("fit", "{}: '{}' has no option '{}'{}", where_, key, escape(option, 60),
                                did_you_mean(option, source_options));
        if (option != "file" && option != "folder") {
          out.options.set(option, content);
          continue;
        }
        if (!content.is_string() || content.size() == 0 || !out.file.empty()) refuse(key, "names one 'file' or 'folder'", value);
        out.file = content.as_string();
      }
    }
    if (!out.file.empty()) out.file = (fs::path(folder_) / out.file).string();
  }
  template <int64_t FitJob::*member, int64_t least, int64_t largest>
  void whole(const Json& value, const std::string& key, FitJob& job) {
    if (!value.is_int() || value.as_int() < least || value.as_int() > largest)
      refuse(key, fmt::format("is a whole number between {} and {}", least, largest), value);
    job.*member = value.as_int();
  }
  template <Json FitJob::*member>
  void any(const Json& value, const std::string&, FitJob& job) {
    job.*member = value;
  }
  void flag(const Json& value, const std::string& key, FitJob& job) {
    if (!value.is_bool()) refuse(key, "is true or false", value);
    job.shuffle = value.as_bool();
  }
  void split(const Json& value, const std::string& key, FitJob& job) {
    if (!value.is_number() || !(value.as_number() >= 0 && value.as_number() < 1)) refuse(key, "is a share from 0 to less than 1", value);
    job.validation_split = value.as_number();
  }
  void extents(const Json& value, const std::string& key, FitJob& job) {
    job.input.clear();
    const auto add = [&](const Json& item) {
      if (!item.is_int() || item.as_int() < 1 || item.as_int() > most_whole) refuse(key, "is a list of extents", value);
      job.input.push_back(item.as_int());
    };
    if (!value.is_list()) return add(value);
    for (const Json& item : value.items()) add(item);
  }

  [[noreturn]] void refuse(const std::string& key, std::string_view rule, const Json& value) const {
    fail<InvalidArgument>("fit", "{}: '{}' {}; got {}", where_, key, rule, escape(value.dump(), 60));
  }
  [[noreturn]] void refuse_key(const std::string& key) const {
    std::vector<std::string> known;
    for (const Key& k : keys) known.emplace_back(k.name);
    const std::string near = did_you_mean(key, known);
    const bool is_rate = near.empty() && (key == "learning_rate" || !did_you_mean(key, {"learning_rate"}).empty());
    fail<InvalidArgument>("fit", "{}: there is no key '{}'{}", where_, escape(key),
                          is_rate ? "; hint: optimizer = { name = \"adam\", learning_rate = 0.001 }" : near);
  }

  static constexpr int64_t any_seed = int64_t{1} << 62;
  static const Key keys[27];
  std::string where_, folder_;
};

const JobReader::Key JobReader::keys[27] = {
    {"name", &JobReader::text<&FitJob::name>},
    {"model", &JobReader::path<&FitJob::model>},
    {"build", &JobReader::text<&FitJob::build>},
    {"input", &JobReader::extents},
    {"x", &JobReader::data<&FitJob::x>},
    {"y", &JobReader::data<&FitJob::y>},
    {"sample_weight", &JobReader::data<&FitJob::sample_weight>},
    {"validation_x", &JobReader::data<&FitJob::validation_x>},
    {"validation_y", &JobReader::data<&FitJob::validation_y>},
    {"validation_sample_weight", &JobReader::data<&FitJob::validation_sample_weight>},
    {"validation_split", &JobReader::split},
    {"loss", &JobReader::any<&FitJob::loss>},
    {"loss_weights", &JobReader::any<&FitJob::loss_weights>},
    {"optimizer", &JobReader::any<&FitJob::optimizer>},
    {"schedule", &JobReader::any<&FitJob::schedule>},
    {"metrics", &JobReader::any<&FitJob::metrics>},
    {"weighted_metrics", &JobReader::any<&FitJob::weighted_metrics>},
    {"class_weight", &JobReader::any<&FitJob::class_weight>},
    {"early_stopping", &JobReader::any<&FitJob::early_stopping>},
    {"reduce_on_plateau", &JobReader::any<&FitJob::reduce_on_plateau>},
    {"reduce_lr_on_plateau", &JobReader::any<&FitJob::reduce_on_plateau>},  // the snake_case of Keras's class
    {"epochs", &JobReader::whole<&FitJob::epochs, 1, most_whole>},
    {"batch_size", &JobReader::whole<&FitJob::batch_size, 1, most_whole>},
    {"steps_per_epoch", &JobReader::whole<&FitJob::steps_per_epoch, 1, most_whole>},
    {"gradient_accumulation_steps", &JobReader::whole<&FitJob::gradient_accumulation_steps, 1, most_whole>},
    {"shuffle", &JobReader::flag},
    {"seed", &JobReader::whole<&FitJob::seed, -any_seed, any_seed>},
};

// A job's results lie in a folder of its name.
void check_name(const FitJob& job, std::string_view where) {
  // Files of all jobs lie beside the folders.
  const bool plain = !job.name.empty() && job.name != "." && job.name != ".." && job.name != "report.html" && job.name != "plan.json" &&
                     job.name.size() <= 200 && job.name.find_first_of("/\\") == std::string::npos &&
                     std::none_of(job.name.begin(), job.name.end(), [](char c) { return static_cast<unsigned char>(c) < 32; });
  if (!plain) fail<InvalidArgument>("fit", "{}: 'name' is that of a folder; got '{}'", where, escape(job.name, 60));
}

void check(const FitJob& job) {
  const std::string where = fmt::format("job '{}'", job.name);
  if (job.model.empty() == job.build.empty()) fail<InvalidArgument>("fit", "{}: has either 'model' or 'build'", where);
  if (!job.build.empty() && job.input.empty()) fail<InvalidArgument>("fit", "{}: 'build' needs 'input', the extents of one sample", where);
  // Images by class and series have targets of their own.
  const auto has_targets = [](const DataSource& x) {
    std::error_code error;
    return x.options.has("target") || fs::is_directory(x.file, error);
  };
  if (job.x.file.empty() && job.x.arrays.empty()) fail<InvalidArgument>("fit", "{}: has no 'x'", where);
  // What is not there might have been a folder of images.
  const auto require_there = [&](const DataSource& x, std::string_view key) {
    std::error_code error;
    if (!x.file.empty() && !fs::exists(x.file, error))
      fail<InvalidArgument>("fit", "{}: '{}' is '{}', where there is no file and no folder", where, key, escape(x.file));
  };
  if (job.y.empty() && !has_targets(job.x)) {
    require_there(job.x, "x");
    fail<InvalidArgument>("fit", "{}: has no 'y'", where);
  }
  if (job.validation_x.empty() != job.validation_y.empty() && !(job.validation_y.empty() && has_targets(job.validation_x))) {
    require_there(job.validation_x, "validation_x");
    fail<InvalidArgument>("fit", "{}: 'validation_x' and 'validation_y' come together", where);
  }
  if (!job.validation_sample_weight.empty() && job.validation_x.empty())
    fail<InvalidArgument>(
        "fit",
        "{}: has 'validation_sample_weight' without 'validation_x'; hint: of a validation_split the weights are those of sample_weight",
        where);
  if (!job.validation_x.empty() && job.validation_split > 0)
    fail<InvalidArgument>("fit", "{}: has 'validation_x' and 'validation_split'; hint: one of them", where);
}

// Files that fit a pattern, relative to the job file, by name; none where there is no such folder.
std::vector<Json> matching(const std::string& pattern, const std::string& folder) {
  const fs::path path(pattern);
  std::vector<std::string> found;
  std::error_code error;
  const fs::path where = fs::path(folder) / path.parent_path();
  for (fs::directory_iterator it(where.empty() ? fs::path(".") : where, error), end; !error && it != end; it.increment(error))
    if (fnmatch(path.filename().c_str(), it->path().filename().c_str(), FNM_PERIOD) == 0)
      found.push_back((path.parent_path() / it->path().filename()).string());
  if (error) found.clear();
  std::sort(found.begin(), found.end());
  return {found.begin(), found.end()};
}

bool is_data(std::string_view key) {
  key = key.substr(0, key.find('.'));  // "x.file" too
  return key == "x" || key == "y" || key == "sample_weight" || key == "validation_x" || key == "validation_y" ||
         key == "validation_sample_weight";
}

// Sets "optimizer.learning_rate" within the tables of a job; a name or a path alone becomes a table on the way.
void set_within(Json& table, std::string_view key, const Json& value) {
  const size_t dot = key.find('.');
  if (dot == std::string_view::npos) return table.set(std::string(key), value);
  const std::string first(key.substr(0, dot));
  const Json* old = table.find(first);
  Json inner = old == nullptr ? Json::object() : old->is_string() ? Json(JsonMembers{{is_data(first) ? "file" : "name", *old}}) : *old;
  if (!inner.is_object()) fail<InvalidArgument>("fit", "'{}' is no table to vary '{}' in", first, escape(key, 60));
  set_within(inner, key.substr(dot + 1), value);
  table.set(first, inner);
}

// What varies together.
struct SweepAxis {
  std::vector<std::pair<std::string, std::vector<Json>>> keys;
  size_t size;
};

// Data files vary together, everything else apart.
std::vector<SweepAxis> sweep_axes(const std::string& name, const Json& vary, const std::string& folder) {
  std::vector<SweepAxis> axes;
  size_t data = vary.size();  // which of them has the data
  for (const auto& [key, value] : vary.members()) {
    if (key == "name") fail<InvalidArgument>("fit", "sweep '{}': its jobs have names of their own, {}_0 and on", name, name);
    std::vector<Json> values = value.is_list() ? value.items() : std::vector<Json>{value};
    if (value.is_string() && value.as_string().find_first_of("*?[") != std::string::npos) values = matching(value.as_string(), folder);
    if (values.empty() && value.is_string())
      fail<InvalidArgument>("fit", "sweep '{}': no file fits '{}' of '{}'", name, escape(value.as_string(), 100), escape(key, 60));
    if (values.empty()) fail<InvalidArgument>("fit", "sweep '{}': '{}' has nothing to vary by", name, escape(key, 60));
    const size_t size = values.size();
    if (!is_data(key) || data == vary.size()) {
      if (is_data(key)) data = axes.size();
      axes.push_back({{{key, std::move(values)}}, size});
      continue;
    }
    if (size != axes[data].size)
      fail<InvalidArgument>("fit", "sweep '{}': data files vary together; '{}' has {}, '{}' {}", name, axes[data].keys[0].first,
                            axes[data].size, key, size);
    axes[data].keys.push_back({key, std::move(values)});
  }
  return axes;
}

// The product of what varies: jobs NAME_0, NAME_1, ..., the last key fastest.
void expand_sweep(const Json& sweep, const Json& defaults, const std::string& folder, std::vector<Json>& out) {
  const Json* vary = sweep.is_object() ? sweep.find("vary") : nullptr;
  const Json* name = sweep.is_object() ? sweep.find("name") : nullptr;
  if (vary == nullptr || !vary->is_object() || vary->size() == 0 || name == nullptr || !name->is_string())
    fail<InvalidArgument>("fit", "a [[sweep]] is a job with a name and a table 'vary' of lists; hint: vary = {{ seed = [1, 2, 3] }}");
  const std::vector<SweepAxis> axes = sweep_axes(escape(name->as_string(), 60), *vary, folder);
  size_t count = 1;
  for (const SweepAxis& axis : axes) {
    count *= axis.size;
    if (count > most_jobs)
      fail<InvalidArgument>("fit", "a file has at most {} jobs; sweep '{}' has more", most_jobs, escape(name->as_string(), 60));
  }
  Json common = Json::object();
  for (const auto& [key, value] : vary->members())  // "optimizer.learning_rate" varies in the optimizer that all jobs have
    if (const Json* table = defaults.find(key.substr(0, key.find('.')))) common.set(key.substr(0, key.find('.')), *table);
  for (const auto& [key, value] : sweep.members())
    if (key != "vary") common.set(key, value);
  for (size_t i = 0; i < count; ++i) {
    Json job = common;
    size_t rest = i;
    for (size_t a = axes.size(); a-- > 0; rest /= axes[a].size)
      for (const auto& [key, values] : axes[a].keys) set_within(job, key, values[rest % axes[a].size]);
    job.set("name", fmt::format("{}_{}", name->as_string(), i));
    out.push_back(std::move(job));
  }
}

}  // namespace

Json DataSource::facts() const {
  if (arrays.empty() && options.size() == 0) return file;
  Json types = Json::list();
  for (const Tensor& array : arrays) types.push(to_string(array.type()));
  return JsonList{file, options, types};
}

Json FitJob::facts() const {
  Json extents = Json::list();
  for (int64_t extent : input) extents.push(extent);
  Json out = JsonMembers{{"name", name},
                         {"model", model},
                         {"build", build},
                         {"input", extents},
                         {"architecture", architecture},
                         {"data", JsonList{x.facts(), y.facts(), sample_weight.facts(), validation_x.facts(), validation_y.facts()}},
                         {"validation_split", validation_split},
                         {"compile", JsonList{loss, loss_weights, optimizer, schedule, metrics, weighted_metrics, class_weight}},
                         {"callbacks", JsonList{early_stopping, reduce_on_plateau}},
                         {"counts", JsonList{epochs, batch_size, steps_per_epoch, gradient_accumulation_steps, seed}},
                         {"shuffle", shuffle}};
  if (!validation_sample_weight.empty()) out.set("validation_weights", validation_sample_weight.facts());
  if (rate_factor != 1) out.set("rate", JsonList{rate_factor, warmup_steps});
  return out;
}

std::vector<FitJob> read_jobs(const std::string& path) {
  const Json file = read_toml(path);
  const std::string folder = fs::path(path).parent_path().string();
  for (const auto& [key, value] : file.members())
    if (key != "defaults" && key != "job" && key != "sweep")
      fail<InvalidArgument>("fit", "a job file has [defaults], [[job]] and [[sweep]]; got '{}'{}", escape(key),
                            did_you_mean(key, {"defaults", "job", "sweep"}));
  FitJob defaults;
  const Json* of_all = file.find("defaults");
  if (of_all != nullptr) {
    if (!of_all->is_object()) fail<InvalidArgument>("fit", "[defaults] is a table");
    JobReader("[defaults]", folder).read(*of_all, defaults);
  }
  for (const char* key : {"job", "sweep"})
    if (const Json* found = file.find(key); found != nullptr && !found->is_list())
      fail<InvalidArgument>("fit", "'{}' is a list of tables; hint: [[{}]]", key, key);
  std::vector<Json> tables;
  if (const Json* jobs = file.find("job"); jobs != nullptr) tables = jobs->items();
  if (const Json* sweeps = file.find("sweep"); sweeps != nullptr)
    for (const Json& table : sweeps->items()) expand_sweep(table, of_all != nullptr ? *of_all : Json::object(), folder, tables);
  if (tables.empty()) fail<InvalidArgument>("fit", "the file has no [[job]]");
  if (tables.size() > most_jobs) fail<InvalidArgument>("fit", "a file has at most {} jobs; got {}", most_jobs, tables.size());
  std::vector<FitJob> out;
  std::set<std::string> names;
  for (const Json& table : tables) {
    const Json* name = table.is_object() ? table.find("name") : nullptr;
    const std::string where = name != nullptr && name->is_string() ? fmt::format("job '{}'", escape(name->as_string(), 60))
                                                                   : fmt::format("job number {}", out.size() + 1);
    if (!table.is_object()) fail<InvalidArgument>("fit", "{} is a table; hint: [[job]]", where);
    FitJob job = defaults;
    JobReader(where, folder).read(table, job);
    check_name(job, where);
    check(job);
    if (!names.insert(job.name).second) fail<InvalidArgument>("fit", "two jobs have the name '{}'", escape(job.name, 60));
    out.push_back(std::move(job));
  }
  return out;
}

bool is_job_file(const std::string& path) {
  if (!path.ends_with(".toml")) return false;
  const Json file = read_toml(path);
  return file.find("job") != nullptr || file.find("sweep") != nullptr;
}

}  // namespace tutti
