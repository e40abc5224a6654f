// Predicting whatever there is, however much: through run/pipeline to a file, a table or JSON.
#pragma once

#include <memory>

#include "tutti/cli/console.h"
#include "tutti/cli/predict_input.h"

namespace tutti::cli {

// Throws InvalidArgument in the end when items failed, and Interrupted when a signal came before the last one.
void predict_all(Console& console, const PredictSettings& settings, const std::shared_ptr<const keras::AnyModel>& model,
                 PredictInput& input);

}  // namespace tutti::cli
