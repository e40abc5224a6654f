// The program: a verb is its file and its line here.
#include "tutti/cli/signals.h"
#include "tutti/cli/verbs.h"

int main(int argc, char** argv) {
  using namespace tutti::cli;
  end_cleanly_on_signals();
  constexpr Verb verbs[] = {
      {"bench", "Measure this machine: small models predicted one by one, in batches, as an ensemble, and trained", bench},
      {"compile", "Compile a model for an accelerator, here or not, and keep the executable", compile},
      {"devices", "List devices: what is there, and for an absent one why", devices},
      {"ensemble", "Make one model of several: their outputs reduced to mean, median, quantiles, votes, ...", ensemble},
      {"explain", "Show what a model compiles to: passes, kernels, memory, and where the time goes", explain},
      {"fit", "Train: every model of a job file, on one device or several", fit},
      {"forecast", "Forecast: a model and a series in, the next steps with a band out, scored and drawn", forecast},
      {"inspect", "Show a model: layers, shapes, parameters, cost, and everything in it that is not supported", inspect},
      {"predict", "Predict: a model and its input in, the outputs out", predict},
      {"scale", "Train on one device and on several, and say where the difference to the ideal goes", scale},
      {"serve", "Serve: own the device for many processes, which send samples and get predictions", serve},
  };
  return run_command_line(verbs, argc, argv);
}
