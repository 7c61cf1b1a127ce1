package features

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
)

// Diverting is what an agent of boost needs at its ports, tried as Probe does.
func Diverting() []Feature {
	all := []probe{
		{Feature{Name: "programs at interfaces (tc)", Needed: true, Since: "4.1",
			Cost: "no connection comes to the agent"}, tc},
		{Feature{Name: "giving packets to sockets (bpf_sk_assign)", Needed: true, Since: "5.7",
			Cost: "what is for another machine's address does not get to the agent's socket"}, assign},
		{Feature{Name: "ring buffers", Needed: true, Since: "5.8", Cost: "the agent hears of no connection"}, ringbuf},
		{Feature{Name: "tables of prefixes (LPM)", Needed: true, Since: "4.11", Cost: "no lane is found"}, prefixTable},
	}
	found := make([]Feature, len(all))
	for i, p := range all {
		found[i] = p.Feature
		if found[i].Err = pretended(p.Name); found[i].Err == nil {
			found[i].Err = p.try()
		}
	}
	return found
}

func assign() error {
	return errors.Join(features.HaveProgramHelper(ebpf.SchedCLS, asm.FnSkAssign), features.HaveProgramHelper(ebpf.SchedCLS, asm.FnSkcLookupTcp))
}

func prefixTable() error { return features.HaveMapType(ebpf.LPMTrie) }
