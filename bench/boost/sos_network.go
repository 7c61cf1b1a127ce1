package boost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/bench/sos"
)

var sosNetwork = SosExperiment{
	About: sos.Result{
		Name: "sos_network", Title: "Buffers, packets and disks", Thesis: "section 3.4",
		Setting: "One stream of iperf3 over agents and a path of 50 ms whose rate is more than the machine carries, with each size of packets (MTU) on all links, and with the kernel's TCP buffers at the agents as they are (6 and 4 MiB at most) and as the thesis has them (64 MiB); then, with these, a file that is read from disk at the client and written to disk at the server, until it is there (fsync).",
		Lacks:   "The thesis tells of 10 Gbit/s with 2044 bytes and of twice that with 65520, at 56 Gbit/s. Here the emulated path, which handles each packet in user space, has the same two processors as agents and hosts: larger packets help it first. In Mbit/s; look at what is carried of the rate with 1500 bytes.",
	},
	Lab: sosNetworkLab,
	run: (*sosRun).network,
}

// sosNetworkLab has links that carry the largest packets of all; interfaces then have smaller ones.
const sosNetworkLab = `
name: sosnetwork
nodes:
  c1: host
  x: {kind: plain}
  y: {kind: plain}
  s1: host
links:
  - {ends: [c1, x], mtu: 65520}
  - {ends: [x, y], mtu: 65520, delay: 25ms, rate: 10Gbit, queue: 62500KB, seed: 1}
  - {ends: [y, s1], mtu: 65520}
`

// sosMTUs are sizes of packets, with the rate that the thesis tells of, in Mbit/s: 10 Gbit/s, and the most of all.
var sosMTUs = []struct {
	bytes  int
	thesis float64
}{{1500, 0}, {2044, 10_000}, {9000, 0}, {65520, 23_220}}

// sosBuffers are limits of TCP's buffers, to receive and to send: the kernel's own, and the thesis'.
var sosBuffers = []struct{ name, receive, send string }{
	{"default buffers", "4096 131072 6291456", "4096 16384 4194304"},
	{"tuned buffers", "4096 87380 67108864", "4096 65536 67108864"},
}

// Sizes of the file.
const (
	sosFile      = 256 << 20
	sosFileQuick = 32 << 20
)

// network measures each size of packets with either buffers, and then files.
func (r *sosRun) network(ctx context.Context) error {
	sizes := sosMTUs
	if r.opt.Quick {
		sizes = sizes[1:2]
	}
	return r.boosted(ctx, func(b *rig) error {
		for _, size := range sizes {
			of := fmt.Sprintf("MTU %d", size.bytes)
			if err := b.mtu(ctx, size.bytes); err != nil {
				return err
			}
			for i, buffers := range sosBuffers {
				if err := b.buffers(ctx, buffers.receive, buffers.send); err != nil {
					return err
				}
				c := b.boosted()
				if err := b.turns(ctx, of+", "+buffers.name, c); err != nil {
					return err
				}
				thesis := 0.
				if i > 0 {
					thesis = size.thesis
				}
				r.put(of, buffers.name, "Mbit/s", thesis, each(c.all, megabits)...)
			}
			o, err := observed(ctx, r.lab, func() (float64, error) { return r.fromDisk(ctx, b) })
			if err != nil {
				return fmt.Errorf("%s, a file: %w", of, err)
			}
			r.put(of, "file to file", "Mbit/s", 0, each([]outcome{o}, megabits)...)
		}
		return nil
	})
}

// mtu has all interfaces of the lab send packets of at most so many bytes.
func (b *rig) mtu(ctx context.Context, bytes int) error {
	for _, node := range []string{"c1", "x", "y", "s1"} {
		for _, p := range b.lab.Plan().Node(node).Ports {
			if out, err := b.lab.Output(ctx, node, "ip", "link", "set", "dev", p.Dev, "mtu", fmt.Sprint(bytes)); err != nil {
				return fmt.Errorf("ip link in %s: %w: %s", node, err, out)
			}
		}
	}
	return nil
}

// buffers limits TCP's buffers at the agents, which begin anew with them.
func (b *rig) buffers(ctx context.Context, receive, send string) error {
	for _, node := range []string{"x", "y"} {
		out, err := b.lab.Output(ctx, node, "sysctl", "-qw", "net.ipv4.tcp_rmem="+receive, "net.ipv4.tcp_wmem="+send)
		if err != nil {
			return fmt.Errorf("sysctl in %s: %w: %s", node, err, out)
		}
	}
	return b.agents.RestartWith(ctx, "")
}

// fromDisk copies a file over the agents, from disk to disk, in bits a second.
func (r *sosRun) fromDisk(ctx context.Context, b *rig) (rate float64, err error) {
	dir, err := r.lab.LargeDir()
	if err != nil {
		return 0, err
	}
	size := int64(sosFile)
	if r.opt.Quick {
		size = sosFileQuick
	}
	path := filepath.Join(dir, "from")
	if err := writeZeros(path, size); err != nil {
		return 0, err
	}
	l, err := b.agents.Listen(ctx, ownBoosted)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	there := make(chan error, 1)
	began := time.Now()
	go func() { there <- receiveFile(l, filepath.Join(dir, "to"), size) }() // ends with its connection, or with l
	if err := sendFile(b, path); err != nil {
		l.Close()
		return 0, errors.Join(err, <-there)
	}
	err = <-there
	return float64(size) * 8 / time.Since(began).Seconds(), err
}

// writeZeros writes a file that is on disk and nowhere else.
func writeZeros(path string, size int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for left, buf := size, make([]byte, ownBuffer); left > 0; left -= ownBuffer {
		if _, err := f.Write(buf[:min(left, ownBuffer)]); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return forget(f)
}

func sendFile(b *rig, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := b.agents.Dial(ownBoosted)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = io.Copy(c, f)
	return err
}

// receiveFile writes what comes by the next connection to disk.
func receiveFile(l net.Listener, path string, size int64) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(f, c)
	if err == nil && n != size {
		err = fmt.Errorf("%d of %d bytes arrived", n, size)
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// forget has the kernel forget what it has of a file in memory.
func forget(f *os.File) error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
