#include <algorithm>
#include <memory>

#include "backends/cpu/recipe.hpp"
#include "base/check.hpp"

namespace terrace::cpu {
namespace {

using Iterator = std::unique_ptr<dnnl_primitive_desc_iterator, void (*)(dnnl_primitive_desc_iterator_t)>;

/// An iterator borrows the operation's description. The one in the primitive's own descriptor lives as long
/// as that does; the one that made it is gone.
Iterator implementations(const dnnl::primitive_desc_base& primitive) {
  const_dnnl_op_desc_t operation = nullptr;
  const_dnnl_primitive_attr_t attributes = nullptr;
  dnnl_primitive_desc_iterator_t iterator = nullptr;
  const bool made = dnnl_primitive_desc_query(primitive.get(), dnnl_query_op_d, 0,
                                              static_cast<void*>(&operation)) == dnnl_success &&
                    dnnl_primitive_desc_get_attr(primitive.get(), &attributes) == dnnl_success &&
                    dnnl_primitive_desc_iterator_create(&iterator, operation, attributes, engine().get(),
                                                        nullptr) == dnnl_success;
  return {made ? iterator : nullptr,
          [](dnnl_primitive_desc_iterator_t one) { dnnl_primitive_desc_iterator_destroy(one); }};
}

std::string name_of(const Recipe& recipe) { return recipe.primitive.impl_info_str(); }

bool is_reference(const Recipe& recipe) { return name_of(recipe).find("ref") != std::string::npos; }

bool takes_the_same(const Recipe& a, const Recipe& b) {
  return std::all_of(a.bindings.begin(), a.bindings.end(), [&](const Binding& binding) {
    return a.desc(binding.argument) == b.desc(binding.argument);
  });
}

}  // namespace

std::vector<Recipe> alternatives(const Recipe& recipe) {
  std::vector<Recipe> found;
  const Iterator iterator = implementations(recipe.primitive);
  if (!iterator) return found;
  const auto is_known = [&](const Recipe& one) {
    const auto has_its_name = [&](const Recipe& other) { return name_of(other) == name_of(one); };
    return has_its_name(recipe) || std::any_of(found.begin(), found.end(), has_its_name);
  };
  do {
    Recipe other = recipe;
    other.primitive.reset(dnnl_primitive_desc_iterator_fetch(iterator.get()));
    if (!is_known(other) && !is_reference(other) && takes_the_same(recipe, other))
      found.push_back(std::move(other));
  } while (dnnl_primitive_desc_iterator_next(iterator.get()) == dnnl_success);
  return found;
}

Recipe implemented_as(const Recipe& recipe, const std::string& name) {
  if (name_of(recipe) == name) return recipe;
  const std::vector<Recipe> others = alternatives(recipe);
  const auto found =
      std::find_if(others.begin(), others.end(), [&](const Recipe& other) { return name_of(other) == name; });
  check(found != others.end(), "a lowered kernel names an implementation that there is");
  return *found;
}

}  // namespace terrace::cpu
