// The verbs, each in its file.
#pragma once

#include "tutti/cli/verb.h"

namespace tutti::cli {

Action devices(Options& options);
Action ensemble(Options& options);
Action explain(Options& options);
Action forecast(Options& options);
Action inspect(Options& options);
Action predict(Options& options);

}  // namespace tutti::cli
