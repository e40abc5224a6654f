// The one file that sees MPI. Operations are started and then tested, so that a rank which waits can answer others, and notices when one of
// them does not.
#define OMPI_SKIP_MPICXX 1  // the C interface is enough, and the C++ one needs a library of its own
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <string>
#include <vector>

#include "tutti/run/mpi_library.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int ask_tag = 7001, answer_tag = 7002, word_tag = 7003;
constexpr double patience = 3, little_patience = 0.5;  // seconds for an answer; where a second is left

struct World {
  int rank = 0, size = 1;
  double deadline = 60;
  MPI_Comm data = MPI_COMM_NULL, talk = MPI_COMM_NULL;
  std::vector<std::string> hosts;
  std::vector<bool> answered;
  std::atomic<const std::atomic<bool>*> stop = nullptr;
  void (*heard)(void* listener, const char* word, int64_t bytes) = nullptr;
  void* listener = nullptr;
  struct Word {
    std::string text;
    std::vector<MPI_Request> requests;
  };
  std::list<Word> words;  // on their way
};
World world;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void send_word(int to, int tag) {
  MPI_Request request;
  static char word = 1;
  MPI_Isend(&word, 1, MPI_CHAR, to, tag, world.talk, &request);  // so short that it leaves at once
  MPI_Request_free(&request);
}

void tell(const char* word, int64_t bytes) {
  World::Word& own = world.words.emplace_back(World::Word{std::string(word, static_cast<size_t>(bytes)), {}});
  for (int r = 0; r < world.size; ++r)
    if (r != world.rank)
      MPI_Isend(own.text.data(), static_cast<int>(bytes), MPI_CHAR, r, word_tag, world.talk, &own.requests.emplace_back());
}

void forget_words() {
  for (auto word = world.words.begin(); word != world.words.end();) {
    int done = 0;
    MPI_Testall(static_cast<int>(word->requests.size()), word->requests.data(), &done, MPI_STATUSES_IGNORE);
    word = done != 0 ? world.words.erase(word) : std::next(word);
  }
}

// Answers those who ask, and hears who answers and what is told.
void listen() {
  forget_words();
  for (int found = 1; found != 0;) {
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world.talk, &found, &status);
    if (found == 0) return;
    int bytes = 0;
    MPI_Get_count(&status, MPI_CHAR, &bytes);
    std::string word(static_cast<size_t>(bytes), 0);
    MPI_Recv(word.data(), bytes, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, world.talk, MPI_STATUS_IGNORE);
    if (status.MPI_TAG == word_tag && world.heard != nullptr) world.heard(world.listener, word.data(), bytes);
    if (status.MPI_TAG == ask_tag) send_word(status.MPI_SOURCE, answer_tag);
    if (status.MPI_TAG == answer_tag) world.answered[static_cast<size_t>(status.MPI_SOURCE)] = true;
  }
}

// The rank + 1 that is silent; 0: all are there.
int call_the_roll(bool hurries) {
  world.answered.assign(static_cast<size_t>(world.size), false);
  world.answered[static_cast<size_t>(world.rank)] = true;
  for (int r = 0; r < world.size; ++r)
    if (r != world.rank) send_word(r, ask_tag);
  const auto begin = Clock::now();
  while (seconds_since(begin) < (hurries ? little_patience : patience)) {
    listen();
    if (std::find(world.answered.begin(), world.answered.end(), false) == world.answered.end()) return 0;
    sched_yield();
  }
  return static_cast<int>(std::find(world.answered.begin(), world.answered.end(), false) - world.answered.begin()) + 1;
}

int wait_for(MPI_Request request) {
  auto begin = Clock::now();
  bool hurried = false;
  for (int tries = 0;; ++tries) {
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0) return 0;
    if (tries % 64 != 63) continue;
    sched_yield();
    if (tries % 4096 != 4095) continue;
    listen();
    const std::atomic<bool>* stop = world.stop;
    const bool hurries = stop != nullptr && *stop && !hurried;
    if (!hurries && seconds_since(begin) < world.deadline) continue;
    hurried = hurried || hurries;
    if (const int silent = call_the_roll(hurries)) return silent;
    begin = Clock::now();  // all are there: one of them takes its time
  }
}

// Each rank adds up a part of its own, then all are told all parts.
int sum(float* values, float* scratch, int64_t count) {
  const auto place = [&](int r) { return count * r / world.size; };
  std::vector<int> lengths, offsets, own, own_offsets;
  const int64_t mine = place(world.rank + 1) - place(world.rank);
  for (int r = 0; r < world.size; ++r) {
    lengths.push_back(static_cast<int>(place(r + 1) - place(r)));
    offsets.push_back(static_cast<int>(place(r)));
    own.push_back(static_cast<int>(mine));
    own_offsets.push_back(static_cast<int>(mine) * r);
  }
  MPI_Request request;
  MPI_Ialltoallv(values, lengths.data(), offsets.data(), MPI_FLOAT, scratch, own.data(), own_offsets.data(), MPI_FLOAT, world.data,
                 &request);
  if (const int silent = wait_for(request)) return silent;
  float* to = values + place(world.rank);
  std::copy(scratch, scratch + mine, to);
  for (int r = 1; r < world.size; ++r)
    for (int64_t i = 0; i < mine; ++i) to[i] += scratch[mine * r + i];
  MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_FLOAT, values, lengths.data(), offsets.data(), MPI_FLOAT, world.data, &request);
  return wait_for(request);
}

int gather(const double* own, int count, double* all) {
  MPI_Request request;
  MPI_Iallgather(own, count, MPI_DOUBLE, all, count, MPI_DOUBLE, world.data, &request);
  return wait_for(request);
}

int host(int rank, char* name, int longest) {
  const std::string& own = world.hosts[static_cast<size_t>(rank)];
  const auto length = std::min(own.size(), static_cast<size_t>(longest));
  std::copy_n(own.data(), length, name);
  return static_cast<int>(length);
}

}  // namespace

extern "C" int tutti_join_mpi(double deadline, tutti::MpiLibrary* library) {
  int given = 0;
  if (const int problem = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given); problem != MPI_SUCCESS) return problem;
  MPI_Comm_dup(MPI_COMM_WORLD, &world.data);
  MPI_Comm_dup(MPI_COMM_WORLD, &world.talk);
  MPI_Comm_rank(world.data, &world.rank);
  MPI_Comm_size(world.data, &world.size);
  world.deadline = deadline;
  char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  std::vector<char> names(static_cast<size_t>(world.size) * sizeof name);
  MPI_Allgather(name, sizeof name, MPI_CHAR, names.data(), sizeof name, MPI_CHAR, world.data);
  for (int r = 0; r < world.size; ++r) world.hosts.emplace_back(names.data() + static_cast<size_t>(r) * sizeof name);
  library->rank = world.rank;
  library->size = world.size;
  library->host = host;
  library->sum = sum;
  library->gather = gather;
  library->roll = call_the_roll;
  library->answer = listen;
  library->heed = [](const std::atomic<bool>* stop) { world.stop = stop; };
  library->tell = tell;
  library->hear = [](void (*heard)(void* listener, const char* word, int64_t bytes), void* listener) {
    world.heard = heard;
    world.listener = listener;
  };
  library->abort = [](int code) { MPI_Abort(MPI_COMM_WORLD, code); };
  library->finish = [] { MPI_Finalize(); };
  return 0;
}
