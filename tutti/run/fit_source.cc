#include "tutti/run/fit_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "tutti/base/error.h"
#include "tutti/data/csv_columns.h"
#include "tutti/data/format.h"
#include "tutti/data/image_folder.h"
#include "tutti/data/image_options.h"
#include "tutti/data/npz.h"
#include "tutti/keras/fit/named.h"
#include "tutti/run/fit_source_options.h"
#include "tutti/run/fit_windows.h"

namespace tutti {

namespace {

// Names of classes: a list of them, or `true` for those that are found.
std::vector<std::string> class_names(const SourceOptions& options) {
  const Json* value = options.find("classes");
  if (value == nullptr || value->is_bool()) return {};
  auto out = options.names("classes");
  if (std::set<std::string>(out.begin(), out.end()).size() != out.size() || out.empty())
    options.refuse("classes", "names each class once", *value);
  return out;
}

SourceOptions image_source(const DataSource& source) {
  return {source,
          fmt::format("the folder of images '{}'", escape(source.file)),
          {"resize", "resize_like", "decode_like", "size", "channels", "scale", "mean", "std", "preprocess", "fast_decode", "classes",
           "label_mode"}};
}

// What targets become that are neither of the loss's dtypes.
DType target_dtype(DType dtype) {
  if (dtype == DType::f64 || dtype == DType::boolean) return DType::f32;
  if (dtype == DType::i64 || dtype == DType::u64) return DType::i32;
  return dtype;
}

}  // namespace

SourceKind kind_of(const DataSource& source) {
  if (!source.arrays.empty()) return SourceKind::arrays;
  if (source.options.has("target")) return SourceKind::series;
  std::error_code error;
  if (std::filesystem::is_directory(source.file, error)) return SourceKind::images;
  const DataFormat format = format_of_input(source.file);
  return format == DataFormat::npz ? SourceKind::npz : format == DataFormat::csv ? SourceKind::csv : SourceKind::npy;
}

FitSource::FitSource(FitDataStore& store, const keras::Model& model, const FitJob& job, const DataSource& x, const DataSource& y,
                     const std::vector<bool>& measured)
    : store_(store), model_(model), job_(job), x_(x), y_(y), kind_(kind_of(x)), measured_(measured) {
  if (y_.file.empty() && y_.arrays.empty() && !y_.empty()) y_.file = x.file;
  for (const auto& input : model.inputs())
    specs_.push_back(
        {input.name, input.dtype, Ints(input.shape.begin() + std::min<std::ptrdiff_t>(1, std::ssize(input.shape)), input.shape.end())});
}

const InputSpec& FitSource::only_input(std::string_view what) const {
  if (specs_.size() != 1)
    fail<InvalidArgument>("fit", "the model has {} inputs; {} holds one; hint: an .npz has an array per input", specs_.size(), what);
  return specs_[0];
}

size_t FitSource::only_output(const std::string& file) const {
  const auto first = std::find(measured_.begin(), measured_.end(), true);
  if (measured_.size() != 1 && std::count(measured_.begin(), measured_.end(), true) != 1)
    fail<InvalidArgument>("fit", "the model has {} outputs; '{}' holds one array; hint: an .npz has an array per output", measured_.size(),
                          file);
  return measured_.size() == 1 ? 0 : static_cast<size_t>(first - measured_.begin());
}

std::vector<FitArray> FitSource::with_zeros(const std::vector<std::optional<FitArray>>& arrays, const std::string& file) const {
  const auto any = std::find_if(arrays.begin(), arrays.end(), [](const auto& array) { return array.has_value(); });
  if (any == arrays.end()) fail<InvalidArgument>("fit", "'{}' has an array for none of the model's outputs", escape(file));
  std::vector<FitArray> out;
  for (const auto& array : arrays) out.push_back(array ? *array : FitArray(Tensor(DType::f32, {(*any)->samples()})));
  return out;
}

FitArray FitSource::npy(NpyReader array, DType dtype, const Shape& row) {
  auto rows = npy_rows(std::move(array), dtype, row);
  return store_.hold(rows->type().bytes()) ? FitArray(all_rows(*rows)) : FitArray(std::move(rows));
}

FitArray FitSource::collected(RowCollector& rows) {
  auto [held, stored] = rows.finish();
  return stored != nullptr ? FitArray(std::move(stored)) : FitArray(std::move(held));
}

FitArray FitSource::csv_array(const std::string& file, const std::vector<size_t>& places, DType dtype, std::string_view hint) {
  RowCollector rows({dtype, {std::ssize(places)}}, store_);
  read_csv(file, places, dtype, hint, rows);
  return collected(rows);
}

std::vector<FitArray> FitSource::inputs() {
  const std::string name = fmt::format("'{}'", escape(x_.file));
  std::vector<FitArray> out;
  switch (kind_) {
    case SourceKind::arrays:
      if (x_.arrays.size() != specs_.size())
        fail<InvalidArgument>("fit", "the model has {} inputs; x has {} arrays", specs_.size(), x_.arrays.size());
      for (size_t i = 0; i < specs_.size(); ++i) {
        const Tensor& array = x_.arrays[i];
        const Shape row = fit_row(specs_[i], array.type(), "x");
        const Tensor shaped = array.reshaped(with_rows(array.shape()[0], row));
        out.emplace_back(shaped.dtype() == specs_[i].dtype ? shaped : shaped.converted(specs_[i].dtype));
      }
      return out;
    case SourceKind::npy: {
      const SourceOptions none(x_, name, {});
      NpyReader array(x_.file);
      const InputSpec& spec = only_input(name);
      const Shape row = fit_row(spec, array.type(), name);
      out.push_back(npy(std::move(array), spec.dtype, row));
      return out;
    }
    case SourceKind::npz: return npz_inputs();
    case SourceKind::csv: return csv_inputs();
    case SourceKind::images: out.push_back(images()); return out;
    case SourceKind::series: out.push_back(windows(false)); return out;
  }
  return out;
}

std::vector<FitArray> FitSource::npz_inputs() {
  const SourceOptions options(x_, fmt::format("'{}'", escape(x_.file)), {"arrays"});
  const NpzReader npz(x_.file);
  const auto& found = npz.names();
  const auto has = [&](const std::string& name) { return std::find(found.begin(), found.end(), name) != found.end(); };
  std::vector<std::string> inputs, chosen;
  for (const auto& spec : specs_) inputs.push_back(spec.name);
  if (const Json* arrays = options.find("arrays")) {
    for (const Json& list : lists_by_name(*arrays, inputs, "arrays")) chosen.push_back(list[0].as_string());
  } else {
    const bool by_name = std::any_of(inputs.begin(), inputs.end(), has);
    for (size_t i = 0; i < inputs.size(); ++i)
      chosen.push_back(by_name                                   ? inputs[i]
                       : has("arr_0")                            ? fmt::format("arr_{}", i)
                       : inputs.size() == 1 && has("x")          ? "x"
                       : inputs.size() == 1 && found.size() == 1 ? found[0]
                                                                 : inputs[i]);
  }
  std::vector<FitArray> out;
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (!has(chosen[i]))
      fail<InvalidArgument>("fit",
                            "no array '{}' in '{}'; it has {}{}; hint: arrays are named after the model's inputs, or x = {{ file = "
                            "\"a.npz\", arrays = ... }}",
                            escape(chosen[i], 60), escape(x_.file), list_of_names(found), did_you_mean(chosen[i], found));
    NpyReader array = npz.open(chosen[i]);
    const Shape row = fit_row(specs_[i], array.type(), fmt::format("array '{}' of '{}'", escape(chosen[i], 60), escape(x_.file)));
    out.push_back(npy(std::move(array), specs_[i].dtype, row));
  }
  return out;
}

