// An NVIDIA driver of CUDA 12.4 that has no more to say: libcuda.so.1 where there is none.
extern "C" int cuDriverGetVersion(int* version) {
  *version = 12040;
  return 0;
}
