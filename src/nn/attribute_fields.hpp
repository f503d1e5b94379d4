// The one list of what each attribute struct holds, for all that walks over attributes: to and from
// the plain values of a graph.
#pragma once

#include <tuple>
#include <type_traits>

#include "terrace/operation.hpp"

namespace terrace {

template <class Struct, class Type>
struct Field {
  constexpr Field(const char* field_name, Type Struct::*field_member)
      : name(field_name), member(field_member) {}
  const char* name;
  Type Struct::*member;
};

template <class Struct>
inline constexpr std::tuple<> kFields{};
template <>
inline constexpr std::tuple kFields<Window>{
    Field{"kernel", &Window::kernel},   Field{"stride", &Window::stride},
    Field{"padding", &Window::padding}, Field{"dilation", &Window::dilation},
    Field{"groups", &Window::groups},   Field{"include_padding", &Window::include_padding},
};
template <>
inline constexpr std::tuple kFields<NormAttributes>{
    Field{"epsilon", &NormAttributes::epsilon},
    Field{"momentum", &NormAttributes::momentum},
    Field{"relu", &NormAttributes::relu},
};
template <>
inline constexpr std::tuple kFields<MatmulAttributes>{
    Field{"transpose_a", &MatmulAttributes::transpose_a},
    Field{"transpose_b", &MatmulAttributes::transpose_b},
    Field{"scale", &MatmulAttributes::scale},
};
template <>
inline constexpr std::tuple kFields<SoftmaxAttributes>{
    Field{"scale", &SoftmaxAttributes::scale},
    Field{"causal", &SoftmaxAttributes::causal},
};
template <>
inline constexpr std::tuple kFields<SlopeAttributes>{Field{"slope", &SlopeAttributes::slope}};
template <>
inline constexpr std::tuple kFields<GeluAttributes>{
    Field{"tanh_approximation", &GeluAttributes::tanh_approximation}};
template <>
inline constexpr std::tuple kFields<AddAttributes>{Field{"relu", &AddAttributes::relu}};
template <>
inline constexpr std::tuple kFields<ConcatAttributes>{Field{"axis", &ConcatAttributes::axis}};
template <>
inline constexpr std::tuple kFields<HeadsAttributes>{
    Field{"parts", &HeadsAttributes::parts},
    Field{"heads", &HeadsAttributes::heads},
};
template <>
inline constexpr std::tuple kFields<EmbeddingAttributes>{
    Field{"first", &EmbeddingAttributes::first},
    Field{"rows", &EmbeddingAttributes::rows},
};
template <>
inline constexpr std::tuple kFields<DropoutAttributes>{
    Field{"probability", &DropoutAttributes::probability},
    Field{"stream", &DropoutAttributes::stream},
};
template <>
inline constexpr std::tuple kFields<LossAttributes>{
    Field{"target", &LossAttributes::target},
    Field{"weight", &LossAttributes::weight},
};
template <>
inline constexpr std::tuple kFields<OptimizerAttributes>{
    Field{"momentum", &OptimizerAttributes::momentum},
    Field{"beta1", &OptimizerAttributes::beta1},
    Field{"beta2", &OptimizerAttributes::beta2},
    Field{"epsilon", &OptimizerAttributes::epsilon},
    Field{"weight_decay", &OptimizerAttributes::weight_decay},
    Field{"decoupled_decay", &OptimizerAttributes::decoupled_decay},
};

/// Calls visit(name, member) for every field of an attribute struct, constant or not.
template <class Struct, class Visit>
void for_each_field(Struct& attributes, Visit visit) {
  std::apply([&](const auto&... field) { (visit(field.name, attributes.*field.member), ...); },
             kFields<std::remove_const_t<Struct>>);
}

}  // namespace terrace
