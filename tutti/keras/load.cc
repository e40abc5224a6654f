#include "tutti/keras/load.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/base/zip.h"
#include "tutti/keras/bind.h"
#include "tutti/keras/legacy.h"

namespace tutti::keras {

namespace {

constexpr uint64_t max_config_bytes = 64 << 20;
constexpr uint64_t max_asset_bytes = 16 << 20;

std::string read_text(const ByteSource& source, uint64_t limit) {
  auto bytes = read_all(source, limit);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string member_text(const ZipReader& zip, const char* name) {
  const auto* member = zip.find(name);
  if (member == nullptr) fail<InvalidModel>("keras", "the archive has no {}: not a .keras file", name);
  if (member->size > max_config_bytes) fail<InvalidModel>("keras", "{} has {} bytes, more than {}", name, member->size, max_config_bytes);
  return read_text(*zip.open(*member), max_config_bytes);
}

// Vocabularies, the only assets that layers have.
std::map<std::string, std::string> read_assets(const ZipReader& zip) {
  std::map<std::string, std::string> out;
  uint64_t left = max_asset_bytes;
  for (const auto& member : zip.members()) {
    if (!member.name.starts_with("assets/") || !member.name.ends_with("/vocabulary.txt")) continue;
    if (member.size > left) fail<InvalidModel>("keras", "the archive's vocabularies have more than {} bytes", max_asset_bytes);
    out[member.name.substr(7)] = read_text(*zip.open(member), left);
    left -= member.size;
  }
  return out;
}

Json parse_config(const std::string& text, const char* what) {
  try {
    return Json::parse(text);
  } catch (const Error& e) {
    fail<InvalidModel>("keras", "{}: {}", what, e.what());
  }
}

int major_version(const std::string& version) { return version.starts_with("3") ? 3 : 2; }

}  // namespace

Model ModelReader::from_config(Json config, Json compile_config, std::string keras_version, FileFacts file) {
  if (!config.is_object()) fail<InvalidModel>("keras", "the config is an object; got {}", config.kind());
  Model model;
  model.compile_config_ = std::move(compile_config);
  model.keras_version_ = std::move(keras_version);
  model.file_ = std::move(file);
  model.file_.keras_major = major_version(model.keras_version_);
  model.config_ = model.file_.keras_major < 3 ? modernize(config) : std::move(config);
  auto found = resolve(model.config_);
  bool is_model = found.row->name == "Sequential" || found.row->name == "Functional" || found.row->name == "Model";
  const Json* inner = model.config_.find("config");
  if (!is_model || inner == nullptr || !inner->is_object() || !inner->has("layers"))
    fail<Unsupported>(
        "keras", "the file holds a {}, whose layers are made by code; hint: only Sequential and Functional models can be read from a file",
        found.row->name);
  model.inputs_ = model_inputs(model.config_);
  model.output_names_ = model_output_names(model.config_);
  model.target_names_ = model_target_names(model.config_);
  model.declare();
  return model;
}

Model ModelReader::read_archive(std::shared_ptr<const ByteSource> file) {
  ZipReader zip(std::move(file));
  Json metadata = parse_config(member_text(zip, "metadata.json"), "metadata.json");
  Json config = parse_config(member_text(zip, "config.json"), "config.json");
  const Json* version = metadata.is_object() ? metadata.find("keras_version") : nullptr;
  const Json* compiled = config.is_object() ? config.find("compile_config") : nullptr;
  Model model = from_config(config, compiled != nullptr ? *compiled : Json(),
                            version != nullptr && version->is_string() ? version->as_string() : "3", {.assets = read_assets(zip)});
  const auto* member = zip.find("model.weights.h5");
  if (member == nullptr) fail<InvalidModel>("keras", "the archive has no model.weights.h5");
  auto weights = std::make_shared<Hdf5File>(zip.open(*member));
  if (model.problems_.empty())
    bind_by_path(*model.variables_, *weights, model.file_.keras_major, model.problems_);  // else the variables are not all known
  model.read_optimizer_ = [weights] {
    std::vector<Tensor> out;
    for (size_t i = 0; weights->kind(fmt::format("optimizer/vars/{}", i)) == Hdf5File::Kind::dataset; ++i)
      out.push_back(weights->read(fmt::format("optimizer/vars/{}", i)));
    return out;
  };
  return model;
}

namespace {

// What .h5 files say of `compile`, in the words of .keras files.
Json as_compile_config(const Json& training) {
  if (!training.is_object()) return training;
  Json out = Json::object();
  for (const auto& [key, value] : training.members()) out.set(key == "optimizer_config" ? "optimizer" : key, value);
  return out;
}

}  // namespace

Model ModelReader::read_hdf5(std::shared_ptr<const ByteSource> file) {
  auto weights = std::make_shared<Hdf5File>(std::move(file));
  if (!weights->has_attribute("", "model_config"))
    fail<InvalidModel>("keras", "the file holds weights but no model; hint: save the whole model with model.save(...)");
  auto attribute = [&](const char* name) {
    if (!weights->has_attribute("", name)) return std::string();
    auto strings = weights->strings("", name);
    return strings.empty() ? std::string() : strings[0];
  };
  std::string training = attribute("training_config");
  Model model = from_config(parse_config(attribute("model_config"), "model_config"),
                            training.empty() ? Json() : as_compile_config(parse_config(training, "training_config")),
                            attribute("keras_version"), {.merges_lora = false});
  if (model.problems_.empty())
    bind_by_order(*model.variables_, *weights, model.file_.keras_major, model.problems_);  // else the variables are not all known
  model.read_optimizer_ = [weights] {
    std::vector<Tensor> out;
    if (weights->kind("optimizer_weights") != Hdf5File::Kind::group) return out;
    for (const auto& name : chunked_strings(*weights, "optimizer_weights", "weight_names"))
      out.push_back(weights->read("optimizer_weights/" + name));
    return out;
  };
  return model;
}

std::vector<Tensor> Model::optimizer_variables() const { return read_optimizer_ ? read_optimizer_() : std::vector<Tensor>{}; }

Model from_config(Json config, const std::string& keras_version) { return ModelReader::from_config(std::move(config), {}, keras_version); }

Model load(std::shared_ptr<const ByteSource> file) {
  std::array<std::byte, 8> magic{};
  if (file->size() < magic.size()) fail<InvalidModel>("keras", "{} bytes are not a Keras file", file->size());
  file->read(0, magic);
  static constexpr unsigned char zip_magic[] = {'P', 'K', 3, 4};
  static constexpr unsigned char hdf5_magic[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  if (std::memcmp(magic.data(), zip_magic, sizeof zip_magic) == 0) return ModelReader::read_archive(std::move(file));
  if (std::memcmp(magic.data(), hdf5_magic, sizeof hdf5_magic) == 0) return ModelReader::read_hdf5(std::move(file));
  fail<InvalidModel>("keras", "neither a .keras archive nor an HDF5 file");
}

Model load(const std::string& path) {
  namespace fs = std::filesystem;
  if (std::error_code unknown; fs::is_directory(path, unknown))
    fail<InvalidArgument>("file", "cannot open '{}': it is a directory; hint: {}", escape(path),
                          fs::exists(fs::path(path) / "model.weights.h5", unknown)
                              ? "its files in a zip are a .keras file: save_model(..., zipped=True)"
                              : "TensorFlow's SavedModel is not read, save the model as one file, model.save('model.keras')");
  auto file = open_file(path);
  try {
    return load(std::move(file));
  } catch (const Unsupported& e) {
    fail<Unsupported>(path, "{}", e.what());
  } catch (const OutOfMemory& e) {
    fail<OutOfMemory>(path, "{}", e.what());
  } catch (const InternalError&) {
    throw;
  } catch (const Error& e) {
    fail<InvalidModel>(path, "{}", e.what());
  }
}

}  // namespace tutti::keras
