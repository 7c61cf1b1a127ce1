// Command kernels runs the tests that need a kernel's help on other kernels than this machine's: `make
// test-kernels`. Debian's packages are fetched by apt and unpacked into a cache, nothing is installed. Each
// kernel boots under qemu with this machine's own files, read only, below a tmpfs, and this program as its
// first process, which runs the tests that were built outside and puts their output into a shared directory.
// What came out is a table of kernels, features and tests; -record writes it into docs/kernels.md.
package main
