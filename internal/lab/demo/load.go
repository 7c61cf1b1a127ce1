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

	"scaffold.dev/scaffold/internal/lab/rig"
)

// The steady load: some curls side by side, each a fresh connection per request.
const (
	curls    = 32
	curlRate = 10 // a second
	// flatOut is how many ask at a time without a rate, each the next as soon as it has an answer.
	flatOut = 8
	// patience is how long a curl waits for one request: longer than any hold-up that the demo causes.
	patience = "8"
)

// A Load is unmodified curls that ask for the page by name until it is stopped.
type Load struct {
	*Requests
	cmds []*exec.Cmd
	wait sync.WaitGroup
}

// StartLoad starts n curls on node, each of which asks so many times a second; 0: as often as it can.
func StartLoad(r *rig.Rig, node string, n, rate int) (*Load, error) {
	var options []string
	var pause time.Duration
	if rate > 0 {
		options, pause = []string{"--rate", fmt.Sprintf("%d/s", rate)}, time.Second/time.Duration(rate)
	}
	l := &Load{Requests: NewRequests(pause)}
	for range n {
		if err := l.startOne(r, node, options); err != nil {
			l.Stop()
			return nil, err
		}
	}
	return l, nil
}

func (l *Load) startOne(r *rig.Rig, node string, options []string) error {
	cmd := exec.Command("curl", append(options, "-sN", "--no-keepalive", "-H", "Connection: close", "--max-time", patience,
		"-w", curlFormat, "http://web.svc/?[1-1000000]")...)
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = in, in
	err = r.Start(node, cmd)
	in.Close() // curl has it
	if err != nil {
		out.Close()
		return fmt.Errorf("start the load on %s: %w", node, err)
	}
	l.cmds = append(l.cmds, cmd)
	client := len(l.cmds)
	l.wait.Go(func() {
		defer out.Close()
		parseCurl(out, func(q Request) { q.client = client; l.Add(q) })
		io.Copy(io.Discard, out) //nolint:errcheck // a line too long for the scanner must not block curl
		cmd.Wait()               //nolint:errcheck // it ends by our signal
	})
	return nil
}

// Stop ends the curls and waits for them.
func (l *Load) Stop() {
	for _, cmd := range l.cmds {
		cmd.Process.Signal(syscall.SIGTERM) // it may have ended
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

// runAB runs ab on node, n requests over 8 connections at a time, meanwhile (if not nil) beside it. Nothing may die
// meanwhile: where an answer is reset after its first bytes ab takes no more of that connection's events, and waits for one
// that never comes until its time is up. It does so without Scaffold, too.
func runAB(ctx context.Context, r *rig.Rig, node string, n int, meanwhile func() error) (Burst, error) {
	// -l: the servers' pages differ, which ab would count as failures of length.
	cmd := exec.Command("ab", "-l", "-q", "-r", "-s", patience, "-n", strconv.Itoa(n), "-c", "8", "http://web.svc/")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := r.Start(node, cmd); err != nil {
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
func runWget(r *rig.Rig, node string, n int) (map[string]int, error) {
	args := []string{"-q", "-O", "-", "--no-http-keep-alive", "--tries=1", "--timeout=" + patience}
	for i := range n {
		args = append(args, "http://web.svc/?"+strconv.Itoa(i))
	}
	cmd := exec.Command("wget", args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := r.Start(node, cmd); err != nil {
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
