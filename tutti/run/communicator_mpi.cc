#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "tutti/base/error.h"
#include "tutti/base/shared_memory.h"
#include "tutti/base/start_thread.h"
#include "tutti/base/stopwatch.h"
#include "tutti/device/hosts.h"
#include "tutti/run/communicator.h"
#include "tutti/run/mpi_library.h"
#include "tutti/run/trace.h"

namespace tutti {

namespace {

constexpr auto between_answers = std::chrono::milliseconds(20);

// What launchers tell the processes that they start: Open MPI, and those that speak PMI as Slurm does.
int64_t launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (const char* text = std::getenv(name); text != nullptr && *text != 0) return std::atoll(text);
  return 0;
}

JoinMpi* load_library() {
  std::error_code problem;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", problem);
  std::string tried;
  for (const std::string& path : {(program.parent_path() / mpi_library_file).string(), std::string(mpi_library_file)}) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL))
      if (void* join = dlsym(library, join_mpi_name)) return reinterpret_cast<JoinMpi*>(join);
    if (const char* reason = dlerror(); reason != nullptr && tried.empty()) tried = reason;
  }
  fail<Unsupported>("mpi", "started with {} ranks, but MPI cannot be used: {}; hint: build with libopenmpi-dev, or start it alone",
                    launched_ranks(), tried);
}

// The rank of this process. All calls of MPI are made by `thread_`, one after another.
class MpiGroup : public RankGroup {
 public:
  explicit MpiGroup(double deadline) : deadline_(deadline) {
    JoinMpi* join = load_library();
    std::promise<int> joined;
    thread_ = start_thread([this, join, &joined] {
      const int problem = join(deadline_, &mpi_);
      if (problem == 0) mpi_.hear(&MpiGroup::hear, this);
      joined.set_value(problem);
      serve();
      if (mpi_.finish != nullptr && failure_.empty()) mpi_.finish();
    });
    const int problem = joined.get_future().get();
    for (int r = 0; problem == 0 && r < mpi_.size; ++r) {
      char name[256];
      hosts_.emplace_back(name, static_cast<size_t>(mpi_.host(r, name, sizeof name)));
    }
    if (problem == 0 && mpi_.size == launched_ranks()) return;
    end_thread();
    if (problem != 0) fail<DeviceError>("mpi", "MPI_Init failed with {}", problem);
    fail<DeviceError>("mpi", "the launcher has started {} ranks, MPI knows {}; hint: mpirun of the MPI that this was built with",
                      launched_ranks(), mpi_.size);
  }
  ~MpiGroup() override { end_thread(); }

  int rank() const override { return mpi_.rank; }
  int size() const override { return mpi_.size; }
  const std::string& host(int rank) const override { return hosts_[static_cast<size_t>(rank)]; }
  void watch(Timeline* timeline) override {
    std::lock_guard lock(mutex_);
    watching_ = timeline;
  }

  void heed(const std::atomic<bool>* stop) override {
    std::lock_guard lock(mutex_);
    stop_ = stop;
    mpi_.heed(stop);
  }

  void sum(DType dtype, std::span<const Part> parts) override {
    if (dtype != DType::f32) fail<Unsupported>("mpi", "sums of {} are not done", name(dtype));
    start({parts.begin(), parts.end()});
    finish();
  }

  void start(std::vector<Part> parts) override {
    post([this, parts = std::move(parts)] {
      const auto begin = Timeline::Clock::now();
      size_t count = 0;
      for (const Part& part : parts) count += static_cast<size_t>(part.elements);
      values_.resize(count);
      scratch_.resize(count + static_cast<size_t>(mpi_.size));
      float* at = values_.data();
      for (const Part& part : parts) {
        std::memcpy(at, part.from, static_cast<size_t>(part.elements) * sizeof(float));
        at += part.elements;
      }
      check(mpi_.sum(values_.data(), scratch_.data(), static_cast<int64_t>(count)));
      at = values_.data();
      for (const Part& part : parts) {
        std::memcpy(part.to, at, static_cast<size_t>(part.elements) * sizeof(float));
        at += part.elements;
      }
      if (watching_ == nullptr) return;
      watching_->slow_down_exchange(2.0 * static_cast<double>(count * sizeof(float)) * (mpi_.size - 1) / mpi_.size);
      watching_->add(Phase::exchange, begin, Timeline::Clock::now());
    });
  }

