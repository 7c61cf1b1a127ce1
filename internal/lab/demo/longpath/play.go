package longpath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/agents"
)

// Ports of the server. Connections to the first three are boosted, as the lab's file has it, too.
const (
	webPort    = 80
	iperfPort  = 5201
	rsyncPort  = 873
	plainPort  = 8080 // the same nginx
	plainIperf = 5202
	plainRsync = 8730 // the same files
)

// carries is what the path carries of TCP's payload, in bits a second: 500 Mbit/s of Ethernet frames of 1514 bytes, of
// which 1448 are a segment's with timestamps.
const carries = 500e6 * 1448 / 1514

// large is the size of the file that is fetched.
const large = 200 << 20

// A Result is one of the demo's claims and what was seen of it.
type Result struct {
	Claim string
	Seen  string
	Holds bool
}

// A step shows one claim.
type step struct {
	claim string
	run   func(context.Context, *show) (seen string, holds bool, err error)
}

var steps = []step{
	{"one connection of iperf3 gets ten times what it gets by itself", rates},
	{"curl gets 200 MB, and nginx sees the client's address", fetches},
	{"1 kB comes as soon as without", firstByte},
	{"rsync copies a tree", syncs},
	{"other traffic passes beside a boosted curl as it does alone", othersPass},
	{"workers killed with -9 at both sides amid a curl: the file is right", workersDie},
	{"both processes of an agent killed amid a curl: it is reset, not cut short", agentDies},
}

// driven are shown besides where a controller drives the agents.
var driven = []step{
	{"the controller killed with -9 amid a curl, and started again: the file is right", controllerDies},
	{"`scaffold boost explain` names what keeps a connection from being faster", explains},
}

// stepsOf are those that a lab is for.
func stepsOf(l *lab.Lab) []step {
	if l.File.Bare {
		return steps
	}
	return append(steps[:len(steps):len(steps)], driven...)
}

// A pair is two agents: x beside the client, y beside the server.
type pair interface {
	KillWorker(agent string) error
	Kill(agent string) error
	Restart(ctx context.Context, agent string) error
	End()
}

// show is what the steps share.
type show struct {
	lab            *lab.Lab
	client, server netip.Addr
	agents         pair
	dir            string
	files          files
	say            func(format string, args ...any)
	procs          []*exec.Cmd
	routes         []way // that were changed, as they were
}

