package boost

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/agent"
	"scaffold.dev/scaffold/bench/sos"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/lane"
	"scaffold.dev/scaffold/internal/lab/agents"
)

var sosRules = SosExperiment{
	About: sos.Result{
		Name: "sos_rules", Title: "Rules of a session in the switches", Thesis: "tables 3.3.1 to 3.3.3",
		Setting: "Two sites at an Open vSwitch each, agents at their ports, a controller, for each mode an entry of one port of one server. 1, 2 and 10 connections of one client are carried while `ovs-ofctl dump-flows` reads the rules back that send the entry's segments to agents. Those of the mode steer change the destination's MAC alone, those of rewrite addresses and ports, as the thesis' do. Of the thesis' eight flows of a session four are in each switch: 1 to 4 beside the client, 5 to 8 beside the server.",
		Lacks:   "But for the times nothing here depends on the machine.",
	},
	Ships: "boost-switches.yaml",
	run:   (*sosRun).rules,
}

const (
	// sosRulesThesis is how many flows of a session one switch has in the thesis.
	sosRulesThesis = 4
	// sosRewritten is the port whose connections switches rewrite.
	sosRewritten = 5299
	// sosPatience is how long agents, sessions and rules may take to be there.
	sosPatience = 30 * time.Second
)

// rules opens sessions and reads the rules of the entry back.
func (r *sosRun) rules(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*sosPatience)
	defer cancel()
	d, err := agents.Of(r.lab)
	if err == nil {
		err = d.Carries(ctx)
	}
	if err != nil {
		return err
	}
	client, err := r.lab.Address(ctx, "c1")
	if err != nil {
		return err
	}
	server, err := r.lab.Address(ctx, "s1")
	if err != nil {
		return err
	}
	if err := r.rulesOf(ctx, d, lane.Steered, netip.AddrPortFrom(server, iperfBoosted)); err != nil {
		return err
	}
	_, err = d.Boost.AllowBoost(ctx, connect.NewRequest(&apiv1.BoostEntry{
		Name: "rewritten", Client: client.String(), Server: server.String(), Port: sosRewritten, Mode: lane.Rewritten,
	}))
	if err == nil {
		err = d.Carries(ctx)
	}
	if err != nil {
		return err
	}
	r.res.Notes = append(r.res.Notes, "In the mode rewrite each switch has two rules more for all connections of the entry, by which the controller hears of what begins one.")
	return r.rulesOf(ctx, d, lane.Rewritten, netip.AddrPortFrom(server, sosRewritten))
}

// rulesOf opens sessions to a server and reads the rules of its entry back.
func (r *sosRun) rulesOf(ctx context.Context, d *agents.Driven, mode string, at netip.AddrPort) error {
	var l net.Listener
	err := r.lab.In("s1", func() (err error) {
		var lc net.ListenConfig
		l, err = lc.Listen(ctx, "tcp", at.String())
		return err
	})
	if err != nil {
		return err
	}
	defer l.Close()
	go agent.AnswerAll(l) // ends with l
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	var took []float64
	for _, n := range []int{1, 2, 10} {
		for len(conns) < n {
			begun := time.Now()
			c, err := r.asks("c1", at)
			if err != nil {
				return err
			}
			conns, took = append(conns, c), append(took, time.Since(begun).Seconds()*1e3)
		}
		if err := sessions(ctx, d, at, n); err != nil {
			return err
		}
		if err := r.readRules(ctx, mode, n, at); err != nil {
			return err
		}
	}
	slices.Sort(took)
	r.res.Notes = append(r.res.Notes, fmt.Sprintf("In the mode %s the first byte was answered %.1f ms after a connection began, in the median of %d; %.1f to %.1f.",
		mode, took[len(took)/2], len(took), took[0], took[len(took)-1]))
	return nil
}

