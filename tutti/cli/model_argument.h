// What verbs that take a MODEL share.
#pragma once

#include <memory>
#include <string>

#include "tutti/cli/verb.h"
#include "tutti/run/explain.h"
#include "tutti/run/fit_plan.h"
#include "tutti/run/load_model.h"

namespace tutti::cli {

inline constexpr const char* model_help = "A .keras, .h5 or .hdf5 file, or an ensemble's .toml";

// load_model() with a bar, and the time it took with --verbose.
std::shared_ptr<const keras::AnyModel> load_with_progress(Console& console, const std::string& path);

// --device; `device` has its default.
void add_device_option(Options& options, std::string& device);
// Opens the device that was asked for; "auto" becomes the name of the one that was found, which is said. An unknown name is wrong usage.
void open_asked_device(Console& console, std::string& device);

// --target, for a device that is not here: `device` becomes its name, "cuda@h100". A target without a platform is wrong usage.
void add_target_option(Options& options, std::string& target);
void add_target(std::string& device, const std::string& target);

// --precision
void add_precision_option(Options& options, std::string& precision);

// --extent, for models that leave extents open: binds them in `options`, and gives a note on it. Where there are none it is wrong usage.
void add_extent_option(Options& options, int64_t& extent);
std::string bind_extents(const keras::AnyModel& model, const std::string& file, int64_t extent, CompileOptions& options);

// --ensemble-plan
void add_plan_option(Options& options, std::string& plan);
// --fit-plan
void add_fit_plan_option(Options& options, std::string& plan);

}  // namespace tutti::cli
