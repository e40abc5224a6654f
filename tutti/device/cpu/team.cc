#include "tutti/device/cpu/team.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace tutti::cpu {

namespace {

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr int spins = 4000;  // some tens of microseconds: the next kernel of a run comes soon

class Pool {
 public:
  void run(int members, void (*call)(const void*, int64_t), const void* context) {
    std::unique_lock mine(owner_, std::try_to_lock);
    if (!mine) {
      for (int64_t member = 0; member < members; ++member) call(context, member);
      return;
    }
    for (; threads_ < members - 1; ++threads_) std::thread([this] { work(); }).detach();
    call_ = call;
    context_ = context;
    done_.store(0, std::memory_order_relaxed);
    state_.store(State{0, members}.word());
    if (sleeping_.load() > 0) {
      ++wake_;
      wake_.notify_all();
    }
    while (do_one()) {
    }
    // Pieces that others have begun.
    for (int i = 0; done_.load(std::memory_order_acquire) < members; ++i) i < spins ? pause() : std::this_thread::yield();
  }

 private:
  // Members taken so far, of how many: one word, so that to take one is one exchange.
  struct State {
    int taken, members;
    uint32_t word() const { return static_cast<uint32_t>(taken) << 16 | static_cast<uint32_t>(members); }
    static State of(uint32_t word) { return {static_cast<int>(word >> 16), static_cast<int>(word & 0xffff)}; }
  };

  // Takes a member if one is left. Until it is done the job stays what it is.
  bool do_one() {
    uint32_t word = state_.load();
    while (true) {
      const State state = State::of(word);
      if (state.taken >= state.members) return false;
      if (state_.compare_exchange_weak(word, State{state.taken + 1, state.members}.word(), std::memory_order_acq_rel)) {
        call_(context_, state.taken);
        done_.fetch_add(1, std::memory_order_release);
        return true;
      }
    }
  }

  void work() {
    while (true) {
      const uint32_t seen = wake_;
      bool any = false;
      for (int i = 0; i < spins && !any; ++i) {
        any = do_one();
        if (!any) pause();
      }
      if (any) continue;
      ++sleeping_;
      if (!do_one()) wake_.wait(seen);  // a job that came before sleeping_ was seen is found here
      --sleeping_;
    }
  }

  std::mutex owner_;  // of everything below, but for those who take members
  int threads_ = 0;
  void (*call_)(const void*, int64_t) = nullptr;
  const void* context_ = nullptr;
  std::atomic<uint32_t> state_ = 0;
  std::atomic<int> done_ = 0, sleeping_ = 0;
  std::atomic<uint32_t> wake_ = 0;
};

}  // namespace

void run_team(int members, void (*call)(const void*, int64_t), const void* context) {
  // Never destroyed: its threads wait until the process ends. After fork() there are none, and the caller does all pieces.
  static Pool* pool = new Pool;
  pool->run(members, call, context);
}

}  // namespace tutti::cpu
