// UTF-8, for text that comes from files and goes to terminals and JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tutti {

// Bytes of the valid UTF-8 sequence at `at` (1 to 4), or 0: overlong forms, surrogates and beyond U+10FFFF are invalid.
size_t utf8_length(std::string_view text, size_t at);
char32_t utf8_decode(std::string_view sequence);  // of exactly one valid sequence
void utf8_append(std::string& text, char32_t code);

// Of the letters A to Z; everything else stays.
std::string in_lower_case(std::string_view text);

}  // namespace tutti
