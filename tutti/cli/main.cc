// The program: a verb is its file and its line here.
#include "tutti/cli/signals.h"
#include "tutti/cli/verbs.h"

int main(int argc, char** argv) {
  using namespace tutti::cli;
  end_cleanly_on_signals();
  constexpr Verb verbs[] = {
      {"devices", "List devices: what is there, and for an absent one why", devices},
      {"ensemble", "Make one model of several: their outputs reduced to mean, median, quantiles, votes, ...", ensemble},
      {"explain", "Show what a model compiles to: passes, kernels, memory, and where the time goes", explain},
      {"forecast", "Forecast: a model and a series in, the next steps with a band out, scored and drawn", forecast},
      {"inspect", "Show a model: layers, shapes, parameters, cost, and everything in it that is not supported", inspect},
      {"predict", "Predict: a model and its input in, the outputs out", predict},
  };
  return run_command_line(verbs, argc, argv);
}
