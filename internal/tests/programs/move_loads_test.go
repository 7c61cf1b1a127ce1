package programs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A download is curl, whose output is taken as far as it is wanted: however long the hosts take to move, the
// last part waits at the server until then.
type download struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	got    bytes.Buffer
	count  atomic.Int64
	want   atomic.Int64 // not more than this is taken
	ended  chan struct{}
	err    error // valid after ended
}

// blobSize is more than all that is wanted before the end, and more by far than the buffers on the way hold.
const blobSize = 96 << 20

// curl takes a file; the server saw one request, and curl made one connection.
func (j *journey) curl(dir string, blob []byte) *rider {
	j.t.Helper()
	url := j.url("/blob")
	d := &download{cmd: exec.Command("curl", "-sS", "--fail", "-w", "%{stderr}%{num_connects} connection, %{size_download} bytes", url), ended: make(chan struct{})}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		j.t.Fatal(err)
	}
	d.cmd.Stderr = &d.stderr
	if err := j.net.lab.Start("c1", d.cmd); err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { d.cmd.Process.Kill() })
	go d.take(out.Read)
	return &rider{
		name: "curl", pid: d.cmd.Process.Pid, links: 1, step: 500_000, count: d.count.Load, want: d.want.Store, failed: d.early,
		ended: func() bool { return false },
		finish: func(t *testing.T) {
			d.want.Store(math.MaxInt64)
			nstest.Receive(t, "curl, which does not end", also(d.ended))
			if want := fmt.Sprintf("1 connection, %d bytes", len(blob)); d.err != nil || d.stderr.String() != want {
				t.Fatalf("curl ended with %v and printed %q, want %q", d.err, d.stderr.String(), want)
			}
			same(t, "curl", d.got.Bytes(), blob)
			log, err := os.ReadFile(filepath.Join(dir, "access.log"))
			if n := bytes.Count(log, []byte("\n")); n != 1 || err != nil {
				t.Errorf("nginx served %d requests, want one (%v):\n%s", n, err, log)
			}
		},
	}
}

func (d *download) take(read func([]byte) (int, error)) {
	defer close(d.ended)
	buf := make([]byte, 32<<10)
	for {
		for d.count.Load() >= d.want.Load() {
			time.Sleep(time.Millisecond)
		}
		n, err := read(buf)
		d.got.Write(buf[:n])
		d.count.Add(int64(n))
		if err != nil {
			d.err = d.cmd.Wait()
			return
		}
		if d.want.Load() < blobSize {
			time.Sleep(5 * time.Millisecond) // some of it comes while hosts move
		}
	}
}

// early is an error if it has ended although nobody wanted it to.
func (d *download) early() error {
	select {
	case <-d.ended:
		return fmt.Errorf("curl ended after %d of %d bytes: %v: %s", d.count.Load(), blobSize, d.err, d.stderr.String())
	default:
		return nil
	}
}

func (j *journey) nginx(blob []byte) string {
	dir := nginxDir(j.t, "s1", j.service.at(80), blob)
	j.own("s1", dir, "nginx", "-c", dir+"/nginx.conf", "-e", dir+"/error.log")
	return dir
}

// program is a rider that comes to its end by itself.
func (j *journey) program(name string, links int, argv ...string) (*rider, *nstest.Proc) {
	p := j.net.start(j.t, "c1", "", argv)
	ended := func() bool {
		select {
		case <-p.Done():
			return true
		default:
			return false
		}
	}
	failed := func() error {
		if ended() && p.Wait() != nil {
			return fmt.Errorf("%v: %s", p.Wait(), p.Output())
		}
		return nil
	}
	return &rider{name: name, pid: p.PID(), links: links, ended: ended, failed: failed}, p
}

// scp copies a file at 2 MB/s.
func (j *journey) scp(config string, blob []byte) *rider {
	j.t.Helper()
	dir := place(j.t)
	from, to := put(j.t, dir, "blob", string(blob)), filepath.Join(dir, "there")
	r, p := j.program("scp", 0, "scp", "-q", "-l", "16000", "-F", config, from, "root@"+j.host+":"+to)
	r.step, r.count = 100_000, func() int64 {
		if info, err := os.Stat(to); err == nil {
			return info.Size()
		}
		return 0
	}
	r.finish = func(t *testing.T) {
		if err := p.Wait(); err != nil || p.Output() != "" {
			t.Errorf("scp ended with %v and printed %q", err, p.Output())
		}
		sameFile(t, to, blob)
	}
	return r
}

// iperf3 sends at a fixed rate. The server tells what it got, five times a second.
func (j *journey) iperf3(proto string, server server, port string, argv ...string) *rider {
	j.t.Helper()
	argv = append([]string{"iperf3", "--json", "-t", "15", "-c", j.host, "-p", port}, argv...)
	got := regexp.MustCompile(`(?m)sec +(?:[1-9]\d*(?:\.\d+)?|0\.\d*[1-9]\d*) [KM]?Bytes`)
	count := func() int64 { return int64(len(got.FindAllString(server.proc.Output(), -1))) }
	r, p := j.program("iperf3 "+proto, 2, argv...)
	for tries := 1; j.refused(r, p, count) && tries < 10; tries++ {
		r, p = j.program(r.name, 2, argv...)
	}
	r.step, r.count = 2, count
	r.finish = func(t *testing.T) {
		err := p.Wait()
		var done report
		if e := json.Unmarshal([]byte(p.Output()), &done); err != nil || e != nil || done.Error != "" {
			t.Fatalf("iperf3: %v, %v, %q\n%s\nits server:\n%s", err, e, done.Error, tail(p.Output()), tail(server.proc.Output()))
		}
		if len(done.Start.Connected) != 1 {
			t.Errorf("iperf3 opened %d connections for data, want one", len(done.Start.Connected))
		}
		t.Logf("%d bytes sent, %d received; %d datagrams, %d lost", done.End.SumSent.Bytes, done.End.SumReceived.Bytes, done.End.Sum.Packets, done.End.Sum.Lost)
	}
	return r
}

// refused reports whether the server's UDP socket, which it opens when it is asked to, was not known in time:
// on a machine with much else to do that takes longer than a refusal is held back (docs/protocol.md §3.5).
// Nothing has moved yet.
func (j *journey) refused(r *rider, p *nstest.Proc, count func() int64) bool {
	j.t.Helper()
	nstest.Wait(j.t, j.net.lab.LogPath("s1", "hostd"), func() error {
		if !r.ended() && count() == 0 {
			return fmt.Errorf("%s: nothing has arrived", r.name)
		}
		return nil
	})
	return r.ended() && strings.Contains(p.Output(), "Connection refused")
}

func (j *journey) iperf3Server(port string) server {
	return j.own("s1", place(j.t), "iperf3", "-s", "--forceflush", "-i", "0.2", "-f", "k", "-B", j.addr.String(), "-p", port)
}
