// The instruction sets that vector code is compiled for, in one place: the baseline of the compiler, AVX2 and AVX-512 on x86-64, NEON on
// arm64. Included before any header of Highway. Builds with sanitizers leave AVX-512 out: it is the same source, and half a minute of
// compiling.
#pragma once

#ifdef TUTTI_FEW_VECTOR_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif
