#include "tutti/device/cpu/team.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "tutti/base/denormals.h"

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
constexpr int most_threads = 255;
constexpr int64_t most_pieces = (int64_t{1} << 24) - 1;

// The pieces of one thread that nobody has begun, and how many threads their job has: one word, so that to take one is one exchange. The
// thread itself takes the first one, others the last.
class alignas(64) Range {
 public:
  void fill(int64_t begin, int64_t end, int threads) { word_.store(word_of(begin, end, threads)); }

  // -1 when none is left for this slot.
  int64_t take(int slot, bool own) {
    uint64_t word = word_.load();
    while (true) {
      const auto begin = static_cast<int64_t>(word >> 40), end = static_cast<int64_t>(word >> 16 & most_pieces);
      const int threads = static_cast<int>(word & 0xffff);
      if (begin >= end || slot >= threads) return -1;
      const uint64_t next = own ? word_of(begin + 1, end, threads) : word_of(begin, end - 1, threads);
      if (word_.compare_exchange_weak(word, next)) return own ? begin : end - 1;
    }
  }

 private:
  static uint64_t word_of(int64_t begin, int64_t end, int threads) {
    return static_cast<uint64_t>(begin) << 40 | static_cast<uint64_t>(end) << 16 | static_cast<uint64_t>(threads);
  }
  std::atomic<uint64_t> word_ = 0;
};

class Pool {
 public:
  void run(int threads, int64_t pieces, void (*call)(const void*, int64_t, int), const void* context) {
    std::unique_lock mine(owner_, std::try_to_lock);
    if (!mine || pieces > most_pieces) {
      for (int64_t piece = 0; piece < pieces; ++piece) call(context, piece, 0);
      return;
    }
    threads = static_cast<int>(std::min<int64_t>({threads, pieces, most_threads}));
    for (; started_ < threads; ++started_) std::thread([this, slot = started_] { work(slot); }).detach();
    call_ = call;
    context_ = context;
    flushes_ = FlushDenormals::is_on();
    slots_.store(threads, std::memory_order_relaxed);
    left_.store(pieces, std::memory_order_relaxed);
    for (int slot = 0; slot < threads; ++slot) ranges_[index(slot)].fill(pieces * slot / threads, pieces * (slot + 1) / threads, threads);
    if (sleeping_.load() > 0) {
      ++wake_;
      wake_.notify_all();
    }
    while (do_one(0)) {
    }
    // Pieces that others have begun.
    for (int i = 0; left_.load(std::memory_order_acquire) > 0; ++i) i < spins ? pause() : std::this_thread::yield();
  }

 private:
  static size_t index(int slot) { return static_cast<size_t>(slot); }

  // Does a piece if one is left: its own, or somebody's. Until it is done the job stays what it is.
  bool do_one(int slot) {
    int64_t piece = ranges_[index(slot)].take(slot, true);
    const int slots = slots_.load(std::memory_order_relaxed);
    for (int i = 1; piece < 0 && i < slots; ++i) piece = ranges_[index((slot + i) % slots)].take(slot, false);
    if (piece < 0) return false;
    FlushDenormals::set(flushes_);
    call_(context_, piece, slot);
    left_.fetch_sub(1, std::memory_order_release);
    return true;
  }

  void work(int slot) {
    while (true) {
      const uint32_t seen = wake_;
      bool any = false;
      for (int i = 0; i < spins && !any; ++i) {
        any = do_one(slot);
        if (!any) pause();
      }
      if (any) continue;
      ++sleeping_;
      if (!do_one(slot)) wake_.wait(seen);  // a job that came before sleeping_ was seen is found here
      --sleeping_;
    }
  }

  std::mutex owner_;  // of everything below, but for those who take pieces
  int started_ = 1;   // threads, the caller among them
  void (*call_)(const void*, int64_t, int) = nullptr;
  const void* context_ = nullptr;
  bool flushes_ = false;  // denormals, as the caller does
  std::array<Range, most_threads> ranges_;
  std::atomic<int> slots_ = 1;
  std::atomic<int64_t> left_ = 0;
  alignas(64) std::atomic<int> sleeping_ = 0;
  std::atomic<uint32_t> wake_ = 0;
};

}  // namespace

void run_team(int threads, int64_t pieces, void (*call)(const void*, int64_t, int), const void* context) {
  // Never destroyed: its threads wait until the process ends. After fork() there are none, and the caller does all pieces.
  static Pool* pool = new Pool;
  pool->run(threads, pieces, call, context);
}

}  // namespace tutti::cpu
