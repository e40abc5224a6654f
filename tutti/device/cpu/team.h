// Work on several threads. It is cut into more pieces than there are threads: each thread has pieces of its own, always the same ones, so
// that what it reads stays in its cache, and then takes those that others have not begun. So nobody waits for a thread that is late, slow
// or never comes; and when another caller has the threads, this one does all pieces itself, so that a process never runs more threads than
// cores.
#pragma once

#include <cstdint>

namespace tutti::cpu {

// call(context, piece, slot) for each piece, on this thread and others. slot: below `threads`, no two pieces that run at the same time have
// the same. Allocates and starts threads when it is first asked for so many.
void run_team(int threads, int64_t pieces, void (*call)(const void* context, int64_t piece, int slot), const void* context);

// body(piece, slot) for each piece; with one thread it is an ordinary loop.
template <class Body>
void team(int threads, int64_t pieces, const Body& body) {
  if (threads <= 1 || pieces <= 1) {
    for (int64_t piece = 0; piece < pieces; ++piece) body(piece, 0);
    return;
  }
  run_team(
      threads, pieces, [](const void* context, int64_t piece, int slot) { (*static_cast<const Body*>(context))(piece, slot); }, &body);
}

// Memory that each thread has for itself, `each` elements of it: the size of it all, and where a slot's begins. From slot to slot it is the
// same way in nearly all kernels, so that a thread finds in its cache what it has used in the kernel before. And they stand apart: a core
// that walks from row to row fetches some tens of rows more than it is asked for, which another core may be writing.
template <class T>
int64_t way_to_next(int64_t each) {
  constexpr int64_t way = 512 * 1024, apart = 128 * 1024, size = sizeof(T);
  return (each * size + apart + way - 1) / way * way / size;
}
template <class T>
int64_t size_for(int threads, int64_t each) {
  return each == 0 || threads <= 1 ? each : each + (threads - 1) * way_to_next<T>(each);
}
template <class T>
T* own(int slot, T* all, int64_t each) {
  return all + slot * way_to_next<T>(each);
}

// Into how many pieces to cut so many things: as many for each thread, some of them if each still has `least` things.
inline int64_t pieces_of(int64_t count, int threads, int64_t least = 1) {
  if (threads <= 1) return count > 0 ? 1 : 0;
  for (int64_t each = 4; each > 1; --each)
    if (count >= each * threads * least) return each * threads;
  return count < threads ? count : threads;
}

// body(begin, end, slot) for pieces of [0, count). A thread's own pieces get smaller and smaller: others take the last ones, and when a
// thread is slower than the others, they wait for a small piece of it. backwards: each begins at the end of its own. granule: a thread's
// pieces are made of so many things, which the body does best together.
template <class Body>
void share(int64_t count, int threads, int64_t pieces, const Body& body, bool backwards = false, int64_t granule = 1) {
  if (threads <= 1 || pieces <= 1) {
    if (count > 0) body(int64_t{0}, count, 0);
    return;
  }
  const int64_t each = pieces % threads == 0 ? pieces / threads : 1, owners = pieces / each;
  team(threads, pieces, [&](int64_t piece, int slot) {
    const int64_t own = count * (piece / each) / owners, next = count * (piece / each + 1) / owners;
    const auto place = [&](int64_t i) {  // own one i has each - i parts
      return i == each ? next - own : (next - own) * (i * (2 * each + 1 - i)) / (each * (each + 1)) / granule * granule;
    };
    const int64_t begin = place(piece % each), end = place(piece % each + 1);
    if (begin < end) backwards ? body(next - end, next - begin, slot) : body(own + begin, own + end, slot);
  });
}
template <class Body>
void share(int64_t count, int threads, const Body& body, bool backwards = false) {
  share(
      count, threads, pieces_of(count, threads), [&](int64_t begin, int64_t end, int) { body(begin, end); }, backwards);
}

}  // namespace tutti::cpu