// asks is a connection that has had an answer.
func (r *sosRun) asks(node string, to netip.AddrPort) (c net.Conn, err error) {
	err = r.lab.In(node, func() (err error) {
		c, err = net.DialTimeout("tcp", to.String(), reachable)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := exchangeByte(c); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// sessions waits until agents carry so many to a server.
func sessions(ctx context.Context, d *agents.Driven, to netip.AddrPort, n int) error {
	for {
		all, err := d.Boost.ListBoostSessions(ctx, connect.NewRequest(&apiv1.ListBoostSessionsRequest{Server: to.String()}))
		if err != nil {
			return fmt.Errorf("ask for sessions: %w", err)
		}
		if len(all.Msg.Sessions) >= n {
			return nil
		}
		if err := bench.Pause(ctx, queueEach); err != nil {
			return fmt.Errorf("agents carry %d of %d sessions: %w", len(all.Msg.Sessions), n, err)
		}
	}
}

// readRules adds what both switches have for a server's port, in a mode of the switches, with so many sessions; the rules
// themselves where there is one.
func (r *sosRun) readRules(ctx context.Context, mode string, n int, server netip.AddrPort) error {
	w := sos.Words{Title: "Rules of the one session (mode " + mode + "), and which of the thesis' flows they take the place of",
		Head: []string{"switch", "priority", "match", "action", "in place of"}}
	for _, s := range []struct{ node, is string }{{"sw1", "client's switch"}, {"sw2", "server's switch"}} {
		out, err := r.lab.Output(ctx, s.node, "ovs-ofctl", "-O", "OpenFlow15", "dump-flows", "br0", "table=0")
		if err != nil {
			return fmt.Errorf("ovs-ofctl in %s: %w: %s", s.node, err, out)
		}
		all := rulesFor(string(out), server)
		entry := 0
		for _, rule := range all {
			if rule.entry {
				entry++
			}
			if rule.instead == "1" && s.node == "sw2" {
				rule.instead = "7" // what goes to the server's port there comes from its agent
			}
			if !rule.entry && mode == lane.Rewritten {
				continue // what is rewritten comes before it
			}
			w.Rows = append(w.Rows, []string{s.is, rule.priority, "`" + rule.match + "`", "`" + rule.action + "`", rule.instead})
		}
		of := "1 session"
		if n > 1 {
			of = fmt.Sprintf("%d sessions", n)
		}
		r.put(of, fmt.Sprintf("rules at the %s, %s", s.is, mode), "", float64(sosRulesThesis*n), outcome{value: float64(entry)})
	}
	if n == 1 {
		w.Rows = append(w.Rows, []string{"", "", "none", "forwarded as all else is", "3 to 6"})
		r.res.Words = append(r.res.Words, w)
	}
	return nil
}

// A switchRule is one of a switch's rules.
type switchRule struct {
	priority, match, action string
	instead                 string // of which of the thesis' flows
	entry                   bool   // it is there for the entry; else for the agent's port
}

// rulesFor reads what ovs-ofctl says of the rules for a server's port, and of those for agents' ports.
func rulesFor(text string, server netip.AddrPort) (all []switchRule) {
	protocol := "tcp"
	if server.Addr().Is6() {
		protocol = "tcp6"
	}
	for line := range strings.Lines(text) {
		at := strings.Index(line, "priority=")
		if at < 0 {
			continue
		}
		match, action, _ := strings.Cut(strings.TrimSpace(line[at+len("priority="):]), " actions=")
		priority, match, _ := strings.Cut(match, ",")
		words := strings.Split(match, ",")
		if words[0] != protocol || strings.Contains(action, "CONTROLLER") { // what begins a connection is in the text
			continue
		}
		rule := switchRule{priority: priority, match: strings.Join(words, ", "), action: action}
		for _, word := range words {
			switch word {
			case fmt.Sprintf("tp_dst=%d", server.Port()):
				rule.entry, rule.instead = true, "1"
			case fmt.Sprintf("tp_src=%d", server.Port()):
				rule.entry, rule.instead = true, "8"
			}
			if from := fmt.Sprintf("set_field:%d->tcp_src", server.Port()); strings.Contains(action, from) { // it is the server's port that is written
				rule.entry, rule.instead = true, "2"
			}
			if strings.HasPrefix(word, "in_port=") {
				rule.instead = "2, 7: agents write the hosts' addresses themselves"
			}
		}
		if rule.instead != "" {
			all = append(all, rule)
		}
	}
	return all
}
