#include <array>
#include <filesystem>

#include "tutti/base/error.h"
#include "tutti/cli/predict_input.h"
#include "tutti/cli/verb.h"
#include "tutti/data/image.h"
#include "tutti/data/tar.h"

namespace tutti::cli {

namespace {

struct GivenImages {
  std::unique_ptr<ItemSource> source;
  std::string what = "";  // "'photos' is a folder"
  bool only_one = false;
};

bool begins_as_image(const ByteSource& file) {
  std::array<std::byte, 4> bytes{};
  if (file.size() < bytes.size()) return false;
  file.read(0, bytes);
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return start.starts_with("\xff\xd8\xff") || start == "\x89PNG";
}

GivenImages images_of(const PredictSettings& settings) {
  const std::string& list = settings.items.files;
  if (!list.empty()) {
    if (!settings.input.empty())
      throw UsageError("usage", "--files and INPUT are two ways to say it; give one; hint: tutti predict --help");
    return {items_of_list(list), fmt::format("'{}' lists images", escape(list))};
  }
  if (settings.input.empty()) throw UsageError("usage", "INPUT is required, or --files LIST; hint: tutti predict --help");
  const std::string name = escape(settings.input);
  if (std::error_code ignored; std::filesystem::is_directory(settings.input, ignored))
    return {items_of_folder(settings.input), fmt::format("'{}' is a folder of images", name)};
  auto file = open_file(settings.input);
  if (is_image_name(settings.input) || begins_as_image(*file))
    return {items_of_names({settings.input}), fmt::format("'{}' is an image", name), true};
  if (is_tar(*file)) return {items_of_tar(std::move(file), settings.input), fmt::format("'{}' is an archive of images", name)};
  return {nullptr};
}

// The items that are left to do: those an earlier run finished are passed over, and must be the same.
class ItemsLeft : public ItemSource {
 public:
  ItemsLeft(ItemSource& all, Journal* journal) : all_(all), journal_(journal), skip_(journal ? journal->resumed() : 0) {}
  Next next(Item& item, std::chrono::milliseconds wait) override {
    for (;;) {
      const Next found = all_.next(item, wait);
      if (found == Next::end && skip_ > 0)
        fail<InvalidArgument>("resume", "there are {} items less than the interrupted run finished; hint: without --resume it begins anew",
                              skip_);
      if (found != Next::item || skip_ == 0) return found;
      journal_->check_next(item.name);
      --skip_;
    }
  }

 private:
  ItemSource& all_;
  Journal* journal_;
  int64_t skip_;
};

class ImageInput : public PredictInput {
 public:
  ImageInput(const ItemSettings& settings, const std::string& input, GivenImages images, const InputSpec& spec)
      : settings_(settings),
        input_(input),
        source_(std::move(images.source)),
        sampler_(spec, image_settings(settings, channels_of(settings, spec, images.what)), images.what),
        rows_{{spec.dtype, sampler_.row()}} {
    noun = "images";
    named = true;
    only_one = images.only_one;
  }
  const std::vector<Type>& rows() const override { return rows_; }
  std::optional<int64_t> samples() const override { return source_->count(); }
  std::string warning() const override {
    if (source_->count() != 0) return "";
    return fmt::format("[input] '{}' has no images: files that end in .jpg, .jpeg or .png", escape(input_));
  }
  std::unique_ptr<ItemSource> items(int64_t, Journal* journal) override { return std::make_unique<ItemsLeft>(*source_, journal); }
  void prepare(const Item& item, Slots slots) const override { sampler_.write(read_item(item, ImageLimits{}.file_bytes), slots[0]); }
  void describe(Json& out) const override {
    out.set("input", settings_.files.empty() ? input_ : "list " + settings_.files);
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{{"resize", settings_.resize},
                                                                                                {"resize-like", settings_.resize_like},
                                                                                                {"decode-like", settings_.decode_like},
                                                                                                {"size", settings_.size},
                                                                                                {"channels", settings_.channels},
                                                                                                {"scale", settings_.scale},
                                                                                                {"mean", settings_.mean},
                                                                                                {"std", settings_.deviation},
                                                                                                {"preprocess", settings_.preprocess}})
      out.set(name, value);
    out.set("fast-decode", settings_.fast_decode);
  }

 private:
  // How many the model takes, which says what the other settings may be.
  static int64_t channels_of(const ItemSettings& settings, const InputSpec& spec, const std::string& what) {
    ItemSettings plain;
    plain.size = settings.size;
    return ImageSampler(spec, image_settings(plain, 1), what).channels();
  }
  const ItemSettings settings_;
  const std::string input_;
  std::unique_ptr<ItemSource> source_;
  ImageSampler sampler_;
  std::vector<Type> rows_;
};

}  // namespace

std::unique_ptr<PredictInput> find_images(const PredictSettings& settings, const keras::AnyModel& model) {
  GivenImages images = images_of(settings);
  if (!images.source) return nullptr;
  const std::vector<InputSpec> inputs = input_specs(model);
  if (inputs.size() != 1)
    fail<InvalidArgument>("input", "the model has {} inputs, and images are one; {}; hint: an .npz has an array per input", inputs.size(),
                          images.what);
  return std::make_unique<ImageInput>(settings.items, settings.input, std::move(images), inputs[0]);
}

}  // namespace tutti::cli
