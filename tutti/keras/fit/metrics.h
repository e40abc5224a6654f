// The metrics of keras.metrics: a batch gives sums, sums of all batches give the number.
#pragma once

#include <optional>

#include "tutti/graph/graph.h"
#include "tutti/keras/fit/named.h"

namespace tutti::keras {

struct MetricInputs {
  Value target, prediction;  // [batch, ...]
  Value weight;              // of samples [batch, ...], or absent: weighted_metrics have one
  Value mask;                // Keras's mask of the prediction, or absent; heard by metrics that are means, as in Keras
};

class Metric {
 public:
  // Throws InvalidArgument for unknown names and arguments. "accuracy" is the one that fits the shapes, as in Keras.
  Metric(const Json& json, const Shape& target, const Shape& prediction);
  // The mean of something else, whose sums are its total and how much it stands for.
  static Metric mean(std::string name) { return Metric(std::move(name)); }

  // As Keras logs it: the text that was given, the name a file has for it, or the class in snake_case.
  const std::string& name() const { return name_; }
  // Whether more is better; nothing: a mean of something else.
  std::optional<bool> rises() const;
  // What a batch adds: f32 [count].
  Value sums(const MetricInputs& inputs) const;
  double result(const std::vector<double>& sums) const;

 private:
  explicit Metric(std::string name);
  bool is_mean_of_something_ = false;
  std::string name_;
  Named named_;
  const struct MetricRow* row_;
};

// Its arguments as Keras takes them, with its name: Keras would make up another one for the second of a kind in a process.
Json written_metric(const Named& named);

}  // namespace tutti::keras
