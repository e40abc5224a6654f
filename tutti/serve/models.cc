#include "tutti/serve/models.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <optional>
#include <thread>

#include "tutti/base/start_thread.h"
#include "tutti/run/load_model.h"
#include "tutti/serve/watched_file.h"

namespace tutti::serve {

std::string_view name(ModelState state) {
  constexpr std::string_view names[] = {"loading", "ready", "failed", "unloaded"};
  return names[static_cast<size_t>(state)];
}

void check_name(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
  if (name.empty() || name.size() > 128 || !plain || name.find_first_not_of('.') == std::string_view::npos)
    fail<InvalidArgument>("serve", "a model's name is 1 to 128 letters, digits, '_', '-' and '.'; got '{}'; hint: NAME=FILE",
                          escape(name, 140));
}

std::pair<std::string, std::string> name_and_file(const std::string& argument) {
  const size_t equals = argument.find('=');
  std::error_code error;
  // A file's name may have a '=' too.
  const bool named = equals != std::string::npos && !std::filesystem::exists(argument, error);
  const std::string file = named ? argument.substr(equals + 1) : argument;
  std::string name = named ? argument.substr(0, equals) : std::filesystem::path(argument).stem().string();
  check_name(name);
  return {name, file};
}

class Models::Store {
 public:
  explicit Store(ModelsOptions options) : options_(std::move(options)) {
    if (!options_.repository.empty()) list_repository(options_.repository, 0);  // throws when there is none
    thread_ = start_thread([this] { run(); });
  }

  ~Store() {
    {
      std::scoped_lock lock(mutex_);
      ending_ = true;
    }
    news_.notify_all();
    thread_.join();
  }

  void add(const std::string& name, const std::string& path) {
    check_name(name);
    std::scoped_lock lock(mutex_);
    if (models_.size() >= options_.most) fail<InvalidArgument>("serve", "at most {} models are served", options_.most);
    auto [found, fresh] = models_.try_emplace(name);
    if (!fresh) fail<InvalidArgument>("serve", "two models are called '{}'; hint: NAME=FILE", name);
    found->second.of_command_line = true;
    add_version(name, 1, path);
    news_.notify_all();
  }

  std::shared_ptr<ModelVersion> find(std::string_view name, int64_t version) const {
    std::scoped_lock lock(mutex_);
    auto found = models_.find(name);
    if (found == models_.end() || found->second.unloaded) {
      std::vector<std::string> known;
      for (const auto& [other, model] : models_)
        if (!model.unloaded) known.push_back(other);
      refuse(FailureKind::not_found, "there is no model '{}'{}", escape(name, 140), did_you_mean(name, known));
    }
    const auto& versions = found->second.versions;
    const Version* unready = nullptr;
    for (auto one = versions.rbegin(); one != versions.rend(); ++one) {
      if (version >= 0 && one->first != version) continue;
      if (one->second.loaded != nullptr) return one->second.loaded;
      if (unready == nullptr) unready = &one->second;
    }
    if (unready == nullptr) refuse(FailureKind::not_found, "model '{}' has no version {}", found->first, version);
    if (unready->reason.empty()) refuse(FailureKind::not_ready, "model '{}' is loading", found->first);
    refuse(FailureKind::not_ready, "model '{}' could not be loaded: {}", found->first, unready->reason);
  }

  void load(const std::string& name, Done done) {
    {
      std::scoped_lock lock(mutex_);
      asked_.push_back({name, true, std::move(done)});
      ++unfinished_;
    }
    news_.notify_all();
  }

  void unload(const std::string& name, Done done) {
    {
      std::scoped_lock lock(mutex_);
      asked_.push_back({name, false, std::move(done)});
      ++unfinished_;
    }
    news_.notify_all();
  }

  std::vector<VersionInfo> index(std::string_view wanted) const {
    std::scoped_lock lock(mutex_);
    std::vector<VersionInfo> out;
    for (const auto& [name, model] : models_) {
      if (!wanted.empty() && wanted != name) continue;
      for (const auto& [number, version] : model.versions) {
        const ModelState state = model.unloaded              ? ModelState::unloaded
                                 : version.loaded != nullptr ? ModelState::ready
                                 : version.reason.empty()    ? ModelState::loading
                                                             : ModelState::failed;
        out.push_back({name, number, state, version.reason, version.loaded, version.statistics->read()});
      }
    }
    return out;
  }

