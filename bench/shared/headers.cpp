// SPDX-License-Identifier: Apache-2.0
// A program for nothing but the headers that all benchmarks share to be compiled with (bench/CMakeLists.txt).
int main() {}
