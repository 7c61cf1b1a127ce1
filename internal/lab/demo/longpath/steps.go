package longpath

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"scaffold.dev/scaffold/internal/lab/agents"
)

// What is asked of a boosted connection: so much of what the path carries, and of what CUBIC does by itself.
const (
	enough = 0.9
	faster = 10
)

// rates has iperf3 send from the server, where the loss is, by CUBIC, by BBR, and by CUBIC over the agents.
func rates(ctx context.Context, s *show) (string, bool, error) {
	var mbit [3]float64
	for i, by := range []struct {
		control string
		port    int
	}{{"cubic", plainIperf}, {"bbr", plainIperf}, {"cubic", iperfPort}} {
		rate, err := s.iperf(ctx, by.control, by.port)
		if err != nil {
			return "", false, err
		}
		mbit[i] = rate / 1e6
	}
	seen := fmt.Sprintf("%.0f Mbit/s boosted, of %.0f that the path carries; by itself CUBIC %.1f (a %.0fth), BBR %.0f", mbit[2], carries/1e6, mbit[0], mbit[2]/mbit[0], mbit[1])
	// Each packet crosses each switch twice on its way by an agent. Where all of them are programs on two processors, these are
	// full before the path is: what fills it is shown without switches.
	return seen, (mbit[2]*1e6 >= enough*carries || !s.lab.File.Bare) && mbit[2] >= faster*mbit[0], nil
}

// iperf is one connection, in bits a second.
func (s *show) iperf(ctx context.Context, control string, port int) (float64, error) {
	return agents.Iperf(ctx, s.lab, "c1", "-c", s.server.String(), "-p", strconv.Itoa(port), "-C", control, "-R", "-t", "6", "-O", "2")
}

func (s *show) url(port int, file string) string {
	return "http://" + net.JoinHostPort(s.server.String(), strconv.Itoa(port)) + "/" + file
}

// A fetch is a curl that runs. What it gets is looked at as it comes, and not kept.
type fetch struct {
	cmd  *exec.Cmd
	sum  hash.Hash
	came atomic.Int64
	said bytes.Buffer
}

// Write takes what curl has got.
func (f *fetch) Write(b []byte) (int, error) {
	f.came.Add(int64(len(b)))
	return f.sum.Write(b)
}

// curl begins to fetch the large file.
func (s *show) curl(ctx context.Context) (*fetch, error) {
	f := &fetch{sum: sha256.New()}
	cmd, err := s.lab.Command(ctx, "curl", "-sS", "-w", "%{stderr}%{http_code} %header{x-client} %{speed_download}", s.url(webPort, "large"))
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = f, &f.said
	f.cmd = cmd
	return f, s.lab.Start("c1", cmd)
}

// right reports whether the whole file came; curl has ended.
func (f *fetch) right(want [sha256.Size]byte) bool { return [sha256.Size]byte(f.sum.Sum(nil)) == want }

// rate is what curl says that it was, in Mbit/s; curl has ended.
func (f *fetch) rate() float64 {
	fields := strings.Fields(f.said.String())
	if len(fields) == 0 {
		return 0
	}
	rate, _ := strconv.ParseFloat(fields[len(fields)-1], 64)
	return rate * 8 / 1e6
}

