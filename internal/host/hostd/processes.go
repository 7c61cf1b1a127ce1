package hostd

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/linux/descriptors"
	"scaffold.dev/scaffold/sid"
)

// A socketLister lists sockets.
type socketLister func(sid.Proto, uint32, func(sockets.DiagSocket))

// findProcesses fills in whose the flows are: the socket by sock_diag, its file by /proc.
func findProcesses(flows []*apiv1.Flow, each socketLister) {
	byInode := map[uint32][]*apiv1.Flow{}
	for _, proto := range []sid.Proto{sid.TCP, sid.UDP} {
		wanted := map[uint16][]*apiv1.Flow{} // by local port
		for _, f := range flows {
			if at, err := netip.ParseAddrPort(f.Local); err == nil && f.Proto == proto.String() {
				wanted[at.Port()] = append(wanted[at.Port()], f)
			}
		}
		if len(wanted) > 0 {
			each(proto, sockets.StateAny&^sockets.StateListen, func(s sockets.DiagSocket) { match(byInode, wanted, s) })
		}
	}
	findFiles(byInode)
}

// match finds the flows of a socket. A datagram socket may be bound to no address and connected to no
// peer, and serves many flows.
func match(byInode map[uint32][]*apiv1.Flow, wanted map[uint16][]*apiv1.Flow, s sockets.DiagSocket) {
	if s.Inode == 0 {
		return
	}
	for _, f := range wanted[s.Local.Port()] {
		if !s.Local.Addr().IsUnspecified() && s.Local.String() != f.Local {
			continue
		}
		anyPort := f.Proto == sid.UDP.String() && strings.HasPrefix(f.Peer, "["+s.Peer.Addr().String()+"]")
		if s.Peer.Port() == 0 || s.Peer.String() == f.Peer || anyPort {
			byInode[s.Inode] = append(byInode[s.Inode], f)
		}
	}
}

// findFiles looks through /proc for the processes that hold the sockets.
func findFiles(byInode map[uint32][]*apiv1.Flow) {
	if len(byInode) == 0 {
		return
	}
	descriptors.Each(func(link, target string) bool {
		if inode, ok := descriptors.Socket(target); ok {
			claim(byInode, inode, descriptors.Process(link))
		}
		return len(byInode) > 0
	})
}

func claim(byInode map[uint32][]*apiv1.Flow, inode uint32, dir string) {
	flows, ok := byInode[inode]
	if !ok {
		return
	}
	delete(byInode, inode)
	pid, _ := strconv.ParseUint(filepath.Base(dir), 10, 32)
	comm, _ := os.ReadFile(dir + "/comm")
	for _, f := range flows {
		f.Pid, f.Process = uint32(pid), strings.TrimSpace(string(comm))
	}
}
