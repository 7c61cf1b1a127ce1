// Package features finds out by trial what this kernel offers to Scaffold: each probe creates the map,
// loads the program or makes the link that is needed, and takes it away again. Version numbers say
// little about distributions' kernels.
package features

// A Feature is one thing that Scaffold uses of the kernel.
type Feature struct {
	Name   string
	Needed bool   // without it a host cannot run at all
	Router bool   // nor can a service router
	Since  string // the kernel that brought it
	Cost   string // what is lost without it
	Err    error  // nil where the kernel has it
}

// Probe tries them all. It takes some milliseconds, root, and leaves nothing.
func Probe() []Feature {
	all := make([]Feature, len(probes))
	for i, p := range probes {
		all[i] = p.Feature
		if all[i].Err = pretended(p.Name); all[i].Err == nil {
			all[i].Err = p.try()
		}
	}
	return all
}

type probe struct {
	Feature
	try func() error
}

var probes = []probe{
	{Feature{Name: "programs at interfaces (tc)", Needed: true, Router: true, Since: "4.1",
		Cost: "no rewriting of addresses: neither host nor router can run"}, tc},
	{Feature{Name: "programs at interfaces by link (tcx)", Since: "6.6",
		Cost: "clsact filters are used instead: other tools can remove them, and an upgrade detaches them for a moment"}, tcx},
	{Feature{Name: "kernel types (BTF)", Needed: true, Since: "5.5, CONFIG_DEBUG_INFO_BTF",
		Cost: "the hooks cannot tell how a process ended, nor load at all"}, kernelTypes},
	{Feature{Name: "ring buffers", Needed: true, Since: "5.8",
		Cost: "the daemon hears nothing from the kernel"}, ringbuf},
	{Feature{Name: "ring buffers in a map of maps", Needed: true, Since: "5.8",
		Cost: "hosts in namespaces cannot share the hooks of the machine"}, nestedRing},
	{Feature{Name: "programs at the root cgroup", Needed: true, Since: "5.7",
		Cost: "sockets do not register by themselves"}, rootAttach},
	{Feature{Name: "hook when a socket is released", Needed: true, Since: "5.9",
		Cost: "a dead program is noticed by its host only"}, release},
	{Feature{Name: "namespace cookie in socket hooks", Needed: true, Since: "5.7",
		Cost: "sockets of different namespaces cannot be told apart"}, cookie},
	{Feature{Name: "the task behind a socket", Needed: true, Since: "5.11",
		Cost: "a crash looks like an ordinary close"}, task},
	{Feature{Name: adoption, Since: "6.9",
		Cost: "a TCP connection whose host is gone is reset, never continued elsewhere"}, adopt},
	{Feature{Name: "BPF file system", Needed: true, Router: true, Since: "4.4",
		Cost: "flows do not outlive a restart of the daemon"}, bpffs},
}
