package hostd

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/bpf/sockets"
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
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range pids {
		if len(byInode) == 0 {
			return
		}
		files, err := os.ReadDir(dir + "/fd")
		if err != nil {
			continue // gone, or not ours to see
		}
		for _, f := range files {
			target, _ := os.Readlink(filepath.Join(dir, "fd", f.Name()))
			number, ok := strings.CutPrefix(target, "socket:[")
			inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32)
			if ok && err == nil {
				claim(byInode, uint32(inode), dir)
			}
		}
	}
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

// idleMS is how long ago a CLOCK_MONOTONIC stamp was.
func idleMS(stamp uint64) int64 { return max(0, (monotonic()-int64(stamp))/1e6) }

// monotonic is CLOCK_MONOTONIC in ns.
func monotonic() int64 {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) //nolint:errcheck // it is there
	return now.Nano()
}
