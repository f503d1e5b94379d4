// SPDX-License-Identifier: Apache-2.0
// Stands for the library of an NVIDIA driver that knows CUDA 10.1 and few of its functions.
extern "C" int cuDriverGetVersion(int* version) {
  *version = 10010;
  return 0;
}