std::vector<FitArray> FitSource::csv_inputs() {
  const SourceOptions options(x_, fmt::format("'{}'", escape(x_.file)), {"columns"});
  const CsvReader reader(x_.file);
  std::vector<FitArray> out;
  std::vector<std::vector<size_t>> places;
  if (const Json* columns = options.find("columns")) {
    std::vector<std::string> inputs;
    for (const auto& spec : specs_) inputs.push_back(spec.name);
    for (const Json& list : lists_by_name(*columns, inputs, "columns")) places.push_back(csv_places(reader, x_.file, list));
  } else {
    // All columns that are not the targets.
    std::set<size_t> taken;
    if (const Json* targets = y_.file == x_.file ? y_.options.find("columns") : nullptr)
      for (const Json& list : lists_by_name(*targets, model_.target_names(), "columns", measured_))
        if (!list.is_null())
          for (size_t place : csv_places(reader, x_.file, list)) taken.insert(place);
    only_input(fmt::format("'{}'", escape(x_.file)));
    places.emplace_back();
    for (size_t i = 0; i < static_cast<size_t>(reader.columns()); ++i)
      if (!taken.contains(i)) places[0].push_back(i);
  }
  for (size_t i = 0; i < specs_.size(); ++i) {
    const Shape row = fit_columns(specs_[i], std::ssize(places[i]), x_.file);
    out.push_back(csv_array(x_.file, places[i], specs_[i].dtype, "columns = [...] chooses those of numbers").with_row(row));
  }
  return out;
}

