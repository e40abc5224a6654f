#include "tutti/device/cpu/team.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

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

// Some tenths of a microsecond, before pieces are taken that their own thread may be about to take: it has what they read in its cache.
constexpr int patience = 40;
constexpr int spins = 4000;  // some tens of microseconds: the next kernel of a run comes soon
constexpr int most_threads = 255;
constexpr int64_t most_pieces = (int64_t{1} << 22) - 1;

// The pieces of one thread that nobody has begun, how many threads their job has, and its number: one word, so that to take one is one
// exchange. The thread itself takes the first one, others the last. What is to be done with them stands beside it: whoever waits for the
// word gets it in one move from cache to cache, and until the piece that it has taken is done it stays.
class alignas(64) Range {
 public:
  void fill(int64_t begin, int64_t end, int threads, uint64_t job) {
    word_.store(word_of(begin, end, threads, job), std::memory_order_release);
  }

  // -1 when none is left for this slot.
  int64_t take(int slot, bool own) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    while (true) {
      const auto begin = static_cast<int64_t>(word >> 42), end = static_cast<int64_t>(word >> 20 & most_pieces);
      const int threads = static_cast<int>(word >> 12 & 0xff);
      const uint64_t job = word & most_jobs;
      if (begin >= end || slot >= threads) return -1;
      const uint64_t next = own ? word_of(begin + 1, end, threads, job) : word_of(begin, end - 1, threads, job);
      if (word_.compare_exchange_weak(word, next, std::memory_order_acquire, std::memory_order_relaxed)) return own ? begin : end - 1;
    }
  }
  uint64_t job() const { return word_.load(std::memory_order_relaxed) & most_jobs; }
  int threads() const { return static_cast<int>(word_.load(std::memory_order_relaxed) >> 12 & 0xff); }

  static constexpr uint64_t most_jobs = (uint64_t{1} << 12) - 1;  // the number after it is 0
  void (*call)(const void*, int64_t, int) = nullptr;
  const void* context = nullptr;
  bool flushes = false;  // denormal numbers: as who asked for it

 private:
  static uint64_t word_of(int64_t begin, int64_t end, int threads, uint64_t job) {
    return static_cast<uint64_t>(begin) << 42 | static_cast<uint64_t>(end) << 20 | static_cast<uint64_t>(threads) << 12 | job;
  }
  std::atomic<uint64_t> word_ = 0;
};

