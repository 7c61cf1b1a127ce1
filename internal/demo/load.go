package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"scaffold.dev/scaffold/internal/bench"
)

// The steady load: some curls side by side, each a fresh connection per request.
const (
	curls    = 32
	curlRate = "10/s"
	// patience is how long a curl waits for one request: longer than any hold-up that the demo causes.
	patience = "8"
)

// A Load is the steady load of the whole demo: unmodified curls that ask for the page by name.
type Load struct {
	*Requests
	cmds []*exec.Cmd
	wait sync.WaitGroup
}

// StartLoad starts the curls on node.
func StartLoad(rig *bench.Rig, node string) (*Load, error) {
	l := &Load{Requests: NewRequests()}
	for range curls {
		if err := l.startOne(rig, node); err != nil {
			l.Stop()
			return nil, err
		}
	}
	return l, nil
}

func (l *Load) startOne(rig *bench.Rig, node string) error {
	cmd := exec.Command("curl", "-sN", "--no-keepalive", "-H", "Connection: close", "--max-time", patience,
		"--rate", curlRate, "-w", curlFormat, "http://web.svc/?[1-1000000]")
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = in, in
	err = rig.Start(node, cmd)
	in.Close() // curl has it
	if err != nil {
		out.Close()
		return fmt.Errorf("start the load on %s: %w", node, err)
	}
	l.cmds = append(l.cmds, cmd)
	l.wait.Go(func() {
		defer out.Close()
		parseCurl(out, l.Add)
		io.Copy(io.Discard, out) //nolint:errcheck // a line too long for the scanner must not block curl
		cmd.Wait()               //nolint:errcheck // it ends by our signal
	})
	return nil
}

// Stop ends the curls and waits for them.
func (l *Load) Stop() {
	for _, cmd := range l.cmds {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	}
	l.wait.Wait()
	l.Close()
}

// A Burst is the outcome of one run of ApacheBench.
type Burst struct {
	Complete, Failed int
	Took             time.Duration
}

var (
	abComplete = regexp.MustCompile(`Complete requests:\s+(\d+)`)
	abReasons  = regexp.MustCompile(`\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)`)
	abNon2xx   = regexp.MustCompile(`Non-2xx responses:\s+(\d+)`)
)

// runAB runs ab on node, n requests over 8 connections at a time, meanwhile (if not nil) beside it.
func runAB(ctx context.Context, rig *bench.Rig, node string, n int, meanwhile func() error) (Burst, error) {
	// -l: the servers' pages differ, which ab would count as failures of length.
	cmd := exec.Command("ab", "-l", "-q", "-r", "-s", patience, "-n", strconv.Itoa(n), "-c", "8", "http://web.svc/")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := rig.Start(node, cmd); err != nil {
		return Burst{}, fmt.Errorf("start ab on %s: %w", node, err)
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	var side error
	if meanwhile != nil {
		side = meanwhile()
	}
	if err := errors.Join(side, cmd.Wait()); err != nil {
		return Burst{}, fmt.Errorf("ab on %s: %w\n%s", node, err, out.Bytes())
	}
	b := Burst{Complete: number(abComplete, out.Bytes()), Took: time.Since(start)}
	b.Failed = abFailed(out.Bytes()) + number(abNon2xx, out.Bytes()) + n - b.Complete
	return b, nil
}

// abFailed counts requests that failed; ab itself counts one twice that broke off before its first byte.
func abFailed(report []byte) int {
	m := abReasons.FindSubmatch(report)
	if m == nil {
		return 0
	}
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(string(m[i+1]))
	}
	return max(n[0]+n[1], n[2], n[3])
}

func number(re *regexp.Regexp, text []byte) int {
	m := re.FindSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// runWget asks n times with one unmodified wget, a fresh connection each, and returns who answered.
func runWget(rig *bench.Rig, node string, n int) (map[string]int, error) {
	args := []string{"-q", "-O", "-", "--no-http-keep-alive", "--tries=1", "--timeout=" + patience}
	for i := range n {
		args = append(args, "http://web.svc/?"+strconv.Itoa(i))
	}
	cmd := exec.Command("wget", args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := rig.Start(node, cmd); err != nil {
		return nil, fmt.Errorf("start wget on %s: %w", node, err)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("wget on %s: %w %s", node, err, complaints.Bytes())
	}
	counts := map[string]int{}
	for line := range strings.Lines(out.String()) {
		counts[serverOf(line)]++
	}
	return counts, nil
}
