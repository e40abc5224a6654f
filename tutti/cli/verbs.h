// The verbs, each in its file.
#pragma once

#include "tutti/cli/verb.h"

namespace tutti::cli {

Action bench(Options& options);
Action compile(Options& options);
Action devices(Options& options);
Action ensemble(Options& options);
Action explain(Options& options);
Action fit(Options& options);
Action forecast(Options& options);
Action inspect(Options& options);
Action predict(Options& options);
Action scale(Options& options);
Action serve(Options& options);

}  // namespace tutti::cli
