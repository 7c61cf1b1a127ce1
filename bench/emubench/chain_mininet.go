package emubench

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/bench/place"
)

// mininetKind is a chain of Mininet's routers: Debian's package, and its LinuxRouter for IPv6.
const mininetKind = "Mininet"

//go:embed mininet.py
var mininetScript string

// debianPython has the packages of Debian; another one in PATH has not.
const debianPython = "/usr/bin/python3"

// ErrNoMininet says that there is no Mininet to compare with.
var ErrNoMininet = errors.New("no Mininet to compare with: as root, run scripts/packages.sh bench, or apt-get install --no-install-recommends mininet")

// FindMininet is ErrNoMininet where Mininet is not installed.
func FindMininet(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, debianPython, "-B", "-c", "import mininet.net")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w (%s: %w: %s)", ErrNoMininet, debianPython, err, lastLine(out))
	}
	return nil
}

// apart is the start of a command that runs in namespaces of its own for processes, mounts and network.
// Mininet kills programs by name when it cleans up, and removes files of the temporary directory and
// interfaces by pattern: here it finds only its own.
var apart = []string{"unshare", "--pid", "--fork", "--mount-proc", "--mount", "--net", "--kill-child", "sh", "-ec",
	`mount -t tmpfs tmpfs /tmp; mount -t sysfs sysfs /sys; exec "$@"`, "sh"}

// newMininetChain makes a chain of n routers.
func newMininetChain(ctx context.Context, n int) (*Chain, error) {
	c := &Chain{Kind: mininetKind, Routers: n}
	return c.made(c.makeMininet(ctx))
}

func (c *Chain) makeMininet(ctx context.Context) error {
	nodes := make([][]string, c.Routers+2)
	for i := range nodes {
		nodes[i] = told(i, c.Routers)
	}
	ends, err := c.startMininet(ctx, nodes)
	if err == nil {
		err = c.enter(ends)
	}
	if err == nil {
		err = c.ready(ctx)
	}
	return err
}

// enter takes over the namespaces of the two hosts.
func (c *Chain) enter(ends []*os.File) (err error) {
	if c.from, err = place.Enter(ends[0]); err != nil {
		return errors.Join(err, ends[1].Close())
	}
	c.later(c.from.Close)
	if c.to, err = place.Enter(ends[1]); err != nil {
		return err
	}
	c.later(c.to.Close)
	return nil
}

// startMininet runs the script and returns the namespaces of the two hosts.
func (c *Chain) startMininet(ctx context.Context, nodes [][]string) ([]*os.File, error) {
	text, err := json.Marshal(nodes)
	if err != nil {
		return nil, err
	}
	near, far, err := controlPair()
	if err != nil {
		return nil, err
	}
	c.later(func() { near.Close() })
	cmd := exec.Command(apart[0], append(apart[1:], debianPython, "-B", "-c", mininetScript, string(text))...)
	said := &tail{}
	cmd.Dir = "/" // the temporary directory is another one there
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = said, said, []*os.File{far}
	err = c.startHere(cmd)
	far.Close()
	if err != nil {
		return nil, err
	}
	ends, err := receiveFiles(ctx, near, 2)
	if err != nil {
		c.Close()
		c.cleanup = nil
		return nil, fmt.Errorf("mininet with %d nodes: %w: %s", len(nodes), err, said)
	}
	return ends, nil
}

// startHere starts a program that ends with the chain, and with this process.
func (c *Chain) startHere(cmd *exec.Cmd) error {
	home, err := place.New() // its thread lives on: the program is told when that ends
	if err != nil {
		return err
	}
	c.later(home.Close)
	if err := home.Start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	c.later(func() {
		cmd.Process.Kill() // it may be gone
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	return nil
}

// controlPair is a pair of connected sockets, the second for a child.
func controlPair() (near *net.UnixConn, far *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	far = os.NewFile(uintptr(fds[1]), "far end")
	file := os.NewFile(uintptr(fds[0]), "near end")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, nil, errors.Join(err, far.Close())
	}
	return conn.(*net.UnixConn), far, nil
}

// mininetTime bounds the start of a chain of 64 routers.
const mininetTime = 2 * time.Minute

// receiveFiles waits for a message with n files.
func receiveFiles(ctx context.Context, c *net.UnixConn, n int) ([]*os.File, error) {
	c.SetReadDeadline(time.Now().Add(mininetTime)) //nolint:errcheck // a socket has one
	defer context.AfterFunc(ctx, func() { c.Close() })()
	oob := make([]byte, syscall.CmsgSpace(4*n))
	_, size, _, _, err := c.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:size])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("it ended before its network was there"), err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "namespace of a host"))
	}
	if len(files) != n {
		return nil, fmt.Errorf("%d namespaces came, not %d", len(files), n)
	}
	return files, nil
}