// How many pieces a thread has done, ever, and where it did the last: nobody else writes it.
struct alignas(64) Done {
  std::atomic<int64_t> pieces = 0;
  std::atomic<int> core = -1;
  void add_one() { pieces.store(pieces.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
};

// Where a thread of the team may run: wherever the caller may, but not on its core. Some schedulers, those of small virtual machines above
// all, pack threads that sleep often onto one core, and there they only take time from each other.
class Place {
 public:
  void begin(pthread_t thread) {
    thread_ = thread;
    process_ = getpid();
  }

  // System calls, but only when the caller has moved. After fork() the thread is another process's.
  void keep_away_from(int core) {
    if (core == avoided_ || core < 0 || core >= CPU_SETSIZE || getpid() != process_) return;
    avoided_ = core;
    cpu_set_t others;
    if (sched_getaffinity(0, sizeof others, &others) != 0) return;
    CPU_CLR(static_cast<unsigned>(core), &others);
    if (CPU_COUNT(&others) > 0) pthread_setaffinity_np(thread_, sizeof others, &others);
  }

 private:
  pthread_t thread_ = {};
  pid_t process_ = 0;
  int avoided_ = -1;
};

class TeamPool {
 public:
  void run(int threads, int64_t pieces, void (*call)(const void*, int64_t, int), const void* context) {
    if (pieces > most_pieces || taken_.test_and_set(std::memory_order_acquire)) {
      for (int64_t piece = 0; piece < pieces; ++piece) call(context, piece, 0);
      return;
    }
    threads = static_cast<int>(std::min<int64_t>({threads, pieces, most_threads}));
    for (; started_ < threads; ++started_) {
      std::thread thread;
      try {
        thread = std::thread([this, slot = started_] { work(slot); });
      } catch (const std::system_error&) {
        break;  // the system gives no more; those that there are do it all
      }
      places_[index(started_)].begin(thread.native_handle());
      thread.detach();
    }
    threads = std::min(threads, started_);
    spread(threads, sched_getcpu());
    job_ = (job_ + 1) & Range::most_jobs;
    const bool flushes = FlushDenormals::is_on();
    const int64_t due = done_by(threads) + pieces;
    for (int slot = threads; slot-- > 0;) {
      Range& range = ranges_[index(slot)];
      range.call = call;
      range.context = context;
      range.flushes = flushes;
      const int64_t first = pieces * slot / threads;
      range.fill(slot == 0 ? first + 1 : first, pieces * (slot + 1) / threads, threads, job_);  // the first one is begun below
    }
    if (sleeping_.load() > 0) wake();
    call(context, 0, 0);
    done_[0].add_one();
    // Who fell asleep just as the job came may not have seen the job, nor we that it sleeps. Either it has said so before this exchange, or
    // it sees what was written before.
    if (sleeping_.fetch_add(0) > 0) wake();
    while (do_piece_of(0, 0)) {
    }
    for (int i = 0; i < patience && done_by(threads) != due; ++i) pause();
    while (do_piece_of_others(0, threads)) {
    }
    // Pieces that others have begun.
    for (int i = 0; done_by(threads) != due; ++i) i < spins ? pause() : std::this_thread::yield();
    taken_.clear(std::memory_order_release);
  }

 private:
  static size_t index(int slot) { return static_cast<size_t>(slot); }

  // Moves the threads away that did nothing since this was called last, or were last on the caller's core.
  void spread(int threads, int core) {
    for (int slot = 1; slot < threads; ++slot) {
      const Done& done = done_[index(slot)];
      const int64_t pieces = done.pieces.load(std::memory_order_relaxed);
      const bool idle = pieces == std::exchange(seen_[index(slot)], pieces);
      if (idle || done.core.load(std::memory_order_relaxed) == core) places_[index(slot)].keep_away_from(core);
    }
  }

  int64_t done_by(int threads) const {
    int64_t sum = 0;
    for (int slot = 0; slot < threads; ++slot) sum += done_[index(slot)].pieces.load(std::memory_order_acquire);
    return sum;
  }

  void wake() {
    ++wake_;
    wake_.notify_all();
  }

  // Does a piece of this owner's, if one is left. Until it is done the job stays what it is.
  bool do_piece_of(int owner, int slot) {
    Range& range = ranges_[index(owner)];
    const int64_t piece = range.take(slot, owner == slot);
    if (piece < 0) return false;
    FlushDenormals::set(range.flushes);
    range.call(range.context, piece, slot);
    done_[index(slot)].add_one();
    return true;
  }
  bool do_piece_of_others(int slot, int threads) {
    for (int i = 1; i < threads; ++i)
      if (do_piece_of((slot + i) % threads, slot)) return true;
    return false;
  }

  // Looks at its own range only until a job comes: what others write stays in their caches.
  void work(int slot) {
    const Range& own = ranges_[index(slot)];
    const auto waits = [&](uint64_t last, int turns) {
      for (int i = 0; i < turns; ++i, pause())
        if (own.job() != last) return false;
      return true;
    };
    for (uint64_t last = Range::most_jobs + 1;;) {
      const uint32_t seen = wake_;
      if (waits(last, spins)) {
        ++sleeping_;
        if (waits(last, 64)) wake_.wait(seen);
        --sleeping_;
      }
      last = own.job();
      done_[index(slot)].core.store(sched_getcpu(), std::memory_order_relaxed);
      while (do_piece_of(slot, slot)) {
      }
      for (int i = 0; i < patience && own.job() == last; ++i) pause();
      while (own.job() == last && do_piece_of_others(slot, own.threads())) {  // its own pieces of the next job come first
      }
    }
  }

  std::atomic_flag taken_;  // by who has everything below, but for those who take pieces
  int started_ = 1;         // threads, the caller among them
  uint64_t job_ = 0;
  std::array<Range, most_threads> ranges_;
  std::array<Done, most_threads> done_;
  std::array<int64_t, most_threads> seen_{};  // of done_, when the last job began
  std::array<Place, most_threads> places_;
  alignas(64) std::atomic<int> sleeping_ = 0;
  std::atomic<uint32_t> wake_ = 0;
};

}  // namespace

void run_team(int threads, int64_t pieces, void (*call)(const void*, int64_t, int), const void* context) {
  // Never destroyed: its threads wait until the process ends. After fork() there are none, and the caller does all pieces.
  static TeamPool* pool = new TeamPool;
  pool->run(threads, pieces, call, context);
}

}  // namespace tutti::cpu
