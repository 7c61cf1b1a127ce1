package longpath

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
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
	return seen, mbit[2]*1e6 >= enough*carries && mbit[2] >= faster*mbit[0], nil
}

// iperf is one connection, in bits a second.
func (s *show) iperf(ctx context.Context, control string, port int) (float64, error) {
	return agents.Iperf(ctx, s.lab, "c1", "-c", s.server().String(), "-p", strconv.Itoa(port), "-C", control, "-R", "-t", "6", "-O", "2")
}

func (s *show) server() netip.Addr { return agents.Address(s.lab, "s1").Addr() }

func (s *show) url(port int, file string) string {
	return "http://" + net.JoinHostPort(s.server().String(), strconv.Itoa(port)) + "/" + file
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
	want := agents.Address(s.lab, "c1").Addr().String()
	right := f.right(s.files.sum)
	without, err := s.part(ctx)
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("%.0f Mbit/s (without agents %.1f), the file is right: %v, nginx saw %s", rate*8/1e6, without, right, client), right && code == 200 && client == want, nil
}

// part fetches the large file for some seconds, past the agents, and returns the rate in Mbit/s.
func (s *show) part(ctx context.Context) (float64, error) {
	out, err := s.lab.Output(ctx, "c1", "curl", "-s", "--max-time", "5", "-o", os.DevNull, "-w", "%{speed_download}", s.url(plainPort, "large"))
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
	out, err := s.lab.Output(ctx, "c1", "rsync", "-a", fmt.Sprintf("rsync://%v:%d/files/tree/", s.server(), rsyncPort), to)
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
	return fmt.Sprintf("%d of %d files are the same, %.0f MB after %.1f s: %.0f Mbit/s", same, treeFiles, treeFiles*treeBytes/1e6, took.Seconds(), treeFiles*treeBytes*8/1e6/took.Seconds()), same == treeFiles, nil
}

// workersDie kills the worker of each agent in turn while a file comes.
func workersDie(ctx context.Context, s *show) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f, err := s.curl(ctx)
	if err != nil {
		return "", false, err
	}
	for i, name := range []string{"x", "y"} {
		err := f.reaches(ctx, int64(large/4*(i+1)))
		if err == nil {
			err = s.agents.KillWorker(name)
		}
		if err != nil {
			return "", false, errors.Join(err, f.cmd.Wait())
		}
		s.say("the worker of agent %s was killed", name)
	}
	if err := f.cmd.Wait(); err != nil {
		return fmt.Sprintf("curl: %v: %s", err, f.said.String()), false, nil
	}
	right := f.right(s.files.sum)
	return fmt.Sprintf("one curl, the file is right: %v", right), right, nil
}

// resetCode is curl's exit code where a connection is reset; 18 would be that of one which ended too early.
const resetCode = 56

// agentDies kills both processes of the client's agent while a file comes, and then starts it again.
func agentDies(ctx context.Context, s *show) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f, err := s.curl(ctx)
	if err != nil {
		return "", false, err
	}
	err = f.reaches(ctx, large/4)
	if err == nil {
		err = s.agents.Kill("x")
	}
	ended := f.cmd.Wait()
	if err != nil {
		return "", false, errors.Join(err, ended)
	}
	code := f.cmd.ProcessState.ExitCode()
	if err := s.agents.Restart(ctx, "x"); err != nil {
		return "", false, err
	}
	said, _, _ := strings.Cut(f.said.String(), "\n")
	seen := fmt.Sprintf("curl's exit code is %d: %s", code, said)
	return seen + "; started again, the agent carries again", code == resetCode, nil
}
