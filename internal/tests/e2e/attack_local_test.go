package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/linux/private"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A trial is one thing that a user without rights does on a host; nil means that it worked.
type trial struct {
	what string
	err  error
}

// A local user: whatever he tries on a machine with a controller, routers and hosts, he is refused, and it runs on.
func TestALocalUserIsRefusedEverything(t *testing.T) {
	safety.Test(t, safety.Door)
	n := theNetwork(t)
	if !n.linux() {
		t.Skip("the same files and sockets as on the kernel's plane")
	}
	to := port(n.create("localuser"), 80)
	n.serveTCP("s1", to)
	n.serving("localuser", "tcp", 80, 1)
	talking, err := n.at("c1").Dial("tcp6", to)
	if err != nil {
		t.Fatal(err)
	}
	defer talking.Close()

	var all []trial
	for _, node := range []string{"c1", "r1", "ctl"} {
		daemon := n.daemonOf(node)
		n.at(node).Nobody(t, func() {
			all = append(all, ofSockets(node)...)
			all = append(all, ofKernel(node, daemon)...)
		})
	}
	paths := everything(t, private.Root)
	if len(paths.sockets) < 8 || len(paths.secrets) < 8 || len(paths.dirs) < 8 {
		t.Fatalf("%d sockets, %d secrets and %d directories below %s: is the lab elsewhere?", len(paths.sockets), len(paths.secrets), len(paths.dirs), private.Root)
	}
	nstest.Nobody(t, func() { all = append(all, ofFiles(paths)...) })
	for _, x := range all {
		if x.err == nil {
			t.Errorf("%s: it worked", x.what)
		}
	}
	if len(all) < 100 {
		t.Errorf("no more than %d things were tried", len(all))
	}

	fmt.Fprintln(talking, "still there")
	answer := make([]byte, 64)
	if k, err := talking.Read(answer); err != nil || !strings.Contains(string(answer[:k]), "still there") {
		t.Errorf("a flow of before: %q, %v", answer[:k], err)
	}
	if who := n.who("tcp6", to); who != "s1" {
		t.Errorf("a new flow went to %q", who)
	}
	for _, host := range []string{"c1", "s1"} {
		if s, err := n.local(host).GetHostStatus(t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{})); err != nil || s.Msg.State != "joined" {
			t.Errorf("%s: %v, %v", host, s, err)
		}
	}
}

// daemonOf is the process of a node's daemon.
func (n *network) daemonOf(node string) int {
	n.t.Helper()
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		line, _ := os.ReadFile(path)
		if bytes.Contains(line, []byte("\x00--socket\x00"+n.lab.Socket(node)+"\x00")) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			return pid
		}
	}
	n.t.Fatalf("no process has the socket %s", n.lab.Socket(node))
	return 0
}

// Tree is what daemons have made.
type tree struct{ sockets, secrets, locks, dirs []string }

// everything walks as root what lies below a directory.
func everything(t *testing.T, root string) (all tree) {
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile
		}
		if err != nil {
			return err
		}
		switch name := e.Name(); {
		case e.IsDir():
			all.dirs = append(all.dirs, path)
		case e.Type() == fs.ModeSocket:
			all.sockets = append(all.sockets, path)
		case strings.HasSuffix(name, "lock"):
			all.locks = append(all.locks, path)
		case strings.Contains(path, "/state/"), strings.Contains(path, "/data/"), strings.Contains(path, "/bpf/"), strings.HasSuffix(name, "key"):
			all.secrets = append(all.secrets, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ofFiles tries them. Nothing that it makes or removes would stay unseen.
func ofFiles(paths tree) (all []trial) {
	try := func(path, what string, err error) { all = append(all, trial{path + ": " + what, err}) }
	for _, path := range paths.sockets {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
		}
		try(path, "connect", err)
		try(path, "remove", os.Remove(path))
	}
	for _, path := range paths.secrets {
		_, err := os.ReadFile(path)
		try(path, "read", err)
	}
	for _, path := range paths.locks {
		f, err := os.Open(path)
		if err == nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			f.Close()
		}
		try(path, "lock", err)
	}
	for _, dir := range paths.dirs {
		try(dir, "write a file", os.WriteFile(dir+"/nobody", nil, 0o600))
		try(dir, "link", os.Symlink("/etc/passwd", dir+"/nobody-link"))
		try(dir, "bind", bound(dir+"/nobody.sock"))
		try(dir, "rename", os.Rename(dir, dir+"-nobody"))
	}
	return all
}

func bound(path string) error {
	l, err := net.Listen("unix", path)
	if err == nil {
		l.Close()
	}
	return err
}

// ofSockets tries the names in the abstract of the namespace: who can be connected to has to hang up without a word.
func ofSockets(node string) (all []trial) {
	list, err := os.ReadFile("/proc/thread-self/net/unix")
	if err != nil {
		return []trial{{node + ": list the sockets", nil}}
	}
	for line := range bytes.Lines(list) {
		f := strings.Fields(string(line))
		if len(f) < 8 || !strings.HasPrefix(f[7], "@") {
			continue
		}
		c, err := net.Dial("unix", f[7])
		if err == nil {
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			// A name that is only held is never accepted at: there is nobody who reads.
			if f[7] == "@scaffold-hostd" || f[7] == "@scaffold-routerd" {
				err = errors.New("nobody reads")
			} else {
				_, err = c.Read(make([]byte, 1))
			}
			c.Close()
		}
		all = append(all, trial{node + ": talk to " + f[7], err})
	}
	return all
}

// ofKernel tries what daemons may do.
func ofKernel(node string, daemon int) (all []trial) {
	try := func(what string, err error) { all = append(all, trial{node + ": " + what, err}) }
	socket := func(family, kind, proto int) error {
		fd, err := unix.Socket(family, kind, proto)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	try("a raw socket", socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_UDP))
	try("a packet socket", socket(unix.AF_PACKET, unix.SOCK_RAW, 0))
	if fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0); err == nil {
		try("a mark, by which packets stay inside the host", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 1))
		try("TCP's repair mode", unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_REPAIR, 1))
		try("a transparent socket", unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_TRANSPARENT, 1))
		unix.Close(fd)
	}
	for kind, command := range map[string]uintptr{"map": unix.BPF_MAP_GET_NEXT_ID, "program": unix.BPF_PROG_GET_NEXT_ID} {
		var attr [128]byte
		var err error
		if _, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr)); errno != 0 {
			err = errno
		}
		try("find a BPF "+kind, err)
	}
	for _, path := range []string{"net/ipv6/conf/all/forwarding", "net/ipv6/ip_nonlocal_bind", "net/ipv6/conf/lo/disable_ipv6"} {
		f, err := os.OpenFile("/proc/sys/"+path, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
		}
		try("set "+path, err)
	}
	try("kill the daemon", unix.Kill(daemon, 0))
	for _, file := range []string{"environ", "mem", "maps", "fd", "ns/net"} {
		var err error
		if file == "ns/net" {
			_, err = os.Readlink(fmt.Sprintf("/proc/%d/%s", daemon, file))
		} else {
			var f *os.File
			if f, err = os.Open(fmt.Sprintf("/proc/%d/%s", daemon, file)); err == nil {
				f.Close()
			}
		}
		try("the daemon's "+file, err)
	}
	return all
}
