#include "tutti/data/items.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "tutti/base/error.h"
#include "tutti/data/image.h"
#include "tutti/data/tar.h"

namespace tutti {

namespace {

class NamedItems : public ItemSource {
 public:
  explicit NamedItems(std::vector<std::string> names) : names_(std::move(names)) {}
  Next next(Item& item, std::chrono::milliseconds) override {
    if (at_ == names_.size()) return Next::end;
    item = {.name = names_[at_], .file = names_[at_]};
    ++at_;
    return Next::item;
  }
  std::optional<int64_t> count() const override { return static_cast<int64_t>(names_.size()); }

 private:
  std::vector<std::string> names_;
  size_t at_ = 0;
};

// A million names stand behind each other in one text, because a string each would take several times the memory.
class FolderItems : public ItemSource {
 public:
  explicit FolderItems(const std::string& folder) : folder_(folder) {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::recursive_directory_iterator at(folder, error), end;
    std::error_code broken;  // what leads nowhere is no folder, and an image that fails
    for (; !error && at != end; at.increment(error))
      if (is_image_name(at->path().native()) && !at->is_directory(broken)) {
        const std::string name = at->path().lexically_relative(folder).native();
        begins_.push_back(names_.size());
        names_.append(name).push_back('\0');
      }
    if (error) fail<InvalidArgument>("input", "cannot read the folder '{}': {}", escape(folder), error.message());
    std::sort(begins_.begin(), begins_.end(),
              [&](size_t a, size_t b) { return std::string_view(names_.data() + a) < std::string_view(names_.data() + b); });
  }
  Next next(Item& item, std::chrono::milliseconds) override {
    if (at_ == begins_.size()) return Next::end;
    item = {.name = names_.data() + begins_[at_], .file = ""};
    item.file = (std::filesystem::path(folder_) / item.name).native();
    ++at_;
    return Next::item;
  }
  std::optional<int64_t> count() const override { return static_cast<int64_t>(begins_.size()); }

 private:
  std::string folder_, names_;
  std::vector<size_t> begins_;
  size_t at_ = 0;
};

class ListItems : public ItemSource {
 public:
  explicit ListItems(const std::string& file)
      : file_(file), descriptor_(file == "-" ? ::dup(STDIN_FILENO) : ::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) refuse("open");
  }
  ~ListItems() override { ::close(descriptor_); }
  ListItems(const ListItems&) = delete;
  ListItems& operator=(const ListItems&) = delete;

  Next next(Item& item, std::chrono::milliseconds wait) override {
    for (;;) {
      const size_t end = text_.find('\n', at_);
      if (end == text_.npos && !ended_) {
        if (!more(wait)) return Next::none_yet;
        continue;
      }
      std::string line = text_.substr(at_, end == text_.npos ? end : end - at_);
      at_ = end == text_.npos ? text_.size() : end + 1;
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty()) {
        item = {.name = line, .file = line};
        return Next::item;
      }
      if (end == text_.npos) return Next::end;
    }
  }

 private:
  static constexpr size_t chunk = 1 << 16, longest_line = 1 << 16;
  bool more(std::chrono::milliseconds wait) {
    text_.erase(0, at_);
    at_ = 0;
    if (text_.size() > longest_line) fail<InvalidArgument>("input", "'{}' has a line of more than {} bytes", escape(file_), longest_line);
    pollfd waiting{descriptor_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(wait.count()));
    if (ready == 0 || (ready < 0 && errno == EINTR)) return false;
    const size_t held = text_.size();
    text_.resize(held + chunk);
    const ssize_t count = ::read(descriptor_, text_.data() + held, chunk);
    if (count < 0 && errno != EINTR && errno != EAGAIN) refuse("read");
    text_.resize(held + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    ended_ = count == 0;
    return true;
  }
  [[noreturn]] void refuse(std::string_view verb) const {
    fail<InvalidArgument>("input", "cannot {} '{}': {}", verb, escape(file_), std::error_code(errno, std::generic_category()).message());
  }
  std::string file_;
  int descriptor_;
  std::string text_;
  size_t at_ = 0;
  bool ended_ = false;
};

class TarItems : public ItemSource {
 public:
  TarItems(std::shared_ptr<const ByteSource> archive, const std::string& file) : archive_(archive), tar_(std::move(archive), file) {}
  Next next(Item& item, std::chrono::milliseconds) override {
    for (auto member = tar_.next(); member; member = tar_.next())
      if (is_image_name(member->name)) {
        item = {.name = std::move(member->name),
                .archive = archive_,
                .offset = member->offset,
                .size = member->size,
                .link = std::move(member->link)};
        return Next::item;
      }
    return Next::end;
  }

 private:
  std::shared_ptr<const ByteSource> archive_;
  TarReader tar_;
};

}  // namespace

std::vector<std::byte> read_item(const Item& item, uint64_t limit) {
  if (!item.link.empty())
    fail<InvalidArgument>("tar", "is a link to '{}', and links in an archive are not followed; hint: tar --dereference --hard-dereference",
                          escape(item.link, 60));
  if (item.archive) return read_all(*part_of(item.archive, item.offset, item.size), limit);
  return read_all(*open_file(item.file), limit);
}

std::unique_ptr<ItemSource> items_of_names(std::vector<std::string> names) { return std::make_unique<NamedItems>(std::move(names)); }
std::unique_ptr<ItemSource> items_of_folder(const std::string& folder) { return std::make_unique<FolderItems>(folder); }
std::unique_ptr<ItemSource> items_of_list(const std::string& file) { return std::make_unique<ListItems>(file); }
std::unique_ptr<ItemSource> items_of_tar(std::shared_ptr<const ByteSource> archive, const std::string& file) {
  return std::make_unique<TarItems>(std::move(archive), file);
}

}  // namespace tutti