FitArray FitSource::images() {
  const std::string what = fmt::format("'{}' is a folder of images", escape(x_.file));
  const InputSpec& spec = only_input(what);
  const SourceOptions given = image_source(x_);
  ImageOptions options;
  options.resize = given.choice("resize", {"bilinear", "nearest", "bicubic"}, options.resize);
  options.resize_like = given.choice("resize_like", {"tf", "pil"}, options.resize_like);
  options.decode_like = given.choice("decode_like", {"tf", "pil"}, options.resize_like);
  options.channels = given.choice("channels", {"rgb", "bgr", "gray"}, "");
  options.size = given.numbers("size", "x");
  options.scale = given.numbers("scale", ",");
  options.mean = given.numbers("mean", ",");
  options.deviation = given.numbers("std", ",");
  options.preprocess = given.text("preprocess");
  options.fast_decode = given.flag("fast_decode");
  ImageSampler sampler = image_sampler(spec, options, what, "");
  std::vector<std::string> found = y_.empty() ? list_images_by_class(x_.file, classes).files : list_images(x_.file);
  if (found.empty()) fail<InvalidArgument>("fit", "'{}' has no images (.jpg, .jpeg, .png)", escape(x_.file));
  std::vector<std::string> files;
  for (int64_t i : order_of_images(std::ssize(found))) files.push_back(std::move(found[static_cast<size_t>(i)]));
  const bool keeps = store_.hold(Type{spec.dtype, with_rows(std::ssize(files), sampler.row())}.bytes());
  return FitArray(image_rows(std::move(files), std::move(sampler), spec.dtype, keeps));
}

// By class the last tenth would be of the last class: a split is of a shuffled list, as in image_dataset_from_directory.
std::vector<int64_t> FitSource::order_of_images(int64_t count) const {
  if (job_.validation_split > 0 && y_.empty()) return shuffled(count, static_cast<uint64_t>(job_.seed), ~uint64_t{0});
  std::vector<int64_t> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i);
  return out;
}

FitArray FitSource::windows(bool targets) {
  const SourceOptions given(x_, fmt::format("the series '{}'", escape(x_.file)),
                            {"target", "features", "time", "id", "lags", "horizon", "stride", "scale"});
  const InputSpec& spec = only_input(fmt::format("the series '{}'", escape(x_.file)));
  const SeriesTable table = read_series(x_.file, {given.text("target"), given.names("features"), given.text("time"), given.text("id")});
  const auto columns = static_cast<int64_t>(table.columns.features.size()) + 1;
  WindowOptions options;
  const bool flat = spec.row.size() == 1;
  const int64_t own = spec.row.empty()                                        ? -1
                      : flat && spec.row[0] > 0 && spec.row[0] % columns == 0 ? spec.row[0] / columns
                      : flat                                                  ? -1
                                                                              : spec.row[0];
  options.lags = given.whole("lags", own);
  if (options.lags < 1)
    fail<InvalidArgument>("fit", "the model takes {}, which does not say how long windows of {} columns are; hint: lags = 24",
                          to_string(spec), columns);
  options.horizon = given.whole("horizon", 1);
  options.stride = given.whole("stride", 1);
  options.scale = series_scale_of(given.text("scale", "standard"));
  options.known = 1 - job_.validation_split;
  const SeriesWindows all = series_windows(table, options);
  if (targets) return FitArray(all.y);
  const Type& type = all.x->type();
  const Shape row = flat ? Shape{options.lags * columns} : row_of(type.shape);
  return FitArray(all.x).with_row(
      fit_row(spec, {type.dtype, with_rows(type.shape[0], row)}, fmt::format("a window of '{}'", escape(x_.file))));
}