  bool ready(std::string* why) const {
    std::scoped_lock lock(mutex_);
    const auto say = [&](std::string text) {
      if (why != nullptr) *why = std::move(text);
      return false;
    };
    if (!listed_) return say("the repository is being read");
    for (const auto& [name, model] : models_) {
      if (model.unloaded) continue;
      const auto is_loaded = [](const auto& version) { return version.second.loaded != nullptr; };
      if (std::any_of(model.versions.begin(), model.versions.end(), is_loaded)) continue;
      const bool failed = !model.versions.empty() && !model.versions.rbegin()->second.reason.empty();
      return say(failed ? fmt::format("model '{}' could not be loaded: {}", name, model.versions.rbegin()->second.reason)
                        : fmt::format("model '{}' is loading", name));
    }
    return true;
  }

  void wait() {
    std::unique_lock lock(mutex_);
    settled_.wait(lock, [&] { return listed_ && unfinished_ == 0; });
  }

 private:
  struct Version {
    WatchedFile file;
    bool asked = true;  // to be loaded (again)
    std::string reason;
    std::shared_ptr<ModelVersion> loaded = {};
    std::shared_ptr<StatisticsCounter> statistics = std::make_shared<StatisticsCounter>();
  };
  struct Model {
    bool of_command_line = false, unloaded = false;
    std::map<int64_t, Version> versions;
  };
  struct Asked {
    std::string name;
    bool load;
    Done done;
  };

  // With the lock.
  void add_version(const std::string& name, int64_t number, const std::string& path) {
    models_[name].versions.emplace(number, Version{WatchedFile(path), true, ""});
    ++unfinished_;
  }

  void ask(Version& version) {
    if (!version.asked) ++unfinished_;
    version.asked = true;
  }

  void run() {
    std::unique_lock lock(mutex_);
    look(lock, false);
    listed_ = true;
    auto next_look = std::chrono::steady_clock::now() + options_.poll;
    while (!ending_) {
      if (load_next(lock)) continue;
      settled_.notify_all();
      if (!asked_.empty()) {
        obey(lock);
        continue;
      }
      const auto something = [&] { return ending_ || !asked_.empty() || unfinished_ > 0; };
      if (options_.poll.count() == 0) {
        news_.wait(lock, something);
      } else if (!news_.wait_until(lock, next_look, something)) {
        look(lock, true);
        next_look = std::chrono::steady_clock::now() + options_.poll;
      }
    }
    for (auto& asked : asked_)
      if (asked.done) asked.done({FailureKind::draining, "[serve] the server ends"});
  }

  // Loads one version that is asked for, the newest of its model first; false when there is none.
  bool load_next(std::unique_lock<std::mutex>& lock) {
    for (auto& [name, model] : models_) {
      if (ending_) return false;
      for (auto version = model.versions.rbegin(); version != model.versions.rend(); ++version) {
        if (!version->second.asked) continue;
        load_version(lock, name, version->first);
        return true;
      }
    }
    return false;
  }

  Failure load_version(std::unique_lock<std::mutex>& lock, const std::string name, int64_t number) {
    Version& version = models_.at(name).versions.at(number);  // stays: only this thread removes any
    const std::string path = version.file.path();
    const auto statistics = version.statistics;
    lock.unlock();
    version.file.take();
    std::shared_ptr<ModelVersion> made;
    std::string reason;
    try {
      made = std::make_shared<ModelVersion>(name, number, load_model(path), options_.compile, options_.warm, statistics);
    } catch (const std::bad_alloc&) {
      reason = "[memory] not enough memory for this model";
    } catch (const std::exception& e) {
      reason = without_folder(e.what(), path);
    }
    lock.lock();
    if (version.asked) --unfinished_;
    version.asked = false;
    version.reason = reason;
    std::shared_ptr<ModelVersion> old;  // let go of without the lock: others may hold it, or its memory is freed now
    if (made != nullptr) {
      old = std::exchange(version.loaded, std::move(made));
      models_.at(name).unloaded = false;
      retire(models_.at(name));
    }
    lock.unlock();
    old.reset();
    lock.lock();
    return reason.empty() ? Failure{} : Failure{FailureKind::failed, reason};
  }

  // Error texts go to clients, who need not know where files lie.
  static std::string without_folder(std::string text, const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string() + "/";
    for (size_t at = 0; folder.size() > 1 && (at = text.find(folder, at)) != std::string::npos;) text.erase(at, folder.size());
    return text;
  }

  // Of a repository's model: only the newest versions that run stay.
  void retire(Model& model) {
    if (model.of_command_line) return;
    int64_t running = 0;
    for (auto version = model.versions.end(); version != model.versions.begin();) {
      --version;
      if (running >= options_.versions) {
        if (version->second.asked) --unfinished_;
        version = model.versions.erase(version);
      } else if (version->second.loaded != nullptr) {
        ++running;
      }
    }
  }

