// The memory that a local client and the server share: docs/serving.md describes it for those who write a client of their own. The server
// makes it and hands its descriptor over; a client fills slots and rings, the server answers in the same slots.
//
//   Header | requests: a ring of 2 * slots entries | responses: a ring of `slots` entries | slots, each of slot_bytes
//
// All numbers are little-endian; both rings' counters only grow (and wrap at 2^32), entry i of a ring stands at i modulo its size, a power
// of two. A slot has one request under way at most, and perhaps an order to cancel it: neither ring can overflow.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti::serve::local {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint64_t magic = 0x3169'7474'7574'0001;  // a region of this layout
inline constexpr uint32_t layout_version = 1;
inline constexpr uint32_t alignment = 64;  // of tensors, entries and slots
inline constexpr uint32_t most_slots = 1024;
inline constexpr uint32_t most_tensors = 64;  // of a request, and of an answer
inline constexpr uint32_t most_rank = 8;
inline constexpr uint64_t most_text = 1024;        // bytes of an error
inline constexpr uint32_t most_message = 1 << 16;  // bytes of a control message
inline constexpr uint32_t most_models = 1024;      // that one client may name

struct Header {
  uint64_t magic;
  uint32_t version, slots;
  uint64_t slot_bytes, requests_at, responses_at, slots_at, bytes;
  alignas(alignment) uint32_t request_tail;   // by the client: how many requests it has written
  alignas(alignment) uint32_t response_tail;  // by the server: how many responses it has written; a futex
  alignas(alignment) uint32_t waiting;        // by the client: not 0 while it sleeps on response_tail, and is to be woken
  alignas(alignment) uint32_t server_asleep;  // by the server: not 0 while requests need its eventfd to be written
};
static_assert(sizeof(Header) == 320);

enum class Operation : uint32_t { predict = 1, cancel = 2 };

struct alignas(alignment) RequestEntry {
  uint64_t tag;  // comes back with the answer; to cancel, that of the request
  uint32_t operation, slot;
  uint32_t model;   // a handle, as a control message gave it
  uint32_t inputs;  // TensorEntries at the beginning of the slot
  int32_t priority;
  uint32_t reserved;
  uint64_t outputs_at;   // in the slot: the answer's TensorEntries, then its tensors; or the text of an error
  uint64_t deadline_ns;  // of CLOCK_MONOTONIC; 0: none
};
static_assert(sizeof(RequestEntry) == 64);

struct alignas(alignment) ResponseEntry {
  uint64_t tag;
  uint32_t slot, failure;  // a FailureKind; 0: answered
  uint32_t outputs;        // TensorEntries at outputs_at
  uint32_t text_bytes;     // of an error, at outputs_at
  uint64_t queue_ns, compute_ns;
};
static_assert(sizeof(ResponseEntry) == 64);

struct TensorEntry {
  uint32_t dtype, rank;  // a DType
  uint64_t at, bytes;    // in the slot, aligned to 64
  uint64_t reserved;
  int64_t extents[most_rank];
};
static_assert(sizeof(TensorEntry) == 96);

// Where everything is; the same arithmetic on both sides.
struct Layout {
  uint32_t slots = 0;
  uint64_t slot_bytes = 0;
  uint64_t requests_at() const { return sizeof(Header); }
  uint64_t responses_at() const { return requests_at() + uint64_t{2} * slots * sizeof(RequestEntry); }
  uint64_t slots_at() const { return (responses_at() + slots * sizeof(ResponseEntry) + 4095) / 4096 * 4096; }
  uint64_t bytes() const { return slots_at() + slots * slot_bytes; }
};

inline uint64_t aligned(uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// A word that the other side writes or reads too.
inline uint32_t load(const uint32_t& word) { return std::atomic_ref(const_cast<uint32_t&>(word)).load(std::memory_order_seq_cst); }
inline void store(uint32_t& word, uint32_t value) { std::atomic_ref(word).store(value, std::memory_order_seq_cst); }

// Sleeps while `word` is `value`, at most so long; wakes all who sleep on it.
void futex_wait(uint32_t& word, uint32_t value, int64_t nanoseconds);
void futex_wake(uint32_t& word);

}  // namespace tutti::serve::local
