// Package engine is the emulator as one lab uses it: what that process is told of the lab's plan, and what is asked of it
// while it runs. The links of a lab that are not veth pairs are the engine's, and so are emulated routers.
package engine