// Numbers of classes as the loss takes them.
FitArray FitSource::labels(const std::function<void(const std::function<void(int32_t)>&)>& numbers) {
  const DataSource& source = y_.empty() ? x_ : y_;
  // A list or a table by output has one entry here.
  const Json given = job_.loss.is_list() && job_.loss.size() == 1                               ? job_.loss[0]
                     : job_.loss.is_object() && job_.loss.size() == 1 && !job_.loss.has("name") ? job_.loss.members()[0].second
                                                                                                : job_.loss;
  const std::string loss = given.is_null() || given.is_list() ? "" : keras::plain_name(keras::read_named(given, "loss").name);
  const std::string own = loss.starts_with("categorical") ? "categorical" : loss.starts_with("binary") ? "binary" : "int";
  const std::string mode = SourceOptions(source, "labels",
                                         {"file", "columns", "classes", "label_mode", "resize", "resize_like", "decode_like", "size",
                                          "channels", "scale", "mean", "std", "preprocess", "fast_decode"})
                               .choice("label_mode", {"int", "categorical", "binary"}, own);
  const int64_t count = std::ssize(classes);
  if (mode == "binary" && count != 2)
    fail<InvalidArgument>("fit", "binary labels are of two classes; there are {}: {}", count, list_of_names(classes));
  const bool hot = mode == "categorical";
  RowCollector rows(mode == "int" ? Type{DType::i32, {}} : Type{DType::f32, {hot ? count : 1}}, store_);
  numbers([&](int32_t number) {
    const std::span<std::byte> row = rows.next();
    if (mode == "int") return void(std::memcpy(row.data(), &number, sizeof number));
    auto* to = reinterpret_cast<float*>(row.data());
    if (hot)
      to[number] = 1;  // the others are 0
    else
      *to = static_cast<float>(number);
  });
  return collected(rows);
}

std::vector<FitArray> FitSource::targets() {
  std::vector<FitArray> out;
  if (!y_.empty()) return by_output(y_, "targets");
  if (model_.output_names().size() != 1)
    fail<InvalidArgument>("fit", "the model has {} outputs, and there is no 'y' for them", model_.output_names().size());
  if (kind_ == SourceKind::series) {
    out.push_back(windows(true));
  } else if (kind_ == SourceKind::images) {
    if (classes.empty()) classes = class_names(image_source(x_));
    const ImageFolder folder = list_images_by_class(x_.file, classes);
    if (folder.labels.empty())
      fail<InvalidArgument>("fit", "'{}' has no folders of classes with images (.jpg, .jpeg, .png), and there is no 'y'", escape(x_.file));
    classes = folder.classes;
    out.push_back(labels([&](const auto& take) {
      for (int64_t i : order_of_images(std::ssize(folder.labels))) take(folder.labels[static_cast<size_t>(i)]);
    }));
  } else {
    fail<InvalidArgument>("fit", "there is no 'y'; images by class and series have their own");
  }
  return out;
}

