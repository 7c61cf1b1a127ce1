// Package emubench measures the emulated network: the engine alone, end to end beside chains of kernel
// router namespaces and of Mininet's routers, its accuracy, and how large a network it holds.
package emubench
