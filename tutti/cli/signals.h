// Ctrl-C and friends: what is finished is kept, what is half-written disappears.
#pragma once

namespace tutti::cli {

// From now on SIGINT, SIGTERM and SIGHUP end the process with 128 + their number, whatever it is doing, its unfinished outputs removed.
// Called before any other thread exists.
void end_cleanly_on_signals();

}  // namespace tutti::cli