std::vector<FitArray> FitSource::csv_targets(const DataSource& source) {
  const SourceOptions options(source, fmt::format("'{}'", escape(source.file)), {"columns", "classes", "label_mode"});
  const CsvReader reader(source.file);
  const auto& outputs = model_.target_names();
  std::vector<FitArray> out;
  std::vector<std::vector<size_t>> places(1);  // none of what is not measured
  if (const Json* columns = options.find("columns")) {
    places.clear();
    for (const Json& list : lists_by_name(*columns, outputs, "columns", measured_))
      places.push_back(list.is_null() ? std::vector<size_t>() : csv_places(reader, source.file, list));
  } else {
    for (size_t i = 0; i < static_cast<size_t>(reader.columns()); ++i) places[0].push_back(i);
    if (outputs.size() != 1)
      fail<InvalidArgument>("fit", "the model has {} outputs; hint: columns = {{ {} = [...], ... }}", outputs.size(), outputs[0]);
  }
  const Json* asked = options.find("classes");
  if (asked != nullptr && !(asked->is_bool() && !asked->as_bool())) {
    if (places.size() != 1 || places[0].size() != 1)
      fail<InvalidArgument>("fit", "'classes' are of one column; got {}", places.size() == 1 ? places[0].size() : places.size());
    if (classes.empty()) classes = class_names(options);
    if (classes.empty()) find_csv_classes(source.file, places[0][0], classes);
    out.push_back(labels([&](const auto& take) { read_csv_classes(source.file, places[0][0], classes, take); }));
    return out;
  }
  std::vector<std::optional<FitArray>> found(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    if (!places[i].empty()) found[i] = csv_array(source.file, places[i], DType::f32, "classes = true for names of classes");
  return with_zeros(found, source.file);
}

std::vector<FitArray> FitSource::by_output(const DataSource& source, std::string_view what, bool one_for_all) {
  const auto& names = model_.target_names();
  const std::string file = escape(source.file);
  std::vector<FitArray> out;
  const auto check = [&](const Shape& shape) {
    if (shape.rank() == 0) fail<InvalidArgument>("fit", "'{}' holds a single number, and no {} by sample", file, what);
  };
  switch (kind_of(source)) {
    case SourceKind::arrays:
      if (source.arrays.size() != names.size() && !(one_for_all && source.arrays.size() == 1))
        fail<InvalidArgument>("fit", "the model has {} outputs; there are {} arrays of {}", names.size(), source.arrays.size(), what);
      for (const Tensor& array : source.arrays) {
        check(array.shape());
        out.emplace_back(array.dtype() == target_dtype(array.dtype()) ? array : array.converted(target_dtype(array.dtype())));
      }
      if (one_for_all) out.resize(names.size(), out[0]);
      return out;
    case SourceKind::npz: {
      const SourceOptions options(source, fmt::format("'{}'", file), {"arrays"});
      const NpzReader npz(source.file);
      const auto has = [&](const std::string& name) {
        return std::find(npz.names().begin(), npz.names().end(), name) != npz.names().end();
      };
      std::vector<Json> chosen;
      if (const Json* arrays = options.find("arrays")) chosen = lists_by_name(*arrays, names, "arrays", measured_);
      std::vector<std::optional<FitArray>> found(names.size());
      for (size_t i = 0; i < names.size(); ++i) {
        std::string name = names[i];
        if (!chosen.empty() && chosen[i].is_null()) continue;
        if (!chosen.empty())
          name = chosen[i][0].as_string();
        else if (!has(name))
          name = has(model_.output_names()[i])                  ? model_.output_names()[i]
                 : names.size() == 1 && npz.names().size() == 1 ? npz.names()[0]
                 : names.size() == 1 && has("y")                ? "y"
                                                                : fmt::format("arr_{}", i);
        if (!has(name) && !measured_[i] && chosen.empty()) continue;
        if (!has(name))
          fail<InvalidArgument>("fit", "no array '{}' in '{}', for the {} of an output; it has {}",
                                escape(chosen.empty() ? names[i] : name, 60), file, what, list_of_names(npz.names()));
        NpyReader array = npz.open(name);
        check(array.type().shape);
        const Type type = array.type();
        found[i] = npy(std::move(array), target_dtype(type.dtype), row_of(type.shape));
      }
      return with_zeros(found, source.file);
    }
    case SourceKind::csv: return csv_targets(source);
    case SourceKind::npy: {
      const SourceOptions none(source, fmt::format("'{}'", file), {});
      const size_t place = one_for_all ? 0 : only_output(file);
      NpyReader array(source.file);
      check(array.type().shape);
      const Type type = array.type();
      const FitArray one = npy(std::move(array), target_dtype(type.dtype), row_of(type.shape));
      if (one_for_all) return std::vector<FitArray>(names.size(), one);
      std::vector<std::optional<FitArray>> found(names.size());
      found[place] = one;
      return with_zeros(found, source.file);
    }
    case SourceKind::images:
    case SourceKind::series: break;
  }
  fail<InvalidArgument>("fit", "'{}' cannot be the {}; hint: .npy, .npz or .csv", file, what);
}

}  // namespace tutti
