// Floats nearer to zero than 1.2e-38, "denormal" ones, take a processor many times as long as others. Training makes them by the thousand:
// a moment whose gradient has become zero shrinks until it is one, and stays. TensorFlow and JAX take them for zero.
#pragma once

#include <cstdint>

namespace tutti {

class FlushDenormals {
 public:
  // What this thread reads and makes of them is zero from now on, or is not.
  static void set(bool flushes) {
    if (is_on() != flushes) write(flushes ? read() | bits : read() & ~bits);
  }
  static bool is_on() { return bits != 0 && (read() & bits) == bits; }

  // While it lives.
  FlushDenormals() : before_(is_on()) { set(true); }
  ~FlushDenormals() { set(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint64_t bits = 0x8040;  // results, operands
  static uint64_t read() { return __builtin_ia32_stmxcsr(); }
  static void write(uint64_t word) { __builtin_ia32_ldmxcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
  static constexpr uint64_t bits = uint64_t{1} << 24;
  static uint64_t read() {
    uint64_t word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void write(uint64_t word) { asm volatile("msr fpcr, %0" ::"r"(word)); }
#else
  static constexpr uint64_t bits = 0;
  static uint64_t read() { return 0; }
  static void write(uint64_t) {}
#endif
  bool before_;
};

}  // namespace tutti
