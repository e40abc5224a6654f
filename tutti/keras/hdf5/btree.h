// The format's two kinds of B-tree, walked whole and in order: lookups by key are not needed to read everything once.
#pragma once

#include <functional>

#include "tutti/keras/hdf5/storage.h"

namespace tutti::keras::hdf5 {

// Version 1: of old groups (0) and of chunks (1). Calls `leaf` with the key left of each child of the lowest level, and the child's
// address.
enum class Tree1 : uint8_t { group = 0, chunk = 1 };
void walk_tree_1(Storage& storage, uint64_t address, Tree1 type, size_t key_bytes,
                 const std::function<void(std::span<const std::byte> key, uint64_t child)>& leaf);

// Version 2. The record's layout depends on the type.
enum class Tree2 : uint8_t { huge_object = 1, link_name = 5, attribute_name = 8, chunk = 10, filtered_chunk = 11 };
void walk_tree_2(Storage& storage, uint64_t address, Tree2 type, const std::function<void(std::span<const std::byte> record)>& each);

}  // namespace tutti::keras::hdf5
