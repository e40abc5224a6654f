// Times the convolutions of ResNet50 and MobileNetV2 (224x224, one image) one by one: `convolution [threads]`. A line is a shape, how often
// the network has it, the median time and the speed counted in the operations of the definition (Winograd's algorithm does fewer).
#include "tutti/device/cpu/gemm/convolution.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <tuple>
#include <vector>

#include "tutti/device/cpu/gemm/aligned.h"
#include "tutti/device/cpu/gemm/depthwise.h"

using namespace tutti::cpu;

namespace {

using Layer = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;  // height, channels, filters, kernel, stride, groups

std::vector<Layer> resnet50() {
  std::vector<Layer> layers = {{224, 3, 64, 7, 2, 1}};
  int64_t height = 56, channels = 64;
  for (auto [filters, blocks] : {std::pair{64, 3}, {128, 4}, {256, 6}, {512, 3}}) {
    for (int block = 0; block < blocks; ++block) {
      const int64_t stride = block == 0 && filters > 64 ? 2 : 1;
      if (block == 0) layers.emplace_back(height, channels, filters * 4, 1, stride, 1);
      layers.emplace_back(height, channels, filters, 1, stride, 1);
      height /= stride;
      layers.emplace_back(height, filters, filters, 3, 1, 1);
      layers.emplace_back(height, filters, filters * 4, 1, 1, 1);
      channels = filters * 4;
    }
  }
  return layers;
}

std::vector<Layer> mobilenet_v2() {
  std::vector<Layer> layers = {{224, 3, 32, 3, 2, 1}};
  int64_t height = 112, channels = 32;
  for (auto [expansion, filters, blocks, first_stride] :
       {std::tuple{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}}) {
    for (int block = 0; block < blocks; ++block) {
      const int64_t wide = channels * expansion, stride = block == 0 ? first_stride : 1;
      if (expansion > 1) layers.emplace_back(height, channels, wide, 1, 1, 1);
      layers.emplace_back(height, wide, wide, 3, stride, wide);
      height /= stride;
      layers.emplace_back(height, wide, filters, 1, 1, 1);
      channels = filters;
    }
  }
  layers.emplace_back(height, channels, 1280, 1, 1, 1);
  return layers;
}

std::shared_ptr<float[]> ramp(int64_t size) {
  auto values = aligned_floats(size);
  for (int64_t i = 0; i < size; ++i) values[i] = static_cast<float>(i % 61) / 61 - 0.4f;
  return values;
}

// The median of several runs, in seconds.
template <class Run>
double median_time(const Run& run) {
  std::vector<double> times;
  for (int i = 0; i < 31; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(times.begin(), times.begin() + 15, times.end());
  return times[15];
}

double time_of(const Layer& layer, int threads, double& operations) {
  const auto& [height, channels, filters, kernel, stride, groups] = layer;
  const int64_t margin = kernel / 2;
  ConvolutionShape shape;
  shape.input = {1, height, height};
  shape.kernel = {1, kernel, kernel};
  shape.strides = {1, stride, stride};
  shape.low = shape.high = {0, margin, margin};
  shape.channels = channels, shape.filters = filters, shape.groups = groups;
  const int64_t size = kernel * kernel * channels / groups * filters, pixels = shape.output_pixels();
  operations = 2.0 * static_cast<double>(pixels * size);
  const auto x = ramp(height * height * channels), weights = ramp(size), bias = ramp(filters), y = ramp(pixels * filters);
  if (DepthwiseConvolution::handles(shape)) {
    const DepthwiseConvolution convolution(shape, weights.get());
    return median_time([&] { convolution.run(x.get(), relu(bias.get()), y.get(), threads); });
  }
  const Convolution convolution(shape, weights.get());
  const auto workspace = ramp(convolution.workspace(threads));
  return median_time([&] { convolution.run(x.get(), relu(bias.get()), y.get(), workspace.get(), threads); });
}

}  // namespace

int main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : 1;
  for (const auto& [name, layers] : {std::pair{"ResNet50", resnet50()}, {"MobileNetV2", mobilenet_v2()}}) {
    std::map<Layer, int> times;
    for (const Layer& layer : layers) ++times[layer];
    double total = 0;
    for (const auto& [layer, often] : times) {
      double operations = 0;
      const double seconds = time_of(layer, threads, operations);
      total += often * seconds;
      const auto& [height, channels, filters, kernel, stride, groups] = layer;
      fmt::print("{:4} {:5} -> {:5}, {}x{} stride {}{} x{}: {:8.1f} us, {:6.1f} GFLOP/s\n", height, channels, filters, kernel, kernel,
                 stride, groups > 1 ? " depthwise" : "", often, seconds * 1e6, operations / seconds * 1e-9);
    }
    fmt::print("{}: {:.2f} ms with {} threads\n", name, total * 1e3, threads);
  }
}
