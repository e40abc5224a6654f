// Memory that several processes of one machine see.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace tutti {

// One process makes it under a name that nobody else has, of zeros; the others open it. Nothing where that cannot be had. It stays as long
// as one of them holds it.
std::shared_ptr<std::byte> create_shared_memory(const std::string& name, size_t bytes);
std::shared_ptr<std::byte> open_shared_memory(const std::string& name, size_t bytes);
// When all have it, or never will: what still holds it is not concerned.
void forget_shared_memory(const std::string& name);

}  // namespace tutti
