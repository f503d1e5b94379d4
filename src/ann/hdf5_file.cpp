// SPDX-License-Identifier: Apache-2.0
#include "ann/hdf5_file.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>

namespace terrace::ann {
namespace {

// The part of HDF5's C interface that is used here, as versions 1.10 and later declare it.
using Id = std::int64_t;
using Size = unsigned long long;
constexpr Id kDefault = 0;
constexpr unsigned kReadOnly = 0;
constexpr Size kNowhere = ~Size{0};

struct Library {
  int (*open)() = nullptr;
  int (*print_errors)(Id stack, void* function, void* data) = nullptr;
  Id (*open_file)(const char* name, unsigned flags, Id access) = nullptr;
  int (*close_file)(Id) = nullptr;
  Id (*open_matrix)(Id file, const char* name, Id access) = nullptr;
  int (*close_matrix)(Id) = nullptr;
  Size (*offset)(Id matrix) = nullptr;
  Id (*type_of)(Id matrix) = nullptr;
  int (*equal)(Id type, Id other) = nullptr;
  int (*close_type)(Id) = nullptr;
  Id (*space_of)(Id matrix) = nullptr;
  int (*dimensions)(Id space) = nullptr;
  int (*extent)(Id space, Size* sizes, Size* most) = nullptr;
  int (*close_space)(Id) = nullptr;
  const Id *floats = nullptr, *bytes = nullptr;
};

Error refuse(std::string reason) { return {ErrorCode::invalid_argument, std::move(reason)}; }

Result<Library> load() {
  // Debian builds several; elsewhere there is one.
  void* handle = nullptr;
  for (const char* name : {"libhdf5_serial.so", "libhdf5.so", "libhdf5_serial.so.103", "libhdf5.so.103",
                           "libhdf5.so.200", "libhdf5.so.310"}) {
    if (handle == nullptr) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (handle == nullptr)
    return Error{ErrorCode::unsupported,
                 "needs the HDF5 library, which is not installed (Debian: libhdf5-103-1)"};
  Library all;
  bool whole = true;
  const auto find = [&](auto& pointer, const char* symbol) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(handle, symbol));
    whole = whole && pointer != nullptr;
  };
  find(all.open, "H5open");
  find(all.print_errors, "H5Eset_auto2");
  find(all.open_file, "H5Fopen");
  find(all.close_file, "H5Fclose");
  find(all.open_matrix, "H5Dopen2");
  find(all.close_matrix, "H5Dclose");
  find(all.offset, "H5Dget_offset");
  find(all.type_of, "H5Dget_type");
  find(all.equal, "H5Tequal");
  find(all.close_type, "H5Tclose");
  find(all.space_of, "H5Dget_space");
  find(all.dimensions, "H5Sget_simple_extent_ndims");
  find(all.extent, "H5Sget_simple_extent_dims");
  find(all.close_space, "H5Sclose");
  find(all.floats, "H5T_IEEE_F32LE_g");
  find(all.bytes, "H5T_STD_U8LE_g");
  if (!whole || all.open() < 0)
    return Error{ErrorCode::unsupported, "needs an HDF5 library of version 1.10 or later"};
  return all;
}

/// Something of the library's that is open. Closed when it goes.
class Handle {
 public:
  Handle(Id id, int (*close)(Id)) : id_(id), close_(close) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (good()) close_(id_);
  }
  bool good() const { return id_ >= 0; }
  Id id() const { return id_; }

 private:
  Id id_;
  int (*close_)(Id);
};

Result<Hdf5Matrix> describe(const Library& hdf5, const Hdf5Name& name) {
  // Else the library prints what it thinks of a file.
  hdf5.print_errors(kDefault, nullptr, nullptr);
  const Handle file(hdf5.open_file(name.file.c_str(), kReadOnly, kDefault), hdf5.close_file);
  if (!file.good()) return refuse("is no HDF5 file, or a damaged one");
  const Handle matrix(hdf5.open_matrix(file.id(), name.matrix.c_str(), kDefault), hdf5.close_matrix);
  if (!matrix.good()) return refuse(fmt::format("has no matrix '{}'", name.matrix));
  const Handle space(hdf5.space_of(matrix.id()), hdf5.close_space),
      type(hdf5.type_of(matrix.id()), hdf5.close_type);
  if (!space.good() || !type.good() || hdf5.dimensions(space.id()) != 2)
    return refuse(fmt::format("has a '{}' that is no matrix of two dimensions", name.matrix));
  Size sizes[2] = {0, 0};
  hdf5.extent(space.id(), sizes, nullptr);
  const bool floats = hdf5.equal(type.id(), *hdf5.floats) > 0, bytes = hdf5.equal(type.id(), *hdf5.bytes) > 0;
  if (!floats && !bytes)
    return refuse(fmt::format("has a '{}' of neither 32-bit floats nor bytes", name.matrix));
  const Size start = hdf5.offset(matrix.id());
  if (start == kNowhere)
    return refuse(fmt::format(
        "has a '{}' that is empty, compressed or in chunks (h5repack -l CONTI makes it whole)", name.matrix));
  return Hdf5Matrix{{sizes[0], sizes[1], floats ? ElementType::f32 : ElementType::u8}, start};
}

}  // namespace

std::optional<Hdf5Name> parse_hdf5_name(const std::filesystem::path& path) {
  const std::string& text = path.native();
  for (const std::string_view ending : {".hdf5", ".h5"}) {
    if (text.ends_with(ending)) return Hdf5Name{path};
    const std::size_t at = text.rfind(std::string(ending) + ':');
    if (at == std::string::npos) continue;
    const std::size_t end = at + ending.size();
    return Hdf5Name{text.substr(0, end), text.substr(end + 1)};
  }
  return std::nullopt;
}

Result<Hdf5Matrix> find_hdf5_matrix(const Hdf5Name& name) {
  // Debian's library is not built for several threads.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static const Result<Library> library = load();
  if (!library) return library.error();
  return describe(*library, name);
}

}  // namespace terrace::ann
