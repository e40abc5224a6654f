#include "tutti/data/image_folder.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>

#include "tutti/base/error.h"
#include "tutti/data/image.h"

namespace tutti {

namespace {

class ImageRows : public RowSource {
 public:
  ImageRows(std::vector<std::string> files, ImageSampler sampler, DType dtype, bool keeps)
      : RowSource({dtype, with_rows(std::ssize(files), sampler.row())}), files_(std::move(files)), sampler_(std::move(sampler)) {
    if (!keeps) return;
    kept_ = Tensor(type_);
    states_ = std::vector<std::atomic<char>>(files_.size());
  }

  void read(std::span<const int64_t> rows, std::span<std::byte> to) const override {
    const size_t bytes = row_bytes();
    for (size_t i = 0; i < rows.size(); ++i) read_one(static_cast<size_t>(rows[i]), to.subspan(i * bytes, bytes));
  }

 private:
  enum : char { unknown, being_kept, kept };

  void read_one(size_t row, std::span<std::byte> to) const {
    const bool keeps = !states_.empty();
    const std::span<std::byte> place = keeps ? kept_.bytes().subspan(row * to.size(), to.size()) : std::span<std::byte>();
    if (keeps && states_[row].load(std::memory_order_acquire) == kept) {
      std::ranges::copy(place, to.begin());
      return;
    }
    try {
      sampler_.write(read_item({.name = files_[row], .file = files_[row]}, ImageLimits{}.file_bytes), to);
    } catch (const Error& error) {
      fail<InvalidArgument>("fit", "the image '{}' cannot be read: {}", escape(files_[row]), error.what());
    }
    char before = unknown;
    if (!keeps || !states_[row].compare_exchange_strong(before, being_kept)) return;
    std::ranges::copy(to, place.begin());
    states_[row].store(kept, std::memory_order_release);
  }

  std::vector<std::string> files_;
  ImageSampler sampler_;
  mutable Tensor kept_;
  mutable std::vector<std::atomic<char>> states_;  // by row
};

// The images of a class in Keras's order: those of a folder before those of the folders in it. What Keras would read and this does not is
// refused: left out, the model would learn something else.
void list_class_into(std::vector<std::string>& files, const std::string& folder) {
  namespace fs = std::filesystem;
  const auto before = std::ssize(files);
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().native();
    std::error_code broken;
    if (at->is_directory(broken)) continue;
    if (is_image_name(name)) files.push_back(name);
    std::string suffix = at->path().extension().native();
    for (char& letter : suffix) letter |= 0x20;
    if (suffix == ".bmp" || suffix == ".gif")
      fail<Unsupported>("fit", "'{}' is in a folder of a class; images are read from .jpg, .jpeg and .png", escape(name));
  }
  if (error) fail<InvalidArgument>("input", "cannot read the folder '{}': {}", escape(folder), error.message());
  std::sort(files.begin() + before, files.end(), [](const std::string& a, const std::string& b) {
    const auto split = [](std::string_view path) { return std::pair(path.substr(0, path.rfind('/')), path.substr(path.rfind('/') + 1)); };
    return split(a) < split(b);
  });
}

// What lies in a folder itself: folders by name, hidden ones left out, and whether there are images.
struct FolderContent {
  std::set<std::string> folders;
  bool has_images = false;
};

FolderContent content_of(const std::string& folder) {
  FolderContent out;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().native();
    std::error_code broken;  // a link to nothing is no folder
    if (!at->is_directory(broken))
      out.has_images = out.has_images || is_image_name(name);
    else if (!name.starts_with('.'))
      out.folders.insert(name);
  }
  if (error) fail<InvalidArgument>("input", "cannot read the folder '{}': {}", escape(folder), error.message());
  return out;
}

}  // namespace

std::vector<std::string> list_images(const std::string& folder) {
  std::vector<std::string> out;
  const auto items = items_of_folder(folder);
  for (Item item; items->next(item, std::chrono::milliseconds(0)) == ItemSource::Next::item;) out.push_back(item.file);
  return out;
}

ImageFolder list_images_by_class(const std::string& folder, const std::vector<std::string>& known) {
  const FolderContent content = content_of(folder);
  ImageFolder out;
  out.classes = known;
  if (known.empty()) out.classes.assign(content.folders.begin(), content.folders.end());
  for (const std::string& name : content.folders) {
    const size_t before = out.files.size();
    list_class_into(out.files, (std::filesystem::path(folder) / name).native());
    const auto at = std::find(out.classes.begin(), out.classes.end(), name);
    if (at == out.classes.end() && out.files.size() > before)
      fail<InvalidArgument>("fit", "'{}' has a folder '{}', which is none of the {} classes{}", escape(folder), escape(name, 60),
                            out.classes.size(), did_you_mean(name, out.classes));
    out.labels.resize(out.files.size(), static_cast<int32_t>(at - out.classes.begin()));
  }
  if (content.has_images && !out.files.empty())
    fail<InvalidArgument>("fit", "'{}' has images beside the folders of classes; hint: a folder a class, and nothing else", escape(folder));
  return out;
}

std::shared_ptr<const RowSource> image_rows(std::vector<std::string> files, ImageSampler sampler, DType dtype, bool keeps) {
  return std::make_shared<ImageRows>(std::move(files), std::move(sampler), dtype, keeps);
}

}  // namespace tutti
