#pragma once

#include <string>
#include <string_view>

namespace fuse {

// The name of a card by its PCI ids, for a card that no driver of its vendor
// has named: "NVIDIA A100-SXM4-40GB".  Empty for one that is not known here.
std::string model_by_id(std::string_view vendor, std::string_view device);

// A model as inventories and requests call it: lower case, without the vendor,
// blanks as dashes: "a100-sxm4-40gb".
std::string kind_of_model(std::string_view model);

// The kind of a card: of its model, else of its ids ("10de-20b0").
std::string kind_of_card(std::string_view model, std::string_view vendor, std::string_view device);

}  // namespace fuse
