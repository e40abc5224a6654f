// Which format a data file has: by its first bytes where they tell, else by its name.
#pragma once

#include <string>

namespace tutti {

std::string suffix_of(const std::string& path);  // ".csv", in lower case

enum class DataFormat { npy, npz, csv, json_lines };  // the last is only written

// Of a file that is there. Throws InvalidArgument when its bytes and its name disagree or say nothing, Unsupported for what is recognised
// and not read (images, folders, pickles, models).
DataFormat format_of_input(const std::string& path);

// Of a file to be written, by its name.
DataFormat format_of_output(const std::string& path);

}  // namespace tutti