  void finish() override {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return asked_ == done_ || !failure_.empty(); });
    if (!failure_.empty()) throw DeviceError("mpi", failure_);
  }

  std::shared_ptr<std::byte> share(size_t bytes) override {
    // Whoever opens it by this name is on the same machine: numbers of two draws, as exact in a double.
    std::random_device draw;
    const double own_name[] = {static_cast<double>(draw()), static_cast<double>(draw())};
    const std::vector<double> names = gather(own_name);
    const std::string name = fmt::format("/tutti-{:.0f}-{:.0f}", names[0], names[1]);
    std::shared_ptr<std::byte> out;
    if (rank() == 0) out = create_shared_memory(name, bytes);
    gather(std::vector<double>{1});  // made, if it can be
    if (rank() != 0) out = open_shared_memory(name, bytes);
    const std::vector<double> had = gather(std::vector<double>{out != nullptr ? 1.0 : 0.0});
    if (rank() == 0) forget_shared_memory(name);
    return std::find(had.begin(), had.end(), 0.0) == had.end() ? out : nullptr;
  }

  bool meet(Barrier& barrier, const std::function<bool()>& gives_up) override {
    Stopwatch waiting;
    bool hurried = false;
    return barrier.wait_unless([&] {
      if (gives_up()) return true;
      const bool hurries = stop_ != nullptr && *stop_ && !hurried;
      if (!hurries && waiting.seconds() < deadline_) return false;
      hurried = hurried || hurries;
      post([&] { check(mpi_.roll(hurries)); });
      finish();
      waiting = {};  // all are there: one of them takes its time
      return false;
    });
  }

  void put(const std::string& name, const std::string& value) override {
    keep(name, value);
    // The length of the name, a space, both.
    post([this, word = fmt::format("{} ", name.size()) + name + value] { mpi_.tell(word.data(), std::ssize(word)); });
  }

  std::optional<std::string> get(const std::string& name, double seconds) override {
    std::unique_lock lock(values_mutex_);
    const auto there = [&] { return known_.contains(name); };
    if (!value_came_.wait_for(lock, std::chrono::duration<double>(seconds), there)) return {};
    return known_.at(name);
  }

  std::vector<double> gather(std::span<const double> own) override {
    std::vector<double> all(own.size() * static_cast<size_t>(mpi_.size));
    post([&] { check(mpi_.gather(own.data(), static_cast<int>(own.size()), all.data())); });
    finish();
    return all;
  }

  void require_same(const std::string& text, const std::string& what) override {
    // As numbers: a text of another length is another text.
    constexpr size_t longest = 256;
    std::vector<double> own(longest + 1);
    own[longest] = static_cast<double>(text.size());
    for (size_t i = 0; i < std::min(text.size(), longest); ++i) own[i] = static_cast<double>(static_cast<unsigned char>(text[i]));
    const std::vector<double> all = gather(own);
    std::string others;
    for (int r = 1; r < mpi_.size; ++r)
      if (!std::equal(all.begin(), all.begin() + longest + 1, all.begin() + static_cast<std::ptrdiff_t>(longest + 1) * r))
        others += fmt::format("{}rank {} on {}", others.empty() ? "" : ", ", r, host(r));
    if (!others.empty())
      fail<InvalidArgument>("mpi", "{} is not the same for all ranks: {} differ{} from rank 0 on {}; hint: the same files everywhere", what,
                            others, others.find(',') == std::string::npos ? "s" : "", host(0));
  }

  void abort(int exit_code) override {
    post([this, exit_code] { mpi_.abort(exit_code); });
    while (true) pause();
  }

 private:
  void keep(const std::string& name, std::string value) {
    std::lock_guard lock(values_mutex_);
    known_[name] = std::move(value);
    value_came_.notify_all();
  }

  static void hear(void* group, const char* word, int64_t bytes) {
    const std::string_view text(word, static_cast<size_t>(bytes));
    const size_t space = text.find(' '), size = std::strtoull(word, nullptr, 10);
    static_cast<MpiGroup*>(group)->keep(std::string(text.substr(space + 1, size)), std::string(text.substr(space + 1 + size)));
  }

  void end_thread() {
    post({});
    thread_.join();
  }

  void post(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    ++asked_;
    wake_.notify_one();
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      if (queue_.empty()) {
        wake_.wait_for(lock, between_answers);
        if (queue_.empty() && mpi_.answer != nullptr && failure_.empty()) mpi_.answer();
        continue;
      }
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      if (!work) return;
      lock.unlock();
      if (failure_.empty()) work();
      lock.lock();
      ++done_;
      if (asked_ == done_ || !failure_.empty()) idle_.notify_all();
    }
  }

  // By `thread_`, which has no lock.
  void check(int silent) {
    if (silent == 0) return;
    std::lock_guard lock(mutex_);
    const bool gone = stop_ != nullptr && *stop_;
    failure_ = fmt::format("rank {} on {} {}; hint: --resume goes on from the last checkpoint", silent - 1, host(silent - 1),
                           gone ? "is gone, and the others were told to stop" : fmt::format("has not answered for {:.0f} s", deadline_));
  }

  double deadline_;
  MpiLibrary mpi_;
  std::vector<std::string> hosts_;
  std::vector<float> values_, scratch_;  // of the sum at hand
  const std::atomic<bool>* stop_ = nullptr;
  Timeline* watching_ = nullptr;  // by `thread_`, while there is something to do
  std::mutex values_mutex_;
  std::condition_variable value_came_;
  std::map<std::string, std::string> known_;  // what ranks have put
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  std::deque<std::function<void()>> queue_;
  int64_t asked_ = 0, done_ = 0;
  std::string failure_;
  std::thread thread_;
};

}  // namespace

bool is_ranked() { return launched_ranks() > 1; }

std::shared_ptr<RankGroup> join_ranks(double deadline) {
  static const std::shared_ptr<RankGroup> group = [&]() -> std::shared_ptr<RankGroup> {
    if (!is_ranked()) return nullptr;
    auto made = std::make_shared<MpiGroup>(deadline);
    RankGroup* const ranks = made.get();
    set_hosts({made->rank(), made->size(), [ranks](const std::string& name, const std::string& value) { ranks->put(name, value); },
               [ranks](const std::string& name, double seconds) { return ranks->get(name, seconds); }});
    return made;
  }();
  return group;
}

}  // namespace tutti
