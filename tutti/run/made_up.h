// Data to time programs with: normal random floats, zeros for everything else.
#pragma once

#include "tutti/run/predictor.h"

namespace tutti {

void set_made_up_inputs(Predictor& predictor);

}  // namespace tutti