  // What changed on disk. At first everything counts, later only what is not being written.
  void look(std::unique_lock<std::mutex>& lock, bool carefully) {
    std::optional<std::vector<RepositoryFile>> files;
    if (!options_.repository.empty()) {
      lock.unlock();
      try {
        files = list_repository(options_.repository, options_.most);
      } catch (const InvalidArgument&) {  // away for a moment, perhaps; what is loaded stays
      }
      lock.lock();
    }
    if (files) take_listing(*files, carefully);
    for (auto& [name, model] : models_)
      for (auto& [number, version] : model.versions)
        if (carefully && !model.unloaded && version.file.is_news()) ask(version);
  }

  void take_listing(const std::vector<RepositoryFile>& files, bool carefully) {
    std::map<std::string, int64_t> seen;  // versions, of each model
    for (const auto& file : files) {
      auto known = models_.find(file.name);
      if (known != models_.end() && (known->second.of_command_line || known->second.unloaded)) continue;
      if (!has_failed(known, file.version) && ++seen[file.name] > options_.versions) continue;
      if (known == models_.end() && models_.size() >= options_.most) continue;
      if (known != models_.end()) {
        auto version = known->second.versions.find(file.version);
        if (version != known->second.versions.end() && version->second.file.path() == file.path) continue;
        if (version != known->second.versions.end()) version->second.file = WatchedFile(file.path);
      }
      auto& versions = models_[file.name].versions;
      if (!versions.contains(file.version)) {
        add_version(file.name, file.version, file.path);
        if (carefully) {  // is_news() says when it is whole
          versions.at(file.version).asked = false;
          --unfinished_;
        }
      }
    }
    forget_missing(files);
  }

  // One that cannot be loaded does not stand in an older one's way.
  template <class Found>
  bool has_failed(const Found& model, int64_t number) const {
    if (model == models_.end()) return false;
    const auto version = model->second.versions.find(number);
    return version != model->second.versions.end() && !version->second.loaded && !version->second.asked && !version->second.reason.empty();
  }

  void forget_missing(const std::vector<RepositoryFile>& files) {
    for (auto model = models_.begin(); model != models_.end();) {
      if (!model->second.of_command_line) {
        std::erase_if(model->second.versions, [&](const auto& version) {
          const bool there = std::any_of(files.begin(), files.end(), [&](const RepositoryFile& file) {
            return file.name == model->first && file.version == version.first;
          });
          if (!there && version.second.asked) --unfinished_;
          return !there;
        });
      }
      const bool gone = !model->second.of_command_line && model->second.versions.empty();
      model = gone ? models_.erase(model) : std::next(model);
    }
  }

  // The first load() or unload() that was asked for.
  void obey(std::unique_lock<std::mutex>& lock) {
    Asked asked = std::move(asked_.front());
    asked_.pop_front();
    Failure failure;
    if (asked.load && !models_.contains(asked.name)) look(lock, false);
    auto found = models_.find(asked.name);
    if (found == models_.end()) {
      failure = {FailureKind::not_found, fmt::format("[serve] there is no model '{}'", escape(asked.name, 140))};
    } else if (asked.load) {
      const bool was_unloaded = std::exchange(found->second.unloaded, false);
      if (was_unloaded) look(lock, false);
      std::vector<int64_t> numbers;
      if (auto model = models_.find(asked.name); model != models_.end())
        for (const auto& [number, version] : model->second.versions) numbers.push_back(number);
      for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
        if (auto model = models_.find(asked.name); model != models_.end() && model->second.versions.contains(*number))
          if (Failure one = load_version(lock, asked.name, *number)) failure = one;
    } else {
      found->second.unloaded = true;
      for (auto& [number, version] : found->second.versions) {
        version.loaded.reset();
        version.reason.clear();
        if (std::exchange(version.asked, false)) --unfinished_;
      }
    }
    --unfinished_;
    lock.unlock();
    if (asked.done) asked.done(failure);
    lock.lock();
  }

  const ModelsOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable news_, settled_;
  std::map<std::string, Model, std::less<>> models_;
  std::deque<Asked> asked_;
  int64_t unfinished_ = 0;  // versions and orders
  bool listed_ = false, ending_ = false;
  std::thread thread_;
};

Models::Models(ModelsOptions options) : store_(std::make_unique<Store>(std::move(options))) {}
Models::~Models() = default;
void Models::add(const std::string& name, const std::string& path) { store_->add(name, path); }
std::shared_ptr<ModelVersion> Models::find(std::string_view name, int64_t version) const { return store_->find(name, version); }
void Models::load(const std::string& name, Done done) { store_->load(name, std::move(done)); }
void Models::unload(const std::string& name, Done done) { store_->unload(name, std::move(done)); }
std::vector<VersionInfo> Models::index(std::string_view name) const { return store_->index(name); }
bool Models::ready(std::string* why) const { return store_->ready(why); }
void Models::wait() { store_->wait(); }

}  // namespace tutti::serve
