package bpftest

import (
	"fmt"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/packet/header"
)

// Verdicts of tc programs.
const (
	Next     = -1 // TC_ACT_UNSPEC: the packet goes on
	OK       = 0
	Shot     = 2
	Redirect = 7
)

// EthernetLen is the length of the header that Run puts before the packet.
const EthernetLen = header.EthernetLen

// MACs of the frames that Run builds, so that a test can see them swapped.
var (
	SrcMAC = [6]byte{2, 0, 0, 0, 0, 0xaa}
	DstMAC = [6]byte{2, 0, 0, 0, 0, 0xbb}
)

// A Result is what a program did with one packet.
type Result struct {
	Verdict int
	Packet  []byte // without the Ethernet header
	Swapped bool   // the MAC addresses changed places
}

func (r Result) String() string {
	names := map[int]string{Next: "next", OK: "ok", Shot: "shot", Redirect: "redirect"}
	return fmt.Sprintf("%s swapped=%v %x", names[r.Verdict], r.Swapped, r.Packet)
}

// skBuff is struct __sk_buff of linux/bpf.h as far as BPF_PROG_TEST_RUN reads it.
type skBuff struct {
	Len, PktType, Mark, QueueMapping, Protocol uint32
	VlanPresent, VlanTCI, VlanProto, Priority  uint32
	IngressIfindex, Ifindex, TCIndex, Hash     uint32
	Cb                                         [5]uint32
	TCClassid, Data, DataEnd, NapiID           uint32
	Family, RemoteIP4, LocalIP4                uint32
	RemoteIP6, LocalIP6                        [4]uint32
	RemotePort, LocalPort, DataMeta, Pad       uint32
	FlowKeys                                   uint64
	Tstamp                                     uint64
	WireLen, GSOSegs                           uint32
	Sk                                         uint64
	GSOSize                                    uint32
	TstampType                                 uint8
	_                                          [3]byte
	HWTstamp                                   uint64
}

// Run gives the IPv6 packet to the program as a frame of the interface with number ifindex (1, the
// loopback, exists everywhere).
func Run(prog *ebpf.Program, ifindex uint32, packet []byte) (Result, error) {
	return RunMarked(prog, ifindex, 0, packet)
}

// RunMarked is Run for a packet whose socket has a mark.
func RunMarked(prog *ebpf.Program, ifindex, mark uint32, packet []byte) (Result, error) {
	frame := header.AppendEthernet(make([]byte, 0, EthernetLen+len(packet)), DstMAC[:], SrcMAC[:])
	out := make([]byte, len(packet)+512)
	opts := ebpf.RunOptions{
		Data:    append(frame, packet...),
		DataOut: out,
		Context: skBuff{Ifindex: ifindex, Mark: mark},
		Repeat:  1,
	}
	verdict, err := prog.Run(&opts)
	if err != nil {
		return Result{}, fmt.Errorf("run %v on %d bytes: %w", prog, len(packet), err)
	}
	r := Result{Verdict: int(int32(verdict))}
	if len(opts.DataOut) >= EthernetLen {
		r.Swapped = [6]byte(opts.DataOut[:6]) == SrcMAC
		r.Packet = opts.DataOut[EthernetLen:]
	}
	return r, nil
}

// Counters reads a per-CPU array of 64-bit counters, such as the "drops" map, summed over CPUs.
func Counters(m *ebpf.Map) ([]uint64, error) {
	sums := make([]uint64, m.MaxEntries())
	for i := range sums {
		var each []uint64
		if err := m.Lookup(uint32(i), &each); err != nil {
			return nil, fmt.Errorf("read counter %d of %v: %w", i, m, err)
		}
		for _, n := range each {
			sums[i] += n
		}
	}
	return sums, nil
}

// Moved lists the counters that differ.
func Moved(before, after []uint64) []int {
	var ids []int
	for i := range after {
		if after[i] != before[i] {
			ids = append(ids, i)
		}
	}
	return ids
}

// RunFrame gives a whole frame of Ethernet, of whatever protocol, to the program, and returns what became of it.
func RunFrame(prog *ebpf.Program, ifindex, mark uint32, frame []byte) (verdict int, out []byte, err error) {
	opts := ebpf.RunOptions{
		Data: frame, DataOut: make([]byte, len(frame)+512), Context: skBuff{Ifindex: ifindex, Mark: mark}, Repeat: 1,
	}
	v, err := prog.Run(&opts)
	if err != nil {
		return 0, nil, fmt.Errorf("run %v on a frame of %d bytes: %w", prog, len(frame), err)
	}
	return int(int32(v)), opts.DataOut, nil
}
