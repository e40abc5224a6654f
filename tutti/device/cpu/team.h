// Work on several threads. The members of a team are pieces of work and not threads: the caller takes piece after piece, and so do the
// threads that wait for work, if they come. On a busy machine nobody waits for a thread that has not begun; and when another caller has the
// threads, this one does all pieces itself, so that a process never runs more threads than cores.
#pragma once

#include <cstdint>

namespace tutti::cpu {

inline constexpr int most_members = 255;

// call(context, member) for each member, on this thread and others. Allocates and starts threads when it is first asked for so many.
void run_team(int members, void (*call)(const void* context, int64_t member), const void* context);

// body(member, members) for each member; with one it is an ordinary call.
template <class Body>
void team(int threads, const Body& body) {
  if (threads <= 1) return body(int64_t{0}, int64_t{1});
  const int64_t members = threads < most_members ? threads : most_members;
  const auto one = [&](int64_t member) { body(member, members); };
  using One = decltype(one);
  run_team(
      static_cast<int>(members), [](const void* context, int64_t member) { (*static_cast<const One*>(context))(member); }, &one);
}

// body(begin, end) for pieces of [0, count), as many as threads or as there are things.
template <class Body>
void share(int64_t count, int threads, const Body& body) {
  team(static_cast<int>(count < threads ? count : threads),
       [&](int64_t member, int64_t members) { body(count * member / members, count * (member + 1) / members); });
}

}  // namespace tutti::cpu
