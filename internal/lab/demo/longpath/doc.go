// Package longpath shows what boost does, on the lab of examples/boost.yaml: unmodified programs over a long path with loss,
// by themselves and over two agents, and what becomes of them when parts of an agent die.
package longpath
