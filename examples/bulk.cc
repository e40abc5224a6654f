// Many samples with a function of your own that makes them: bulk MODEL ROW,COLUMN... draws a spot at each place.
#include <tutti/run/pipeline.h>
#include <tutti/tutti.h>

#include <cstdio>

int main(int count, char** words) try {
  auto model = tutti::load(count > 1 ? words[1] : "spots.keras");
  tutti::BatchPredictor predictor(model.shared(), {.batch = 4});
  auto places = tutti::items_of_names({words + std::min(count, 2), words + count});

  tutti::PipelineStages stages;
  stages.source = places.get();
  stages.prepare = [](const tutti::Item& item, tutti::Slots slots) {  // on many threads; what it throws is this item's error
    unsigned row = 0, column = 0;
    if (std::sscanf(item.name.c_str(), "%u,%u", &row, &column) != 2 || row > 15 || column > 15) throw std::runtime_error("no place");
    auto* pixels = reinterpret_cast<float*>(slots[0].data());
    std::fill_n(pixels, 16 * 16, 0.0f);
    pixels[row * 16 + column] = 1.0f;
  };
  stages.compute = [&](const std::vector<tutti::Tensor>& samples) {  // begins; what it returns gives the results
    return [outputs = predictor.predict(samples)] { return outputs; };
  };
  stages.write = [](const tutti::FinishedBatch& batch) {  // in the order of the items
    for (size_t i = 0; i < batch.names.size(); ++i) {
      std::printf("%s:", batch.names[i].c_str());
      if (!batch.errors[i].empty()) std::printf(" %s", batch.errors[i].c_str());
      for (size_t k = 0; k < 4 && batch.errors[i].empty(); ++k) std::printf(" %.2f", batch.outputs[0].as<float>()[i * 4 + k]);
      std::printf("\n");
    }
  };
  const std::atomic<bool> stop = false;
  tutti::Pipeline({{tutti::DType::f32, {16, 16, 1}}}, {.batch = 4, .workers = 2}, stages).run(stop);
} catch (const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
