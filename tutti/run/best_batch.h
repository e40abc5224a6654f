// How many samples to compute together.
#pragma once

#include "tutti/run/batch_predictor.h"

namespace tutti {

// For so many samples, if that is known. 32 as in Keras, fewer of large samples on the processor; models so small that a sample gets
// cheaper in larger batches are measured on the device, with programs that `predictor` keeps. Models that mix the samples of a batch stay
// at 32, and samples of which 32 are more than 64 MiB at what fits in.
int64_t best_batch(BatchPredictor& predictor, const std::vector<Type>& rows, std::optional<int64_t> samples);

// That many samples of zeros.
std::vector<Tensor> made_of(const std::vector<Type>& rows, int64_t count);

}  // namespace tutti
