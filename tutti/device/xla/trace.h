// What a plugin says of an error besides its message, such as where in its own sources it arose: several lines. Errors are one line, so
// these go to whoever asks for them: `tutti --verbose`.
#pragma once

#include <functional>
#include <string_view>

namespace tutti::xla {

using TraceListener = std::function<void(std::string_view lines)>;

// For the process; an empty one hears nothing. Called by the thread that fails, one at a time, before the error is thrown.
void hear_traces(TraceListener listener);
void tell_trace(std::string_view lines);

}  // namespace tutti::xla