// reaches waits until so much of the file has come.
func (f *fetch) reaches(ctx context.Context, bytes int64) error {
	for ctx.Err() == nil {
		if f.came.Load() >= bytes {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("curl has not got %d bytes: %w", bytes, ctx.Err())
}

// patience is how long a fetch may take that takes a few seconds.
const patience = 30 * time.Second

func fetches(ctx context.Context, s *show) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f, err := s.curl(ctx)
	if err != nil {
		return "", false, err
	}
	if err := f.cmd.Wait(); err != nil {
		return fmt.Sprintf("curl: %v: %s", err, f.said.String()), false, ctx.Err()
	}
	var code int
	var client string
	var rate float64
	if _, err := fmt.Sscan(f.said.String(), &code, &client, &rate); err != nil {
		return "", false, fmt.Errorf("curl said %q: %w", f.said.String(), err)
	}
	right := f.right(s.files.sum)
	without, err := s.alone(ctx, s.part)
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("%.0f Mbit/s, by itself %s; the file is right: %v, nginx saw %s", rate*8/1e6, without, right, client), right && code == 200 && client == s.client.String(), nil
}

// alone measures what the server sends past the agents, in Mbit/s, by each of the kernel's congestion controls.
func (s *show) alone(ctx context.Context, measure func(context.Context) (float64, error)) (string, error) {
	var seen []string
	for _, by := range []struct{ name, kernels string }{{"BBR", "bbr"}, {"CUBIC", "cubic"}} { // CUBIC last: it stays
		if err := s.control(ctx, "s1", s.client, by.kernels); err != nil {
			return "", err
		}
		rate, err := measure(ctx)
		if err != nil {
			return "", err
		}
		seen = append(seen, fmt.Sprintf("%s %.1f", by.name, rate))
	}
	slices.Reverse(seen)
	return strings.Join(seen, ", "), nil
}

// awhile is for how long a transfer is looked at that would take a minute.
const awhile = "4"

// part fetches the large file for a while, past the agents, and returns the rate in Mbit/s.
func (s *show) part(ctx context.Context) (float64, error) {
	out, err := s.lab.Output(ctx, "c1", "curl", "-s", "--max-time", awhile, "-o", os.DevNull, "-w", "%{speed_download}", s.url(plainPort, "large"))
	const late = 28 // curl's exit code where its time is over
	var ended *exec.ExitError
	if err != nil && !(errors.As(err, &ended) && ended.ExitCode() == late) {
		return 0, fmt.Errorf("curl: %w: %s", err, out)
	}
	var rate float64
	if _, err := fmt.Sscan(string(out), &rate); err != nil {
		return 0, fmt.Errorf("curl said %q: %w", out, err)
	}
	return rate * 8 / 1e6, nil
}

// firstByte compares when the first byte of a small file comes, in turns.
func firstByte(ctx context.Context, s *show) (string, bool, error) {
	const turns = 5
	best := map[int]float64{}
	for range turns {
		for _, port := range []int{plainPort, webPort} {
			out, err := s.lab.Output(ctx, "c1", "curl", "-sS", "-o", os.DevNull, "-w", "%{time_starttransfer}", s.url(port, "small"))
			if err != nil {
				return "", false, fmt.Errorf("curl: %w: %s", err, out)
			}
			took, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
			if err != nil {
				return "", false, fmt.Errorf("curl said %q: %w", out, err)
			}
			if was, ok := best[port]; !ok || took < was {
				best[port] = took
			}
		}
	}
	added := (best[webPort] - best[plainPort]) * 1000
	// A busy machine delays some of them by milliseconds: the best of five is the path's.
	return fmt.Sprintf("%.1f ms after the start, %.1f without: %+.1f ms", best[webPort]*1000, best[plainPort]*1000, added), added < 10, nil
}

func syncs(ctx context.Context, s *show) (string, bool, error) {
	to := filepath.Join(s.dir, "copied")
	began := time.Now()
	out, err := s.lab.Output(ctx, "c1", "rsync", "-a", s.tree(rsyncPort), to)
	took := time.Since(began)
	if err != nil {
		return "", false, fmt.Errorf("rsync: %w: %s", err, out)
	}
	same := 0
	for i := range treeFiles {
		name := fmt.Sprintf("%03d", i)
		want, err := os.ReadFile(filepath.Join(s.files.dir, "tree", name))
		got, err2 := os.ReadFile(filepath.Join(to, name))
		if err == nil && err2 == nil && bytes.Equal(got, want) {
			same++
		}
	}
	without, err := s.alone(ctx, s.partOfTree)
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("%d of %d files are the same, %.0f MB at %.0f Mbit/s, by itself %s", same, treeFiles, treeFiles*treeBytes/1e6, treeFiles*treeBytes*8/1e6/took.Seconds(), without), same == treeFiles, nil
}

func (s *show) tree(port int) string {
	return "rsync://" + net.JoinHostPort(s.server.String(), strconv.Itoa(port)) + "/files/tree/"
}

// partOfTree copies the tree for a while, past the agents, and returns the rate in Mbit/s of what has come.
func (s *show) partOfTree(ctx context.Context) (float64, error) {
	to, err := os.MkdirTemp(s.dir, "part")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	out, err := s.lab.Output(ctx, "c1", "timeout", awhile, "rsync", "-a", "--partial", s.tree(plainRsync), to)
	took := time.Since(began)
	const late = 124 // timeout's exit code
	var ended *exec.ExitError
	if err != nil && !(errors.As(err, &ended) && ended.ExitCode() == late) {
		return 0, fmt.Errorf("rsync: %w: %s", err, out)
	}
	var came int64
	err = filepath.WalkDir(to, func(_ string, e fs.DirEntry, err error) error {
		if info, _ := e.Info(); err == nil && info.Mode().IsRegular() {
			came += info.Size()
		}
		return err
	})
	return float64(came) * 8 / 1e6 / took.Seconds(), err
}