// Play shows all claims on a lab that is up, and returns what it saw of each.
func Play(ctx context.Context, l *lab.Lab, out io.Writer) (results []Result, err error) {
	start := time.Now()
	s := &show{lab: l, say: func(format string, args ...any) {
		fmt.Fprintf(out, "%6.1f s  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}}
	defer s.end()
	s.say("a path of 500 Mbit/s, 50 ms there and back, one packet in a thousand lost; the hosts' TCP is CUBIC")
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	s.say("agents at x and y carry connections to ports %d, %d and %d of s1; all else passes", webPort, rsyncPort, iperfPort)
	for i, step := range stepsOf(l) {
		s.say("%c. %s", 'a'+i, step.claim)
		r := Result{Claim: step.claim}
		if r.Seen, r.Holds, err = step.run(ctx, s); err != nil {
			return results, fmt.Errorf("%s: %w", step.claim, err)
		}
		results = append(results, r)
		s.say("   %s", r.Seen)
	}
	return results, nil
}

// Report prints the table of what was shown on a lab, and says whether all claims hold.
func Report(out io.Writer, l *lab.Lab, results []Result) bool {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tWHAT\tHOLDS\tSEEN")
	all := len(results) == len(stepsOf(l))
	for i, r := range results {
		holds := "yes"
		if !r.Holds {
			holds, all = "NO", false
		}
		fmt.Fprintf(tw, "%c\t%s\t%s\t%s\n", 'a'+i, r.Claim, holds, r.Seen)
	}
	tw.Flush()
	return all
}

// begin starts servers and agents.
func (s *show) begin(ctx context.Context) (err error) {
	if s.dir, err = s.lab.LargeDir(); err != nil {
		return err
	}
	if s.files, err = writeFiles(filepath.Join(s.dir, "files")); err != nil {
		return err
	}
	if s.client, err = s.lab.Address(ctx, "c1"); err != nil {
		return err
	}
	if s.server, err = s.lab.Address(ctx, "s1"); err != nil {
		return err
	}
	if err := errors.Join(s.control(ctx, "c1", s.server, "cubic"), s.control(ctx, "s1", s.client, "cubic")); err != nil {
		return err
	}
	for _, argv := range [][]string{
		{"iperf3", "-s", "-p", fmt.Sprint(iperfPort)},
		{"iperf3", "-s", "-p", fmt.Sprint(plainIperf)},
		{"nginx", "-e", filepath.Join(s.dir, "error.log"), "-c", s.nginx()},
		{"rsync", "--daemon", "--no-detach", "--port", fmt.Sprint(rsyncPort), "--config", s.rsync(rsyncPort)},
		{"rsync", "--daemon", "--no-detach", "--port", fmt.Sprint(plainRsync), "--config", s.rsync(plainRsync)},
	} {
		if err := s.start(ctx, argv); err != nil {
			return err
		}
	}
	if !s.lab.File.Bare {
		d, err := agents.Of(s.lab)
		if err != nil {
			return err
		}
		s.agents = d
		return d.Carries(ctx)
	}
	// Not by way of s.agents: a pair that did not start is none.
	p, err := agents.Start(ctx, s.lab, agents.Site{Agent: "x", Host: "c1"}, agents.Site{Agent: "y", Host: "s1"}, carriedPort, webPort, iperfPort, rsyncPort)
	if err == nil {
		s.agents = p
	}
	return err
}

// control has a host use a congestion control towards the other one: CUBIC, as most hosts have it, for all that is not said
// otherwise. A namespace has what the machine has, which may be BBR, and that alone nearly fills this path. By a route of its
// own: the sysctl takes only what the machine allows to all, and other routes are not ours.
func (s *show) control(ctx context.Context, host string, to netip.Addr, name string) error {
	way, err := s.lab.Output(ctx, host, "ip", "route", "get", to.String())
	if err != nil {
		return fmt.Errorf("route of %s: %w: %s", host, err, way)
	}
	if err := s.note(ctx, host, to); err != nil {
		return err
	}
	argv := []string{"ip", "route", "replace", netip.PrefixFrom(to, to.BitLen()).String()}
	words := strings.Fields(string(way))
	for i, word := range words[:len(words)-1] {
		if word == "via" || word == "dev" || word == "src" {
			argv = append(argv, word, words[i+1])
		}
	}
	if out, err := s.lab.Output(ctx, host, append(argv, "congctl", name)...); err != nil {
		return fmt.Errorf("congestion control of %s: %w: %s", host, err, out)
	}
	// Nor is one connection to begin with what another one, perhaps by another control, has left in the kernel's cache.
	if out, err := s.lab.Output(ctx, host, "ip", "tcp_metrics", "flush"); err != nil {
		return fmt.Errorf("what the kernel of %s remembers of connections: %w: %s", host, err, out)
	}
	return nil
}

// carriedPort is that of the connection by which it is seen that agents carry: nobody else listens there.
const carriedPort = 9

// start starts a server at s1. What it says is in a file.
func (s *show) start(ctx context.Context, argv []string) error {
	cmd, err := s.lab.Command(ctx, argv...)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.dir, fmt.Sprintf("%s-%d.log", argv[0], len(s.procs))))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := s.lab.Start("s1", cmd); err != nil {
		return err
	}
	s.procs = append(s.procs, cmd)
	return nil
}

func (s *show) end() {
	ctx, cancel := context.WithTimeout(context.Background(), endsWithin) // also where the demo was interrupted
	defer cancel()
	for _, w := range s.routes {
		if out, err := s.lab.Output(ctx, w.host, w.back()...); err != nil {
			s.say("the route of %s to %v stays as the demo had it: %v: %s", w.host, w.to, err, out)
		}
	}
	if s.agents != nil {
		s.agents.End()
	}
	for _, cmd := range s.procs {
		cmd.Process.Kill()
		cmd.Wait() //nolint:errcheck // killed
	}
	os.RemoveAll(s.dir)
}
